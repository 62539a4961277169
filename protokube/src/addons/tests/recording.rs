//! What was applied is on record, whoever dies or comes between.

use super::scene::{Scene, map};
use hyper::Method;
use node::report::Status;
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn nothing_is_forgotten_when_protokube_is_killed_between_applying_and_recording() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a"), map("b")])]).await;
    // The last write of the record does not happen.
    scene.server.fail(Method::PUT, "/kctl-addons", 500, 1);
    assert!(!scene.follower().run_round().await);
    assert_eq!(scene.server.names(), ["a", "b"]);
    scene.want(&[("first", &[map("b")])]).await;
    scene.looks(&mut scene.follower()).await;
    assert_eq!(scene.server.names(), ["b"]);
}

#[tokio::test]
async fn of_two_control_planes_with_different_lists_the_later_list_wins() {
    let scene = Scene::new().await;
    let (mut slow, mut quick) = (scene.follower(), scene.follower());
    let old = |value: &str| {
        let mut object = map("a");
        object["data"] = json!({"list": value});
        object
    };
    scene
        .want(&[("first", &[old("old"), map("only-old")])])
        .await;
    // While the slow one applies the old list, the record is overtaken.
    let overtaken = Arc::new(Mutex::new(false));
    let seen = overtaken.clone();
    scene.server.world.lock().unwrap().meanwhile = Some(Box::new(move |objects, request| {
        if request.ends_with("/only-old") && request.starts_with("PATCH") && !*seen.lock().unwrap()
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
    scene.server.world.lock().unwrap().meanwhile = None;
    scene.want(&[("first", &[old("new")])]).await;
    scene.looks(&mut quick).await;
    assert_eq!(
        scene.server.names(),
        ["a", "only-old"],
        "the quick one cannot know of it"
    );
    scene.looks(&mut slow).await;
    assert_eq!(scene.server.names(), ["a"]);
    assert_eq!(scene.server.object("a").unwrap()["data"]["list"], "new");
}

#[tokio::test]
async fn a_broken_entry_of_the_record_is_said_and_made_anew() {
    let (scene, mut follower) = Scene::applied(&[("first", &[map("a")])]).await;
    scene.server.change("kctl-addons", |record| {
        record["data"]["first"] = json!("broken");
    });
    scene.looks(&mut follower).await;
    assert!(!scene.record("first")["sha256"].is_null());
    assert!(
        scene
            .said()
            .iter()
            .any(|(status, detail)| *status == Status::Failed && detail.contains("kctl-addons"))
    );
}
