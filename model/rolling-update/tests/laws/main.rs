//! The laws of a rolling update, in virtual time, with a process that is killed at any action. KCTL_ROLL_SEEDS: how many
//! clusters; KCTL_ROLL_NODES: the largest one of the comparison with a serial roll.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test that meets the unexpected fails, and prints its figures"
)]

mod fleet;

use fleet::{Fleet, group};
use node::config::Role;
use rolling_update::{
    Action, Condition, Mark, OnDrainTimeout, Progress, Record, RollingInstance, Settings, State,
    decide,
};

/// How often a process is killed at most: one that is killed again and again within a timeout never sees it end.
const MOST_KILLS: usize = 100;

/// Rolls a fleet with a process that is killed now and then; the state at the end and the time it took.
fn roll(fleet: &mut Fleet, kills: u64, deaths: u64) -> (State, i64) {
    roll_with(fleet, &Settings::default(), kills, deaths)
}

fn roll_with(fleet: &mut Fleet, settings: &Settings, kills: u64, deaths: u64) -> (State, i64) {
    let record = Record {
        operation: "op".to_owned(),
        ..Record::default()
    };
    let (began, mut progress, mut killed) = (fleet.now, Progress::default(), 0);
    loop {
        let decision = decide(&fleet.observe(), &record, settings, &mut progress);
        for action in &decision.actions {
            if killed < MOST_KILLS && fleet.lots.chance(kills) {
                killed += 1;
                progress = Progress::default();
                break;
            }
            if fleet.act(action) {
                progress.succeed(action);
            } else {
                progress.fail(action, "it is not allowed");
            }
        }
        if decision.state != State::Going {
            return (decision.state, fleet.now - began);
        }
        if deaths > 0 && fleet.lots.up_to(1000) < deaths {
            let workers: Vec<String> = fleet
                .instances
                .keys()
                .filter(|id| fleet.role(id) == Role::Node)
                .cloned()
                .collect();
            let at = fleet.lots.up_to(workers.len() as u64) as usize;
            if let Some(id) = workers.get(at) {
                let gone = fleet.now + 30;
                let instance = fleet.instances.get_mut(id).unwrap();
                (instance.seen.condition, instance.changes) = (Condition::Leaving, gone);
            }
        }
        fleet.pass(5);
        if fleet.now - began > 200_000 {
            return (decision.state, fleet.now - began);
        }
    }
}

fn seeds() -> u64 {
    std::env::var("KCTL_ROLL_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

#[test]
fn a_rolling_update_replaces_everything_within_its_limits_and_leaves_no_mark() {
    for seed in 0..seeds() {
        let mut fleet = Fleet::new(seed);
        let (kills, deaths) = (
            [0, 10, 30][(seed % 3) as usize],
            [0, 0, 5, 20][(seed % 4) as usize],
        );
        let (state, took) = roll(&mut fleet, kills, deaths);
        let left: Vec<&RollingInstance> = fleet.instances.values().map(|one| &one.seen).collect();
        assert_eq!(fleet.broken_law, None, "seed {seed}");
        assert_eq!(state, State::Done, "seed {seed} after {took} s: {left:#?}");
        let mut warm = fleet.warm.values().map(|one| &one.seen);
        let outdated = warm.find(|one| one.is_outdated());
        assert_eq!(outdated, None, "seed {seed}");
        for instance in fleet.instances.values() {
            let seen = &instance.seen;
            assert_eq!(
                (seen.outdated.as_ref(), seen.attached),
                (None, true),
                "seed {seed}: {seen:?}"
            );
            if let Some(node) = &seen.node {
                assert_eq!(node.mark, None, "seed {seed}: {seen:?}");
                assert!(
                    !node.tainted && node.cordoned == instance.by_hand,
                    "seed {seed}: {seen:?}"
                );
            }
        }
    }
}

/// Auto Scaling lists them until its next health check, and for ever while those are suspended.
#[test]
fn instances_of_a_pool_that_stay_listed_are_terminated_once_and_hold_nothing_up() {
    for seed in 0..seeds() {
        let mut fleet = Fleet::new(seed);
        fleet.lingers = true;
        let (state, took) = roll(&mut fleet, 0, 0);
        assert_eq!(fleet.broken_law, None, "seed {seed}");
        assert_eq!(state, State::Done, "seed {seed} after {took} s");
        let mut instances = fleet.instances.values();
        let outdated = instances.find(|one| one.seen.outdated.is_some());
        assert!(outdated.is_none(), "seed {seed}");
    }
}

/// Pods that never end, instances that cannot be terminated, an etcd member that stays ill, a person who uncordons Nodes.
#[test]
fn whatever_hangs_a_rolling_update_ends_and_what_it_does_not_replace_is_schedulable_again() {
    let mut stops = 0;
    for seed in 0..seeds() {
        let mut fleet = Fleet::new(seed);
        let settings = Settings {
            on_drain_timeout: [
                OnDrainTimeout::Fail,
                OnDrainTimeout::Force,
                OnDrainTimeout::Skip,
            ][(seed % 3) as usize],
            ..Settings::default()
        };
        fleet.may_lose_pods = seed % 3 != 0;
        for number in 0..fleet.pods.len() {
            fleet.pods[number].hangs = fleet.lots.chance(5);
        }
        if fleet.lots.chance(30) {
            fleet.kept.insert("i-0001".to_owned());
        }
        if fleet.lots.chance(30) {
            fleet.kept.insert("i-0007".to_owned());
        }
        if fleet.lots.chance(20) {
            fleet.sick_member = Some("control-plane-0".to_owned());
        }
        let (state, took) = roll_with(&mut fleet, &settings, [0, 5][(seed % 2) as usize], 0);
        assert_ne!(state, State::Going, "seed {seed} after {took} s");
        assert_eq!(fleet.broken_law, None, "seed {seed}");
        stops += u64::from(state != State::Done);
        for instance in fleet.instances.values() {
            let seen = &instance.seen;
            if let Some(node) = seen
                .node
                .as_ref()
                .filter(|_| seen.condition == Condition::Ready)
            {
                assert_eq!(node.mark, None, "seed {seed}: {seen:?}");
                let is_free = !node.tainted && node.cordoned == instance.by_hand;
                assert!(is_free, "seed {seed}: {seen:?}");
            }
        }
    }
    assert!(stops > 0 && stops < seeds(), "{stops} stopped");
}

#[test]
fn a_node_that_a_person_uncordons_during_its_drain_is_cordoned_and_drained_again() {
    let mut fleet = Fleet::new(3);
    let mut ids = fleet.instances.keys();
    let id = ids.find(|id| fleet.role(id) == Role::Node).unwrap().clone();
    fleet.instances.get_mut(&id).unwrap().seen.outdated = Some("older".to_owned());
    let mark = Mark {
        drained: Some(fleet.now),
        ..Mark::default()
    };
    let node = fleet.instances.get_mut(&id).unwrap().seen.node.as_mut();
    let node = node.unwrap();
    (node.cordoned, node.mark) = (false, Some(mark));
    let decision = decide(
        &fleet.observe(),
        &Record::default(),
        &Settings::default(),
        &mut Progress::default(),
    );
    let expected = Action::Cordon {
        instance: id,
        mark: Mark::default(),
    };
    assert!(decision.actions.contains(&expected), "{decision:?}");
}

#[test]
fn a_second_rolling_update_of_what_is_current_does_nothing() {
    for seed in 0..seeds() / 10 {
        let mut fleet = Fleet::new(seed);
        roll(&mut fleet, 0, 0);
        let decision = decide(
            &fleet.observe(),
            &Record::default(),
            &Settings::default(),
            &mut Progress::default(),
        );
        assert_eq!(
            (decision.actions, decision.state),
            (vec![], State::Done),
            "seed {seed}"
        );
    }
}

#[test]
fn a_mark_of_an_operation_that_was_interrupted_is_gone_on_with() {
    let mut fleet = Fleet::new(3);
    let id = fleet
        .instances
        .keys()
        .find(|id| fleet.role(id) == Role::Node)
        .unwrap()
        .clone();
    let mark = Mark {
        operation: "another".to_owned(),
        since: fleet.now,
        ..Mark::default()
    };
    fleet.instances.get_mut(&id).unwrap().seen.outdated = Some("older".to_owned());
    fleet.act(&Action::Cordon {
        instance: id.clone(),
        mark,
    });
    let (state, _) = roll(&mut fleet, 0, 0);
    assert_eq!(state, State::Done);
    assert!(!fleet.instances.contains_key(&id));
}

/// What a roll one instance after the other takes with kOps' waits: drain, 5 s, termination, 15 s, then two healthy
/// validations 10 s apart, asked every 30 s.
fn serial_seconds(fleet: &mut Fleet) -> i64 {
    let outdated: Vec<String> = fleet
        .instances
        .values()
        .filter(|one| one.seen.outdated.is_some())
        .map(|one| one.seen.id.clone())
        .collect();
    let boots: i64 = outdated
        .iter()
        .map(|_| fleet.boot.0 + fleet.lots.up_to(fleet.boot.1) as i64)
        .sum();
    let drain = 20;
    boots + outdated.len() as i64 * (drain + 5 + 15 + 30)
}

#[test]
fn with_a_surge_of_a_quarter_it_takes_at_most_a_third_of_a_serial_roll() {
    let most: u64 = std::env::var("KCTL_ROLL_NODES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    for desired in [10, 100, 1_000, 5_000] {
        if desired as u64 > most {
            continue;
        }
        let surge = rolling_update::resolve_surge(Some("25%"), desired).unwrap();
        let mut fleet = Fleet::new(1);
        fleet.instances.clear();
        fleet.pods.clear();
        fleet.groups = vec![group("nodes", Role::Node, desired, surge, 0)];
        fleet.boot = (140, 0);
        let nodes = fleet.groups[0].clone();
        for _ in 0..desired {
            fleet.launch(&nodes, Some("older".to_owned()), true);
        }
        let serial = serial_seconds(&mut fleet);
        let (state, took) = roll(&mut fleet, 0, 0);
        assert_eq!((state, fleet.broken_law.take()), (State::Done, None));
        println!("{desired} nodes: {took} s, serial {serial} s");
        assert!(
            took * 3 <= serial,
            "{desired} nodes: {took} s, serial {serial} s"
        );
    }
}
