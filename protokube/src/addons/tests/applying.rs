//! What is wanted is applied, in order, and only what changed.

use super::scene::{Scene, applied, map, namespace, of};
use node::report::Status;
use serde_json::json;

#[tokio::test]
async fn addons_are_applied_in_the_lists_order_and_each_in_its_manifests() {
    let scene = Scene::new().await;
    let second = [
        namespace("own"),
        of("v1", "ServiceAccount", "c"),
        of("apps/v1", "DaemonSet", "d"),
    ];
    scene
        .want(&[("first", &[map("b"), map("a")]), ("second", &second)])
        .await;
    scene.looks(&mut scene.follower()).await;
    let requests = scene.server.take_requests();
    let patches: Vec<&str> = requests
        .iter()
        .filter_map(|one| one.strip_prefix("PATCH "))
        .collect();
    assert_eq!(
        patches,
        [
            "/api/v1/namespaces/kube-system/configmaps/b",
            "/api/v1/namespaces/kube-system/configmaps/a",
            "/api/v1/namespaces/own",
            "/api/v1/namespaces/own/serviceaccounts/c",
            "/apis/apps/v1/namespaces/own/daemonsets/d",
        ]
    );
    assert_eq!(
        scene.changes(),
        ["first: 2 objects applied", "second: 3 objects applied"]
    );
}

#[tokio::test]
async fn an_unchanged_list_costs_one_read_of_the_store_and_one_of_the_api() {
    let (scene, mut follower) =
        Scene::applied(&[("first", &[map("a")]), ("second", &[map("b")])]).await;
    let reads = scene.store.reads();
    // Another control plane, or this one after its restart, is no different.
    for follower in [&mut follower, &mut scene.follower()] {
        let before = scene.store.reads();
        scene.looks(follower).await;
        assert_eq!(scene.store.reads() - before, 1);
        assert_eq!(
            scene.server.take_requests(),
            ["GET /api/v1/namespaces/kube-system/configmaps/kctl-addons"]
        );
    }
    assert_eq!(scene.store.reads() - reads, 2);
    assert_eq!(scene.said(), []);
}

#[tokio::test]
async fn only_what_changed_is_applied_again() {
    let (scene, mut follower) =
        Scene::applied(&[("first", &[map("a")]), ("second", &[map("b")])]).await;
    let mut changed = map("b");
    changed["data"] = json!({"key": "value"});
    scene
        .want(&[("first", &[map("a")]), ("second", &[changed])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(applied(&scene.server.take_requests()), ["b"]);
    assert_eq!(scene.server.object("b").unwrap()["data"]["key"], "value");
}

#[tokio::test]
async fn a_kind_that_comes_later_is_found_by_asking_again() {
    let scene = Scene::new().await;
    let object = of("example.com/v1", "Thing", "t");
    scene.want(&[("first", &[object, map("a")])]).await;
    let mut follower = scene.follower();
    assert!(!follower.run_round().await);
    assert_eq!(
        scene.server.names(),
        ["a"],
        "the others are not kept waiting"
    );
    let [(Status::Failed, why)] = &scene.said()[..] else {
        panic!()
    };
    assert_eq!(
        why,
        "first: could not apply Thing own/t: the API server has no Thing of example.com/v1"
    );
    assert!(!follower.run_round().await);
    assert_eq!(scene.said(), [], "the same error is said once");

    scene.server.has("example.com/v1", "Thing", "things");
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "t"]);
    assert_eq!(scene.changes(), ["first: 2 objects applied"]);
}

#[tokio::test]
async fn a_kind_that_moved_is_found_in_the_same_look() {
    let (scene, mut follower) =
        Scene::applied(&[("first", &[of("apps/v1", "DaemonSet", "d")])]).await;
    // What was asked for is remembered, and wrong: the same kind has another path now.
    scene.server.has("apps/v1", "DaemonSet", "daemons");
    scene
        .want(&[("first", &[of("apps/v1", "DaemonSet", "e")])])
        .await;
    follower.run_round().await;
    let requests = scene.server.take_requests();
    assert!(
        requests.contains(&"PATCH /apis/apps/v1/namespaces/own/daemons/e".to_owned()),
        "{requests:?}"
    );
}
