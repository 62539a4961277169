//! Seconds pass between what a command reads and its lock: that alone is no change of the cluster, and costs no call.

use crate::kctl::{CLUSTER, KctlOutput, Operator};
use std::collections::BTreeMap;

/// Milliseconds of each call: between the listing before the lock and the one under it an object gets seconds older.
const SLOW: u32 = 250;

/// How calls begin that are repeated until AWS no longer refuses them, so as often as time passes.
const REPEATED: &[&str] = &["ec2.Delete", "ec2.Detach", "events."];

/// How often each operation was called, by its name such as `s3.PutObject`.
type Calls = BTreeMap<String, u64>;

/// Runs a command that does not renew its lock meanwhile; says how it ended and what it asked.
fn run_counted(operator: &Operator, words: &[&str]) -> (KctlOutput, Calls) {
    operator.simulator.forget_calls();
    let mut command = operator.kctl_command(words);
    let ended = command.env("KCTL_LOCK_LIFE", "10m").output();
    let ended = KctlOutput::from(ended.expect("kctl runs"));
    assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    let said = &ended.stderr;
    assert!(!said.contains("in the meantime"), "{words:?}: {said}");
    for line in said.lines().filter(|line| line.starts_with("warning:")) {
        let times = said.lines().filter(|other| *other == line).count();
        assert_eq!(times, 1, "{words:?}: {line}");
    }
    let calls = operator.simulator.calls_by_operation();
    let calls = serde_json::from_value(calls["calls"].clone());
    (ended, calls.expect("counts"))
}

fn total(calls: &Calls) -> u64 {
    calls.values().sum()
}

/// The calls of each turn of a cluster's life, by name of the turn.
fn calls_of_a_life(latency: u32) -> Vec<(&'static str, Calls)> {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.simulator.set_latency(latency);
    let mut turns = Vec::new();
    let mut turn = |name: &'static str, words: &[&str]| {
        let (_, calls) = run_counted(&operator, words);
        println!("{latency} ms, {name}: {}", total(&calls));
        turns.push((name, calls));
    };
    turn("first apply", &["update", "--yes"]);
    turn("preview", &["update"]);
    turn("no change", &["update", "--yes"]);
    operator.run_ok(&["edit", "ig", "nodes-us-east-1a", "--set", "spec.maxSize=3"]);
    let file = operator.home_path("plan.json");
    let file = file.to_str().expect("a path");
    turn("saving a plan", &["update", "--plan-out", file]);
    turn("saved plan", &["update", "--plan", file, "--yes"]);
    turn("preview of a deletion", &["delete", "cluster", CLUSTER]);
    turn("deletion", &["delete", "cluster", CLUSTER, "--yes"]);
    turns
}

#[test]
fn time_alone_is_no_change_and_costs_no_call() {
    let (fast, slow) = std::thread::scope(|scope| {
        let slow = scope.spawn(|| calls_of_a_life(SLOW));
        (calls_of_a_life(0), slow.join().expect("it ends"))
    });
    for ((turn, mut fast), (_, mut slow)) in fast.iter().cloned().zip(slow) {
        for calls in [&mut fast, &mut slow] {
            calls.retain(|call, _| !REPEATED.iter().any(|repeated| call.starts_with(repeated)));
        }
        assert_eq!(fast, slow, "{turn}");
    }
    let turn = |name: &str| total(&fast.iter().find(|turn| turn.0 == name).expect("a turn").1);
    let (preview, applied) = (turn("preview"), turn("no change"));
    assert!(
        applied <= preview + 3,
        "{applied} calls under the lock, {preview} without it"
    );
}
