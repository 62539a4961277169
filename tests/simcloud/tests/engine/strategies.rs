//! Clusters and clouds to try the laws on.

use cloud::Cloud;
use engine::{Clock, Options, Snapshot};
use proptest::prelude::*;
use simcloud::{ClusterShape, Faults, ReadScope, RunEnd, SimCloud, State, run_update};
use std::time::Duration;

pub fn any_shape() -> impl Strategy<Value = ClusterShape> {
    let groups = prop::sample::subsequence(vec!["nodes", "spot", "gpu"], 0..=3);
    let members = prop::sample::subsequence(vec!["a", "b", "c", "1"], 1..=3);
    let choices = (
        1..=3_u8,
        groups,
        1..=3_i32,
        1..=3_u32,
        any::<[bool; 5]>(),
        members,
    );
    choices.prop_map(
        |(zones, groups, size, dhcp, [a, b, c, d, e], members)| ClusterShape {
            zones,
            groups: groups.into_iter().map(|group| (group, size)).collect(),
            owner: if a { "a-team" } else { "b-team" },
            boot: if b { "first" } else { "second" },
            dhcp,
            private: c,
            balancer: d,
            events: e,
            members,
        },
    )
}

/// What is wanted: any cluster, or nothing.
pub fn any_desired() -> impl Strategy<Value = Vec<Cloud>> {
    prop_oneof![1 => Just(Vec::new()), 9 => any_shape().prop_map(|shape| shape.all_objects())]
}

/// A cloud in which calls take their time and nothing goes wrong.
pub fn calm_cloud() -> SimCloud {
    let faults = Faults {
        latency: Duration::from_millis(100),
        slow: Duration::from_mins(1),
        ..Faults::default()
    };
    SimCloud::new(1, faults, State::beside_others(), Duration::ZERO)
}

/// A calm cloud in which these objects are.
pub fn calm_with(desired: &[Cloud]) -> SimCloud {
    let cloud = calm_cloud();
    match run(&cloud, desired) {
        RunEnd::Ran(_, report) if report.is_complete() => cloud,
        other => panic!("a calm cloud does what it is told: {other:?}"),
    }
}

/// One run without a listener.
pub fn run(cloud: &SimCloud, desired: &[Cloud]) -> RunEnd {
    run_update(cloud, desired, Options::default(), &|| false, &mut |_| {})
}

/// What a sweep over the cloud shows now.
pub fn sweep_cloud(cloud: &SimCloud) -> Snapshot<Cloud> {
    let read = ReadScope {
        now: cloud.clock.now(),
        ..ReadScope::default()
    };
    cloud.state.borrow().sweep_all(read)
}
