//! What fails is said once and tried again, and keeps nothing else away.

use super::scene::{Scene, applied, manifest, map};
use crate::addons::{AddonPace, follow_list};
use aws_client::store::Expect;
use hyper::Method;
use node::report::Status;
use std::time::Duration;

#[tokio::test]
async fn an_error_of_the_server_is_said_once_and_tried_again() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a"), map("b")]), ("second", &[map("c")])])
        .await;
    scene.server.fail(Method::PATCH, "/a", 500, 2);
    let mut follower = scene.follower();
    assert!(!follower.run_round().await);
    assert_eq!(
        scene.said(),
        [
            (
                Status::Failed,
                "first: could not apply ConfigMap kube-system/a: told to fail (status 500)"
                    .to_owned()
            ),
            (Status::Finished, "second: 1 object applied".to_owned()),
        ]
    );
    assert!(scene.record("first")["sha256"].is_null());
    assert!(!follower.run_round().await);
    assert_eq!(scene.said(), []);
    scene.server.take_requests();
    scene.looks(&mut follower).await;
    assert_eq!(
        applied(&scene.server.take_requests()),
        ["a", "b"],
        "the addon that is done is left alone"
    );
    assert_eq!(scene.changes(), ["first: 2 objects applied"]);
    // The same error would be news again.
    scene.server.fail(Method::PATCH, "/a", 500, 1);
    scene.want(&[("first", &[map("a")])]).await;
    assert!(!follower.run_round().await);
    assert!(
        scene
            .said()
            .iter()
            .any(|(status, _)| *status == Status::Failed)
    );
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a")])]).await;
    scene.server.fail(Method::PATCH, "/a", 409, 1);
    let mut follower = scene.follower();
    assert!(!follower.run_round().await);
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a"]);
}

#[tokio::test]
async fn a_manifest_that_is_not_the_listed_one_is_not_applied() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene
        .put("addons/first/v1.yaml", manifest("first", &[map("evil")]))
        .await;
    let mut follower = scene.follower();
    assert!(!follower.run_round().await);
    assert_eq!(scene.server.names(), ["b"]);
    let said = scene.said();
    assert!(
        said[0].1.starts_with(
            "first: addons/first/v1.yaml does not have the sha256 in addons/bootstrap-channel.yaml"
        ),
        "{said:?}"
    );
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "b"]);
}

#[tokio::test]
async fn a_store_without_a_list_says_what_to_do_and_removes_nothing() {
    let (scene, mut follower) = Scene::applied(&[("first", &[map("a")])]).await;
    scene
        .store
        .delete("addons/bootstrap-channel.yaml", Expect::Any)
        .await
        .unwrap();
    assert!(!follower.run_round().await);
    assert_eq!(scene.server.names(), ["a"]);
    let [(Status::Failed, why)] = &scene.said()[..] else {
        panic!()
    };
    assert!(why.contains("run `kctl update --yes`"), "{why}");
}

#[tokio::test]
async fn it_goes_on_for_ever_whatever_fails() {
    let scene = Scene::new().await;
    let pace = AddonPace {
        usual: Duration::from_millis(5),
        retry: Duration::from_millis(1),
        longest: Duration::from_mins(1),
    };
    let running = tokio::spawn(follow_list(scene.follower(), pace));
    let eventually = async |wanted: &dyn Fn() -> bool| {
        let wait = async {
            while !wanted() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // Rather an error than a test without an end.
        tokio::time::timeout(Duration::from_mins(2), wait)
            .await
            .unwrap();
    };
    // First there is nothing in the store, then the server fails, then all is well, then the list changes.
    eventually(&|| !scene.lines.lock().unwrap().is_empty()).await;
    scene.server.fail(Method::GET, "/kctl-addons", 500, 3);
    scene.want(&[("first", &[map("a")])]).await;
    eventually(&|| scene.server.names() == ["a"]).await;
    scene.want(&[("first", &[map("b")])]).await;
    eventually(&|| scene.server.names() == ["b"]).await;
    assert!(!running.is_finished());
    running.abort();
}
