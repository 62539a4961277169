//! Objects that are not desired any more are removed if they belong to kctl.

use super::fixture::{AddonFixture, config_map, namespace_object, object_of_kind};
use hyper::Method;
use serde_json::json;

#[tokio::test]
async fn what_left_an_addon_and_addons_that_left_the_list_are_removed_the_last_first() {
    let second = [
        namespace_object("own"),
        object_of_kind("apps/v1", "DaemonSet", "d"),
    ];
    let (fixture, mut reconciler) = AddonFixture::with_applied_addons(&[
        ("first", &[config_map("a"), config_map("b")]),
        ("second", &second),
    ])
    .await;
    fixture.store_addons(&[("first", &[config_map("b")])]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["b", "own"]);
    assert_eq!(
        fixture.take_changes(),
        [
            "first: 1 object applied",
            "first: ConfigMap kube-system/a removed",
            "second: DaemonSet own/d removed",
            "second: Namespace own is no longer part of the addon but is left alone: with it, everything in it would be deleted",
        ]
    );
    assert!(fixture.addon_record("second").is_null());
    fixture.store_addons(&[]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["own"]);
}

#[tokio::test]
async fn only_ours_is_removed() {
    let names = ["kept", "theirs", "other", "plain"];
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &names.map(config_map))]).await;
    fixture.server.change_object("theirs", |object| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("kops");
    });
    fixture.server.change_object("other", |object| {
        object["metadata"]["labels"]["addon.kops.k8s.io/name"] = json!("second");
    });
    fixture.server.change_object("plain", |object| {
        object["metadata"] = json!({"name": "plain", "namespace": "kube-system"});
    });
    // An object with the right labels that is not in the record, so kctl never applied it.
    let stranger = json!({"metadata": {"name": "stranger", "labels": {"addon.kops.k8s.io/name": "first", "app.kubernetes.io/managed-by": "kctl"}}});
    let path = "/api/v1/namespaces/kube-system/configmaps/stranger";
    fixture
        .server
        .server_state
        .lock()
        .unwrap()
        .objects
        .insert(path.into(), stranger);
    fixture.store_addons(&[]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(
        fixture.server.object_names(),
        ["other", "plain", "stranger", "theirs"]
    );
    let changes = fixture.take_changes();
    assert_eq!(
        changes
            .iter()
            .filter(|line| line.contains("left alone"))
            .count(),
        3,
        "{changes:?}"
    );
    assert!(changes.contains(&"first: ConfigMap kube-system/kept removed".to_owned()));
}

#[tokio::test]
async fn an_object_that_moves_to_another_addon_is_not_removed() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a"), config_map("b")])]).await;
    fixture
        .store_addons(&[
            ("first", &[config_map("a")]),
            ("second", &[config_map("b")]),
        ])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["a", "b"]);
    assert!(
        !fixture
            .server
            .take_requests()
            .iter()
            .any(|one| one.starts_with("DELETE"))
    );
}

#[tokio::test]
async fn what_could_not_be_removed_is_tried_again() {
    let (fixture, mut reconciler) =
        AddonFixture::with_applied_addons(&[("first", &[config_map("a"), config_map("b")])]).await;
    fixture.store_addons(&[]).await;
    fixture.server.fail_requests(Method::DELETE, "/a", 500, 1);
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.server.object_names(), ["a"]);
    // Another control plane continues.
    fixture
        .run_healthy_round(&mut fixture.new_reconciler())
        .await;
    assert_eq!(fixture.server.object_names(), Vec::<String>::new());
}

/// With them, everything that users have made of their kinds would go.
#[tokio::test]
async fn definitions_of_kinds_stay_when_their_addon_leaves_and_are_forgotten() {
    let kind = "CustomResourceDefinition";
    let definitions = ["a", "b"].map(|name| object_of_kind("apiextensions.k8s.io/v1", kind, name));
    // Of the same name, but no definition of a kind.
    let other = object_of_kind("apps/v1", "DaemonSet", "c");
    let fixture = AddonFixture::new().await;
    let path = "customresourcedefinitions";
    fixture
        .server
        .serve_kind("apiextensions.k8s.io/v1", kind, path);
    let mut reconciler = fixture.new_reconciler();
    let [first, second] = &definitions;
    let all = [first.clone(), second.clone(), other];
    fixture.store_addons(&[("first", &all)]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    fixture.take_changes();
    let left = |name: &str| {
        format!(
            "first: {kind} own/{name} is no longer part of the addon but is left alone: without it, every object of its kind would be deleted"
        )
    };
    // One leaves the addon, then the addon leaves the list.
    fixture
        .store_addons(&[("first", std::slice::from_ref(first))])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(
        fixture.take_changes(),
        [
            "first: 1 object applied",
            "first: DaemonSet own/c removed",
            left("b").as_str(),
        ]
    );
    fixture.store_addons(&[]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.take_changes(), [left("a")]);
    assert_eq!(fixture.server.object_names(), ["a", "b"]);
    assert!(fixture.addon_record("first").is_null());
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.take_changes(), Vec::<String>::new());
    // Back again, they belong to the addon as before.
    fixture.store_addons(&[("first", &definitions)]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.take_changes(), ["first: 2 objects applied"]);
}

#[tokio::test]
async fn helm_controller_stays_until_its_charts_are_uninstalled() {
    const CONTROLLER: &str = "helm-controller.kctl.dev";
    let fixture = AddonFixture::new().await;
    let chart = object_of_kind("helm.cattle.io/v1", "HelmChart", "shop");
    fixture
        .server
        .serve_kind("helm.cattle.io/v1", "HelmChart", "helmcharts");
    let mut reconciler = fixture.new_reconciler();
    fixture
        .store_addons(&[
            (CONTROLLER, &[config_map("a")]),
            ("own", std::slice::from_ref(&chart)),
        ])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    // Somebody has made another chart, and holds it: as a finalizer does while the job runs.
    let path = "/apis/helm.cattle.io/v1/namespaces/own/helmcharts/theirs";
    let theirs = json!({"metadata": {"name": "theirs", "namespace": "own"}});
    let insert = |path: &str| {
        let mut state = fixture.server.server_state.lock().unwrap();
        state.objects.insert(path.to_owned(), theirs.clone());
    };
    insert(path);
    fixture.store_addons(&[]).await;
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.server.object_names(), ["a", "theirs"]);
    assert!(!fixture.addon_record(CONTROLLER).is_null());
    let remove = |path: &str| {
        let mut state = fixture.server.server_state.lock().unwrap();
        state.objects.remove(path);
    };
    remove(path);
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), Vec::<String>::new());
}
