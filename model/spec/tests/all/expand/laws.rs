//! The laws of expansion.

use super::{CUSTOM, new_cluster, offline_facts, read_objects, try_expand, zone_names};
use cloud::facts::Facts;
use proptest::prelude::*;
use serde_json::Value;
use spec::api::{Cluster, DnsType, InstanceGroup};
use spec::create::{CreateOptions, Topology};
use spec::read::render_problems;
use spec::validate::versions::{NEWEST_MINOR, OLDEST_MINOR};

/// Every value in `said` is in `completed` at the same place. Maps may have grown, lists not.
fn assert_kept(said: &Value, completed: &Value, path: &str) {
    match (said, completed) {
        (Value::Object(said), Value::Object(completed)) => {
            for (key, value) in said {
                let path = format!("{path}.{key}");
                // The one field that is written in one form.
                if path == "Cluster.spec.kubernetesVersion" {
                    continue;
                }
                let found = completed.get(key);
                assert_kept(
                    value,
                    found.unwrap_or_else(|| panic!("{path} is gone")),
                    &path,
                );
            }
        }
        (Value::Array(said), Value::Array(completed)) => {
            assert_eq!(said.len(), completed.len(), "{path}");
            for (index, (said, completed)) in said.iter().zip(completed).enumerate() {
                assert_kept(said, completed, &format!("{path}[{index}]"));
            }
        }
        (said, completed) => assert_eq!(said, completed, "{path}"),
    }
}

/// All of them, for one input.
pub fn assert_laws(cluster: &Cluster, groups: &[InstanceGroup], facts: &Facts) {
    let once = match try_expand(cluster, groups, facts) {
        Ok(expanded) => expanded,
        Err(problems) => panic!("{}", render_problems(&problems)),
    };
    let mut shuffled = groups.to_vec();
    shuffled.reverse();
    assert_eq!(try_expand(cluster, &shuffled, facts).unwrap(), once);
    assert_eq!(
        try_expand(&once.cluster, &once.groups, facts).unwrap(),
        once
    );
    let json = |value: &InstanceGroup| serde_json::to_value(value).unwrap();
    assert_kept(
        &serde_json::to_value(cluster).unwrap(),
        &serde_json::to_value(&once.cluster).unwrap(),
        "Cluster",
    );
    for group in groups {
        let completed = once
            .groups
            .iter()
            .find(|other| other.name() == group.name());
        assert_kept(&json(group), &json(completed.unwrap()), group.name());
    }
}

#[test]
fn the_laws_hold_for_many_wishes() {
    let (cluster, groups) = read_objects(CUSTOM);
    assert_laws(&cluster, &groups, &offline_facts());
}

fn any_options() -> impl Strategy<Value = CreateOptions> {
    let topology = prop_oneof![Just(Topology::Public), Just(Topology::Private)];
    let dns = prop::option::of(prop_oneof![
        Just(DnsType::Public),
        Just(DnsType::Private),
        Just(DnsType::None)
    ]);
    let networking = prop::option::of(prop_oneof![Just("cni"), Just("flannel-udp")]);
    let ranges =
        prop::sample::subsequence(vec!["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"], 0..=3);
    let version =
        prop::option::of((OLDEST_MINOR..=NEWEST_MINOR).prop_map(|minor| format!("v1.{minor}.0")));
    (
        prop::sample::subsequence(vec!["a", "b", "c"], 1..=3),
        topology,
        dns,
        networking,
        ranges,
        version,
        any::<bool>(),
        prop::option::of(1..6_usize),
        prop::option::of(any::<bool>()),
    )
        .prop_map(
            |(names, topology, dns, networking, ranges, version, bastion, count, public)| {
                CreateOptions {
                    zones: zone_names(&names),
                    topology,
                    dns,
                    networking: networking.map(str::to_owned),
                    network_cidrs: ranges.into_iter().map(str::to_owned).collect(),
                    kubernetes_version: version,
                    bastion: bastion && topology == Topology::Private,
                    control_plane_count: count,
                    associate_public_ip: public,
                    ..CreateOptions::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_laws_hold_for_new_clusters(options in any_options()) {
        let (cluster, groups) = new_cluster(options);
        assert_laws(&cluster, &groups, &offline_facts());
    }
}
