//! The world as the AWS simulator tells it is read whole, and nothing in it is lost.
//!
//! `world.json` is a document of the simulator's, written by its own tests (`test_world.py`), which hold
//! the fields of what it tells to those of this file.

use lab::aws_state::AwsState;

#[test]
fn a_document_of_the_simulator_is_read_and_written_again_unchanged() {
    let document: serde_json::Value =
        serde_json::from_str(include_str!("../world.json")).expect("JSON");
    let world: AwsState = serde_json::from_value(document.clone()).expect("the form of world.rs");
    assert!(
        world
            .instances
            .iter()
            .any(|instance| instance.user_data.is_some())
    );
    assert!(
        world
            .security_groups
            .iter()
            .any(|group| !group.ingress.is_empty())
    );
    assert!(
        world
            .hosted_zones
            .iter()
            .any(|zone| zone.records.iter().any(|record| record.alias.is_some()))
    );
    assert_eq!(serde_json::to_value(&world).expect("JSON"), document);
}
