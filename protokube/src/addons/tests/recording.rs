//! Applied objects are recorded, also if a control plane dies or two work at the same time.

use super::fixture::{AddonFixture, config_map};
use hyper::Method;
use node::report::Status;
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn nothing_is_forgotten_when_protokube_is_killed_between_applying_and_recording() {
    let fixture = AddonFixture::new().await;
    fixture
        .store_addons(&[("first", &[config_map("a"), config_map("b")])])
        .await;
    // The last write of the record fails.
    fixture
        .server
        .fail_requests(Method::PUT, "/kctl-addons", 500, 1);
    assert!(!fixture.new_reconciler().run_round().await);
    assert_eq!(fixture.server.object_names(), ["a", "b"]);
    fixture.store_addons(&[("first", &[config_map("b")])]).await;
    fixture
        .run_healthy_round(&mut fixture.new_reconciler())
        .await;
    assert_eq!(fixture.server.object_names(), ["b"]);
}

#[tokio::test]
async fn of_two_control_planes_with_different_lists_the_later_list_wins() {
    let fixture = AddonFixture::new().await;
    let (mut slow, mut quick) = (fixture.new_reconciler(), fixture.new_reconciler());
    let old = |value: &str| {
        let mut object = config_map("a");
        object["data"] = json!({"list": value});
        object
    };
    fixture
        .store_addons(&[("first", &[old("old"), config_map("only-old")])])
        .await;
    // While the slow reconciler applies the old list, another writes the record.
    let overtaken = Arc::new(Mutex::new(false));
    let seen = overtaken.clone();
    fixture.server.server_state.lock().unwrap().meanwhile =
        Some(Box::new(move |objects, request| {
            if request.ends_with("/only-old")
                && request.starts_with("PATCH")
                && !*seen.lock().unwrap()
            {
                *seen.lock().unwrap() = true;
                let record = objects
                    .iter_mut()
                    .find(|(path, _)| path.ends_with("/kctl-addons"))
                    .unwrap()
                    .1;
                record["metadata"]["resourceVersion"] = json!("overtaken");
                record["data"] = json!({});
            }
        }));
    assert!(!slow.run_round().await);
    assert!(*overtaken.lock().unwrap());
    fixture.server.server_state.lock().unwrap().meanwhile = None;
    fixture.store_addons(&[("first", &[old("new")])]).await;
    fixture.run_healthy_round(&mut quick).await;
    assert_eq!(
        fixture.server.object_names(),
        ["a", "only-old"],
        "the quick one cannot know of it"
    );
    fixture.run_healthy_round(&mut slow).await;
    assert_eq!(fixture.server.object_names(), ["a"]);
    assert_eq!(
        fixture.server.find_object("a").unwrap()["data"]["list"],
        "new"
    );
}

#[tokio::test]
async fn a_broken_entry_of_the_record_is_said_and_made_anew() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a")])]).await;
    fixture.server.change_object("kctl-addons", |record| {
        record["data"]["first"] = json!("broken");
    });
    fixture.run_healthy_round(&mut reconciler).await;
    assert!(!fixture.addon_record("first")["sha256"].is_null());
    assert!(
        fixture
            .take_log_lines()
            .iter()
            .any(|(status, detail)| *status == Status::Failed && detail.contains("kctl-addons"))
    );
}
