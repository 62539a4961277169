//! Counts EC2 calls of a control plane in virtual time, because AWS limits calls per account.

use crate::etcd::member_with;
use crate::names::{FakeApiServers, FakeZone, fake_instance};
use crate::test_host::{INSTANCE, TestHost, node_config};
use etcd_store::FormationStore;
use futures::FutureExt;
use futures::future::BoxFuture;
use protokube::names::{MemberNames, ZonePublisher as ZoneKeeper};
use protokube::roles::{MEMBER_PACE, NAMES_PACE, READY_PACE};
use protokube::{labels, removal};
use protokube_role::pace::PollPace;
use std::cell::Cell;
use std::time::Duration;

/// Limit of calls of three control planes in a minute.
const BUDGET: usize = 20;

const MINUTE: Duration = Duration::from_mins(1);

thread_local! {
    /// Virtual time; only one role runs.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn virtual_sleep(time: Duration) -> BoxFuture<'static, ()> {
    NOW.set(NOW.get() + time);
    tokio::task::yield_now().boxed()
}

fn with_virtual_sleep(pace: PollPace) -> PollPace {
    PollPace {
        sleep: virtual_sleep,
        ..pace
    }
}

/// EC2 calls of a role in the hour after its first ten minutes.
async fn calls_in_an_hour(
    host: &TestHost,
    role: impl Future<Output = anyhow::Result<()>>,
) -> usize {
    NOW.set(Duration::ZERO);
    let counted = async {
        let until = async |minutes: u32| {
            while NOW.get() < minutes * MINUTE {
                tokio::task::yield_now().await;
            }
            host.cloud.count_calls()
        };
        let before = until(10).await;
        until(70).await - before
    };
    tokio::select! {
        ended = role => panic!("{ended:?}"),
        calls = counted => calls,
    }
}

/// EC2 calls of `labels` and `removal` in an hour: one in each round. `approval` and `bootstrap` call EC2 only for requests, the others
/// never.
fn calls_of_interval_roles() -> usize {
    let looks = [
        labels::REFRESH_INTERVAL,
        removal::RemovalPace::default().interval,
    ];
    let hour = (60 * MINUTE).as_secs();
    let calls = looks.map(|look| usize::try_from(hour.div_ceil(look.as_secs())).unwrap());
    calls.iter().sum()
}

/// EC2 calls of all roles of an instance in an hour.
async fn calls_of_all_roles(host: &TestHost) -> usize {
    let config = node_config();
    let (zone, servers) = (FakeZone::default(), FakeApiServers::default());
    servers.set_ready(&[4]);
    let mut calls = 0;
    for etcd in ["main", "events"] {
        let member = member_with(host, etcd, with_virtual_sleep(MEMBER_PACE));
        let member = calls_in_an_hour(host, member.run_member()).await;
        assert!(member > 0, "{etcd} is looked at");
        calls += member;
    }
    let etcds =
        ["main", "events"].map(|etcd| (etcd.to_owned(), FormationStore::new(&host.store, etcd)));
    let members = MemberNames {
        host: &host.host,
        ec2: &*host.cloud,
        config: &config,
        formations: etcds.into(),
        instance: INSTANCE,
        pace: with_virtual_sleep(NAMES_PACE),
    };
    let members = calls_in_an_hour(host, members.keep_names()).await;
    assert!(members > 0, "names are looked at");
    let keeper = ZoneKeeper {
        ec2: &*host.cloud,
        records: &zone,
        servers: &servers,
        config: &config,
        pace: (READY_PACE, virtual_sleep),
    };
    let published = calls_in_an_hour(host, keeper.keep_published()).await;
    assert!(published > 0, "instances are looked at");
    calls + members + published + calls_of_interval_roles()
}

#[tokio::test]
async fn three_control_planes_at_rest_ask_ec2_at_most_twenty_times_a_minute() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    host.cloud.add_volume("vol-0e", "events");
    let instances = &host.cloud.instances;
    instances
        .lock()
        .unwrap()
        .push(fake_instance(INSTANCE, "10.0.0.4"));
    let calls = calls_of_all_roles(&host).await;
    assert!(
        3 * calls <= 60 * BUDGET,
        "{calls} in an hour, of one instance"
    );
}

/// An instance whose volumes are attached elsewhere waits, possibly for days.
#[tokio::test]
async fn an_instance_that_waits_for_others_slows_down() {
    let host = TestHost::new().await;
    for (volume, etcd) in [("vol-0a", "main"), ("vol-0e", "events")] {
        host.cloud.add_volume(volume, etcd);
        host.cloud.give_volume(volume, "i-0other");
    }
    let calls = calls_of_all_roles(&host).await;
    assert!(calls <= 60 * BUDGET, "{calls} in an hour, of one instance");
}
