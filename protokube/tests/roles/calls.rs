//! How often a control plane asks EC2, in virtual time: AWS counts calls for a whole account.

use crate::etcd::member_with;
use crate::machine::{INSTANCE, Machine, config};
use crate::names::{Servers, Zone, instance};
use futures::FutureExt;
use futures::future::BoxFuture;
use protokube::etcd::FormationStore;
use protokube::names::{MemberNames, ZonePublisher as ZoneKeeper};
use protokube::pace::Pace;
use protokube::roles::{MEMBER_PACE, NAMES_PACE, READY_PACE};
use protokube::{labels, removal};
use std::cell::Cell;
use std::time::Duration;

/// Calls of three control planes in a minute.
const BUDGET: usize = 20;

const MINUTE: Duration = Duration::from_mins(1);

thread_local! {
    /// Virtual time of the one role that runs.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn sleep(time: Duration) -> BoxFuture<'static, ()> {
    NOW.set(NOW.get() + time);
    tokio::task::yield_now().boxed()
}

fn virtually(pace: Pace) -> Pace {
    Pace { sleep, ..pace }
}

/// Calls that a role makes in the hour after its first ten minutes.
async fn in_an_hour(machine: &Machine, role: impl Future<Output = anyhow::Result<()>>) -> usize {
    NOW.set(Duration::ZERO);
    let counted = async {
        let until = async |minutes: u32| {
            while NOW.get() < minutes * MINUTE {
                tokio::task::yield_now().await;
            }
            machine.cloud.calls()
        };
        let before = until(10).await;
        until(70).await - before
    };
    tokio::select! {
        ended = role => panic!("{ended:?}"),
        calls = counted => calls,
    }
}

/// Calls that `labels` and `removal` make in an hour: one in each look, by the clock. `approval` and `bootstrap` ask only when somebody
/// asks them; the others never.
fn by_the_clock() -> usize {
    let looks = [labels::AGAIN, removal::RemovalPace::default().look];
    let hour = (60 * MINUTE).as_secs();
    let calls = looks.map(|look| usize::try_from(hour.div_ceil(look.as_secs())).unwrap());
    calls.iter().sum()
}

/// Calls of all roles of a machine that ask EC2, in an hour.
async fn of_all_roles(machine: &Machine) -> usize {
    let config = config();
    let (zone, servers) = (Zone::default(), Servers::default());
    servers.are(&[4]);
    let mut calls = 0;
    for etcd in ["main", "events"] {
        let member = member_with(machine, etcd, virtually(MEMBER_PACE));
        let member = in_an_hour(machine, member.run_member()).await;
        assert!(member > 0, "{etcd} is looked at");
        calls += member;
    }
    let etcds =
        ["main", "events"].map(|etcd| (etcd.to_owned(), FormationStore::new(&machine.store, etcd)));
    let members = MemberNames {
        host: &machine.host,
        ec2: &*machine.cloud,
        config: &config,
        formations: etcds.into(),
        instance: INSTANCE,
        pace: virtually(NAMES_PACE),
    };
    let members = in_an_hour(machine, members.keep_names()).await;
    assert!(members > 0, "names are looked at");
    let keeper = ZoneKeeper {
        ec2: &*machine.cloud,
        records: &zone,
        servers: &servers,
        config: &config,
        pace: (READY_PACE, sleep),
    };
    let published = in_an_hour(machine, keeper.keep_published()).await;
    assert!(published > 0, "machines are looked at");
    calls + members + published + by_the_clock()
}

#[tokio::test]
async fn three_control_planes_at_rest_ask_ec2_at_most_twenty_times_a_minute() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    machine.cloud.add_volume("vol-0e", "events");
    let instances = &machine.cloud.instances;
    instances
        .lock()
        .unwrap()
        .push(instance(INSTANCE, "10.0.0.4"));
    let calls = of_all_roles(&machine).await;
    assert!(
        3 * calls <= 60 * BUDGET,
        "{calls} in an hour, of one machine"
    );
}

/// A machine whose volumes somebody else has waits, perhaps for days.
#[tokio::test]
async fn a_machine_that_waits_for_others_slows_down() {
    let machine = Machine::new().await;
    for (volume, etcd) in [("vol-0a", "main"), ("vol-0e", "events")] {
        machine.cloud.add_volume(volume, etcd);
        machine.cloud.give(volume, "i-0other");
    }
    let calls = of_all_roles(&machine).await;
    assert!(calls <= 60 * BUDGET, "{calls} in an hour, of one machine");
}
