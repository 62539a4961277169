//! Failures are logged once and retried, and affect nothing else.

use super::fixture::{AddonFixture, applied_paths, config_map, manifest_text};
use crate::addons::{AddonPace, keep_list_applied};
use aws_client::store::Expect;
use hyper::Method;
use node::report::Status;
use std::time::Duration;

#[tokio::test]
async fn an_error_of_the_server_is_said_once_and_tried_again() {
    let fixture = AddonFixture::new().await;
    fixture
        .store_addons(&[
            ("first", &[config_map("a"), config_map("b")]),
            ("second", &[config_map("c")]),
        ])
        .await;
    fixture.server.fail_requests(Method::PATCH, "/a", 500, 2);
    let mut reconciler = fixture.new_reconciler();
    assert!(!reconciler.run_round().await);
    assert_eq!(
        fixture.take_log_lines(),
        [
            (
                Status::Failed,
                "first: could not apply ConfigMap kube-system/a: told to fail (status 500)"
                    .to_owned()
            ),
            (Status::Finished, "second: 1 object applied".to_owned()),
        ]
    );
    assert!(fixture.addon_record("first")["sha256"].is_null());
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.take_log_lines(), []);
    fixture.server.take_requests();
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(
        applied_paths(&fixture.server.take_requests()),
        ["a", "b"],
        "the addon that is done is left alone"
    );
    assert_eq!(fixture.take_changes(), ["first: 2 objects applied"]);
    // The same error is logged again after it was resolved.
    fixture.server.fail_requests(Method::PATCH, "/a", 500, 1);
    fixture.store_addons(&[("first", &[config_map("a")])]).await;
    assert!(!reconciler.run_round().await);
    assert!(
        fixture
            .take_log_lines()
            .iter()
            .any(|(status, _)| *status == Status::Failed)
    );
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let fixture = AddonFixture::new().await;
    fixture.store_addons(&[("first", &[config_map("a")])]).await;
    fixture.server.fail_requests(Method::PATCH, "/a", 409, 1);
    let mut reconciler = fixture.new_reconciler();
    assert!(!reconciler.run_round().await);
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["a"]);
}

#[tokio::test]
async fn a_manifest_that_is_not_the_listed_one_is_not_applied() {
    let fixture = AddonFixture::new().await;
    fixture
        .store_addons(&[
            ("first", &[config_map("a")]),
            ("second", &[config_map("b")]),
        ])
        .await;
    fixture
        .put_object(
            "addons/first/v1.yaml",
            manifest_text("first", &[config_map("evil")]),
        )
        .await;
    let mut reconciler = fixture.new_reconciler();
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.server.object_names(), ["b"]);
    let lines = fixture.take_log_lines();
    assert!(
        lines[0].1.starts_with(
            "first: addons/first/v1.yaml does not have the sha256 in addons/bootstrap-channel.yaml"
        ),
        "{lines:?}"
    );
    fixture
        .store_addons(&[
            ("first", &[config_map("a")]),
            ("second", &[config_map("b")]),
        ])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["a", "b"]);
}

#[tokio::test]
async fn a_store_without_a_list_says_what_to_do_and_removes_nothing() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a")])]).await;
    fixture
        .store
        .delete("addons/bootstrap-channel.yaml", Expect::Any)
        .await
        .unwrap();
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.server.object_names(), ["a"]);
    let [(Status::Failed, why)] = &fixture.take_log_lines()[..] else {
        panic!()
    };
    assert!(why.contains("run `kctl update --yes`"), "{why}");
}

#[tokio::test]
async fn it_goes_on_for_ever_whatever_fails() {
    let fixture = AddonFixture::new().await;
    let pace = AddonPace {
        usual: Duration::from_millis(5),
        retry: Duration::from_millis(1),
        longest: Duration::from_mins(1),
    };
    let running = tokio::spawn(keep_list_applied(fixture.new_reconciler(), pace));
    let eventually = async |wanted: &dyn Fn() -> bool| {
        let wait = async {
            while !wanted() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // An error instead of a test that never ends.
        tokio::time::timeout(Duration::from_mins(2), wait)
            .await
            .unwrap();
    };
    // First the store is empty, then the server fails, then all is well, then the list changes.
    eventually(&|| !fixture.lines.lock().unwrap().is_empty()).await;
    fixture
        .server
        .fail_requests(Method::GET, "/kctl-addons", 500, 3);
    fixture.store_addons(&[("first", &[config_map("a")])]).await;
    eventually(&|| fixture.server.object_names() == ["a"]).await;
    fixture.store_addons(&[("first", &[config_map("b")])]).await;
    eventually(&|| fixture.server.object_names() == ["b"]).await;
    assert!(!running.is_finished());
    running.abort();
}
