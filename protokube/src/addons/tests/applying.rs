//! Desired objects are applied in order, and only if they changed.

use super::fixture::{AddonFixture, applied_paths, config_map, namespace_object, object_of_kind};
use node::protokube::ACCESS_ADDON;
use node::report::Status;
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn addons_are_applied_in_the_lists_order_and_each_in_its_manifests() {
    let fixture = AddonFixture::new().await;
    let second = [
        namespace_object("own"),
        object_of_kind("v1", "ServiceAccount", "c"),
        object_of_kind("apps/v1", "DaemonSet", "d"),
    ];
    fixture
        .store_addons(&[
            ("first", &[config_map("b"), config_map("a")]),
            ("second", &second),
        ])
        .await;
    fixture
        .run_healthy_round(&mut fixture.new_reconciler())
        .await;
    let requests = fixture.server.take_requests();
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
        fixture.take_changes(),
        ["first: 2 objects applied", "second: 3 objects applied"]
    );
}

#[tokio::test]
async fn an_unchanged_list_costs_one_read_of_the_store_and_one_of_the_api() {
    let (fixture, mut reconciler) = AddonFixture::with_applied_addons(&[
        ("first", &[config_map("a")]),
        ("second", &[config_map("b")]),
    ])
    .await;
    let reads = fixture.store.reads();
    // Another control plane, or this one after a restart, finds nothing to do. It reads the keyset and the signature once.
    for (reconciler, reads) in [(&mut reconciler, 1), (&mut fixture.new_reconciler(), 3)] {
        let before = fixture.store.reads();
        fixture.run_healthy_round(reconciler).await;
        assert_eq!(fixture.store.reads() - before, reads);
        assert_eq!(
            fixture.server.take_requests(),
            ["GET /api/v1/namespaces/kube-system/configmaps/kctl-addons"]
        );
    }
    assert_eq!(fixture.store.reads() - reads, 4);
    assert_eq!(fixture.take_log_lines(), []);
}

#[tokio::test]
async fn only_what_changed_is_applied_again() {
    let (fixture, mut reconciler) = AddonFixture::with_applied_addons(&[
        ("first", &[config_map("a")]),
        ("second", &[config_map("b")]),
    ])
    .await;
    let mut changed = config_map("b");
    changed["data"] = json!({"key": "value"});
    fixture
        .store_addons(&[("first", &[config_map("a")]), ("second", &[changed])])
        .await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(applied_paths(&fixture.server.take_requests()), ["b"]);
    assert_eq!(
        fixture.server.find_object("b").unwrap()["data"]["key"],
        "value"
    );
}

#[tokio::test]
async fn a_kind_that_comes_later_is_found_by_asking_again() {
    let fixture = AddonFixture::new().await;
    let object = object_of_kind("example.com/v1", "Thing", "t");
    fixture
        .store_addons(&[("first", &[object, config_map("a")])])
        .await;
    let mut reconciler = fixture.new_reconciler();
    assert!(!reconciler.run_round().await);
    assert_eq!(
        fixture.server.object_names(),
        ["a"],
        "the others are not kept waiting"
    );
    let [(Status::Failed, why)] = &fixture.take_log_lines()[..] else {
        panic!()
    };
    assert_eq!(
        why,
        "first: could not apply Thing own/t: the API server has no Thing of example.com/v1"
    );
    assert!(!reconciler.run_round().await);
    assert_eq!(fixture.take_log_lines(), [], "the same error is said once");

    fixture
        .server
        .serve_kind("example.com/v1", "Thing", "things");
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(fixture.server.object_names(), ["a", "t"]);
    assert_eq!(fixture.take_changes(), ["first: 2 objects applied"]);
}

#[tokio::test]
async fn a_kind_that_moved_is_found_in_the_same_look() {
    let (fixture, mut reconciler) = AddonFixture::with_applied_addons(&[(
        "first",
        &[object_of_kind("apps/v1", "DaemonSet", "d")],
    )])
    .await;
    // The discovered kinds are cached and outdated: the kind has another path now.
    fixture.server.serve_kind("apps/v1", "DaemonSet", "daemons");
    fixture
        .store_addons(&[("first", &[object_of_kind("apps/v1", "DaemonSet", "e")])])
        .await;
    reconciler.run_round().await;
    let requests = fixture.server.take_requests();
    assert!(
        requests.contains(&"PATCH /apis/apps/v1/namespaces/own/daemons/e".to_owned()),
        "{requests:?}"
    );
}

#[tokio::test]
async fn nobody_is_an_administrator_while_nothing_changes() {
    let fixture = AddonFixture::new().await;
    fixture.store_addons(&[("first", &[config_map("a")])]).await;
    let (mut reconciler, asked) = fixture.counting_reconciler(true);
    for (list, expected) in [
        (vec![config_map("a")], 1),
        (vec![config_map("a")], 1),
        (vec![config_map("a"), config_map("b")], 2),
        (vec![config_map("a"), config_map("b")], 2),
        (vec![config_map("a")], 3),
        (vec![config_map("a")], 3),
    ] {
        fixture.store_addons(&[("first", &list)]).await;
        fixture.run_healthy_round(&mut reconciler).await;
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{list:?}");
    }
    // An addon that leaves the list.
    fixture.store_addons(&[]).await;
    fixture.run_healthy_round(&mut reconciler).await;
    fixture.run_healthy_round(&mut reconciler).await;
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn protokubes_own_rights_come_back_if_somebody_has_removed_them() {
    let fixture = AddonFixture::new().await;
    let addons: &[(&str, &[_])] = &[
        (ACCESS_ADDON, &[config_map("rights")]),
        ("second", &[config_map("b")]),
    ];
    fixture.store_addons(addons).await;
    let (mut reconciler, _) = fixture.counting_reconciler(false);
    fixture.run_healthy_round(&mut reconciler).await;
    fixture.server.take_requests();
    // Applied as listed, and it still grants nothing.
    fixture.run_healthy_round(&mut reconciler).await;
    let requests = fixture.server.take_requests();
    assert_eq!(applied_paths(&requests), ["rights"]);
    fixture.run_healthy_round(&mut reconciler).await;
    let requests = fixture.server.take_requests();
    assert_eq!(applied_paths(&requests), [""; 0], "not in every round");
    let (mut granted, _) = fixture.counting_reconciler(true);
    fixture.run_healthy_round(&mut granted).await;
    let requests = fixture.server.take_requests();
    assert_eq!(applied_paths(&requests), [""; 0]);
}
