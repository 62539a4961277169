//! `kill -9` at any moment of an apply, while AWS throttles and fails: the next run finishes the job without waiting,
//! nothing is there twice, and nothing is left after the cluster is deleted. `KCTL_KILLS` says at how many moments (5),
//! `KCTL_SEED` which. A moment is a number of calls: seconds are others on a busy machine.

use crate::kctl::{CLUSTER, Operator};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::Duration;

/// How many things of each kind there are, but for the log, where every run is on record.
fn count_kinds(listing: &BTreeSet<String>) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    let logged = format!("{CLUSTER}/operations/");
    for line in listing.iter().filter(|line| !line.contains(&logged)) {
        let kind: Vec<&str> = line.split(' ').take(2).collect();
        *kinds.entry(kind.join(" ")).or_default() += 1;
    }
    kinds
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A number below `of`, another one each time (Knuth's MMIX generator).
fn random_below(seed: &mut u64, of: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % of.max(1)
}

/// What AWS does to the calls of a run: throttles, fails, and loses an answer.
fn bad_weather(operator: &Operator) {
    operator.simulator.set_faults(&json!([
        {"service": "ec2", "code": "RequestLimitExceeded", "status": 503, "skip": 10, "times": 8},
        {"service": "iam", "operation": "Create*", "code": "Throttling", "status": 400, "skip": 1, "times": 3},
        {"service": "s3", "operation": "PutObject", "code": "SlowDown", "status": 503, "skip": 4, "times": 3},
        {"operation": "Create*", "code": "InternalError", "status": 500, "skip": 8, "times": 2},
        {"operation": "Create*", "code": "kill-connection", "after": true, "skip": 14, "times": 1},
    ]));
}

fn create_cluster(operator: &Operator) {
    operator.simulator.set_faults(&json!([]));
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    bad_weather(operator);
}

#[test]
fn an_apply_killed_at_any_moment_is_finished_by_the_next() {
    let (kills, mut seed) = (
        number_from_environment("KCTL_KILLS", 5),
        number_from_environment("KCTL_SEED", 1),
    );
    println!("KCTL_KILLS={kills} KCTL_SEED={seed}");
    let operator = Operator::new();
    let before = operator.list_resources();
    let delete = ["delete", "cluster", CLUSTER, "--yes"];

    create_cluster(&operator);
    operator.simulator.forget_calls();
    operator.run_ok(&["update", "--yes"]);
    let whole = operator.simulator.call_count();
    let undisturbed = count_kinds(&operator.list_resources());
    operator.run_ok(&delete);

    let mut hit = 0;
    for kill in 0..kills {
        create_cluster(&operator);
        operator.simulator.forget_calls();
        let mut command = operator.kctl_command(&["update", "--yes"]);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = quiet.spawn().expect("kctl runs");
        // Somewhere in its part of the whole.
        let (from, to) = (whole * kill / kills, whole * (kill + 1) / kills);
        let moment = from + random_below(&mut seed, to - from);
        let ended = |run: &mut Child| run.try_wait().expect("a process").is_some();
        while operator.simulator.call_count() < moment && !ended(&mut run) {
            std::thread::sleep(Duration::from_millis(1));
        }
        hit += usize::from(!ended(&mut run));
        let _ = run.kill();
        run.wait().expect("it ends");

        let again = operator.run_ok(&["update", "--yes"]);
        let waited = again.stderr.contains("waiting, for");
        assert!(!waited, "for a process that is dead: {}", again.stderr);
        operator.run_ok(&["update", "--exit-code"]);
        let listing = operator.list_resources();
        assert_eq!(
            count_kinds(&listing),
            undisturbed,
            "killed after {moment} calls: {listing:#?}"
        );
        operator.run_ok(&delete);
        assert_eq!(
            operator.list_resources(),
            before,
            "killed after {moment} calls"
        );
    }
    println!("{hit} of {kills} runs were killed before they had ended, over {whole} calls");
    assert!(hit > 0, "no run was killed");
}
