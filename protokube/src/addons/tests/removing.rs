//! What is not wanted any more is removed, if it is ours.

use super::scene::{Scene, map, namespace, of};
use hyper::Method;
use serde_json::json;

#[tokio::test]
async fn what_left_an_addon_and_addons_that_left_the_list_are_removed_the_last_first() {
    let second = [namespace("own"), of("apps/v1", "DaemonSet", "d")];
    let (scene, mut follower) =
        Scene::applied(&[("first", &[map("a"), map("b")]), ("second", &second)]).await;
    scene.want(&[("first", &[map("b")])]).await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["b"]);
    assert_eq!(
        scene.changes(),
        [
            "first: 1 object applied",
            "first: ConfigMap kube-system/a removed",
            "second: DaemonSet own/d removed",
            "second: Namespace own removed",
        ]
    );
    assert!(scene.record("second").is_null());
    scene.want(&[]).await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), Vec::<String>::new());
}

#[tokio::test]
async fn only_ours_is_removed() {
    let names = ["kept", "theirs", "other", "plain"];
    let (scene, mut follower) = Scene::applied(&[("first", &names.map(map))]).await;
    scene.server.change("theirs", |object| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("kops");
    });
    scene.server.change("other", |object| {
        object["metadata"]["labels"]["addon.kops.k8s.io/name"] = json!("second");
    });
    scene.server.change("plain", |object| {
        object["metadata"] = json!({"name": "plain", "namespace": "kube-system"});
    });
    // Never applied by us, though labelled as if: nobody recorded it.
    let stranger = json!({"metadata": {"name": "stranger", "labels": {"addon.kops.k8s.io/name": "first", "app.kubernetes.io/managed-by": "kctl"}}});
    let path = "/api/v1/namespaces/kube-system/configmaps/stranger";
    scene
        .server
        .world
        .lock()
        .unwrap()
        .objects
        .insert(path.into(), stranger);
    scene.want(&[]).await;
    scene.looks(&mut follower).await;
    assert_eq!(
        scene.server.names(),
        ["other", "plain", "stranger", "theirs"]
    );
    let said = scene.changes();
    assert_eq!(
        said.iter()
            .filter(|line| line.contains("left alone"))
            .count(),
        3,
        "{said:?}"
    );
    assert!(said.contains(&"first: ConfigMap kube-system/kept removed".to_owned()));
}

#[tokio::test]
async fn an_object_that_moves_to_another_addon_is_not_removed() {
    let (scene, mut follower) = Scene::applied(&[("first", &[map("a"), map("b")])]).await;
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "b"]);
    assert!(
        !scene
            .server
            .take_requests()
            .iter()
            .any(|one| one.starts_with("DELETE"))
    );
}

#[tokio::test]
async fn what_could_not_be_removed_is_tried_again() {
    let (scene, mut follower) = Scene::applied(&[("first", &[map("a"), map("b")])]).await;
    scene.want(&[]).await;
    scene.server.fail(Method::DELETE, "/a", 500, 1);
    assert!(!follower.run_round().await);
    assert_eq!(scene.server.names(), ["a"]);
    // Whoever goes on.
    scene.looks(&mut scene.follower()).await;
    assert_eq!(scene.server.names(), Vec::<String>::new());
}
