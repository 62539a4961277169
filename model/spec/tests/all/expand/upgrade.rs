//! An upgrade that can be taken back: what of a cluster is of which version.

use super::laws::assert_laws;
use super::{new_cluster, offline_facts, try_expand, zone_names};
use full::{ControlPlane, FullSpec};
use spec::api::addons::ClusterAutoscalerConfig;
use spec::api::cluster::KubernetesUpgrade;
use spec::api::{Cluster, InstanceGroup};
use spec::catalog::recommended_patch;
use spec::create::CreateOptions;
use spec::validate::versions::{NEWEST_MINOR, OLDEST_MINOR};

/// A cluster of this version, with an addon whose release follows the minor of Kubernetes.
fn cluster_of(version: &str) -> (Cluster, Vec<InstanceGroup>) {
    let (mut cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        kubernetes_version: Some(version.to_owned()),
        ..CreateOptions::default()
    });
    cluster.spec.cluster_autoscaler = Some(ClusterAutoscalerConfig {
        enabled: Some(true),
        ..ClusterAutoscalerConfig::default()
    });
    (cluster, groups)
}

/// The cluster with this version, upgraded from the other one.
fn upgraded(cluster: &Cluster, version: &str, from: Option<&str>) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.spec.kubernetes_version = Some(version.to_owned());
    cluster.spec.kubernetes_upgrade = from.map(|from| KubernetesUpgrade {
        from: Some(from.to_owned()),
    });
    cluster
}

/// The control plane's components when they emulate this minor.
fn emulating(mut components: ControlPlane, minor: u32) -> ControlPlane {
    for component in [
        &mut components.api_server,
        &mut components.controller_manager,
        &mut components.scheduler,
    ] {
        component
            .flags
            .set("emulated-version", format!("1.{minor}"));
    }
    let own = &mut components.api_server.flags;
    own.set("emulation-forward-compatible", "true");
    components
}

#[test]
fn while_it_can_be_taken_back_only_the_components_of_control_planes_are_new() {
    for minor in OLDEST_MINOR..NEWEST_MINOR {
        let [old, new] =
            [minor, minor + 1].map(|minor| recommended_patch(minor).expect("a version"));
        let (cluster, groups) = cluster_of(old);
        let expand = |cluster: &Cluster| -> FullSpec {
            try_expand(cluster, &groups, &offline_facts()).unwrap().full
        };
        let before = expand(&cluster);
        let during = expand(&upgraded(&cluster, new, Some(old)));
        let after = expand(&upgraded(&cluster, new, None));
        assert_ne!(before.assets, after.assets, "{new}");
        let expected = FullSpec {
            control_plane: emulating(after.control_plane, minor),
            ..before
        };
        assert_eq!(during, expected, "{new}");
        assert_laws(
            &upgraded(&cluster, new, Some(old)),
            &groups,
            &offline_facts(),
        );
    }
}

#[test]
fn etcd_keeps_its_minor_until_the_upgrade_is_finalized() {
    let (cluster, groups) = cluster_of("1.33.13");
    let etcd = |cluster: &Cluster| {
        let expanded = try_expand(cluster, &groups, &offline_facts()).unwrap();
        expanded.full.etcd[0].version.clone()
    };
    let during = upgraded(&cluster, "1.34.10", Some("1.33.13"));
    let after = upgraded(&cluster, "1.34.10", None);
    assert_eq!(
        [&cluster, &during, &after].map(etcd),
        ["3.5.31", "3.5.31", "3.6.12"]
    );
}

/// Without it, everything would be of the new version.
#[test]
fn a_version_before_that_cannot_be_read_is_not_ignored() {
    let (cluster, groups) = cluster_of("1.36.3");
    for from in ["", "1.34.1", "1.36.2"] {
        let cluster = upgraded(&cluster, "1.36.3", Some(from));
        let problems = try_expand(&cluster, &groups, &offline_facts()).unwrap_err();
        assert_eq!(problems[0].path, "spec.kubernetesUpgrade.from", "{from}");
    }
}
