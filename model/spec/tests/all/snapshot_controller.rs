//! The snapshot controller, as `spec.snapshotController` wants it.
use full::addons::{Addon, make_addons};
use full::iam::role_policy;
use node::config::Role;
use serde_json::{Value, json};
use test_support::expanded_with_fields;

const ON: &str = "snapshot-controller.addons.k8s.io";

fn addons_with(settings: &Value) -> Vec<Addon> {
    let full = expanded_with_fields(&json!({ "snapshotController": settings })).full;
    make_addons(&full).unwrap()
}

fn has_kind(addons: &[Addon], kind: &str) -> bool {
    let mut objects = addons.iter().flat_map(|addon| &addon.objects);
    objects.any(|object| object["kind"] == kind)
}

#[test]
fn it_is_installed_if_the_spec_says_so() {
    for (settings, installed, class) in [
        (json!({}), false, false),
        (json!({"installDefaultClass": true}), false, false),
        (json!({"enabled": true}), true, false),
        (
            json!({"enabled": true, "installDefaultClass": true}),
            true,
            true,
        ),
    ] {
        let addons = addons_with(&settings);
        let names: Vec<_> = addons.iter().map(|addon| addon.name.as_str()).collect();
        assert_eq!(names.contains(&ON), installed, "{settings}");
        assert_eq!(
            has_kind(&addons, "VolumeSnapshotClass"),
            class,
            "{settings}"
        );
        let manifests: String = addons.iter().map(|addon| addon.manifest.as_str()).collect();
        assert_eq!(manifests.contains("name: csi-snapshotter\n"), installed);
    }
}

#[test]
fn the_driver_may_take_snapshots_only_then() {
    for (enabled, managed, may) in [
        (true, true, true),
        (false, true, false),
        (true, false, false),
    ] {
        let full = expanded_with_fields(&json!({
            "snapshotController": {"enabled": enabled},
            "cloudConfig": {"awsEBSCSIDriver": {"managed": managed}},
        }));
        let policy = role_policy(&full.full, Role::ControlPlane).unwrap();
        assert_eq!(policy.to_string().contains("ec2:CreateSnapshot"), may);
    }
}

/// Its tokens may delete the snapshots of every namespace: they are on no worker.
#[test]
fn its_pods_run_on_control_planes() {
    let addons = addons_with(&json!({"enabled": true}));
    let addon = addons.iter().find(|addon| addon.name == ON).unwrap();
    let pods = addon
        .objects
        .iter()
        .filter_map(|object| object.pointer("/spec/template/spec"));
    let selectors: Vec<_> = pods.map(|pods| &pods["nodeSelector"]).collect();
    let control_plane = json!({"node-role.kubernetes.io/control-plane": ""});
    assert_eq!(selectors, [&control_plane, &control_plane]);
}
