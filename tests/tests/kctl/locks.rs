//! Two operators at one cluster: who comes second is told, and who was stopped too long starts nothing more.

use crate::kctl::{CLUSTER, KctlOutput, Operator, REGION};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The life of a lock whose end a test waits for.
const LIFE: (&str, &str) = ("KCTL_LOCK_LIFE", "6s");

/// What changes nothing, by how its operation's name begins.
const READS: [&str; 4] = ["Describe", "Get", "Head", "List"];

fn start_command(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("kctl runs")
}

fn wait_for_end(child: Child) -> KctlOutput {
    child.wait_with_output().expect("its end").into()
}

fn send_signal(name: &str, child: &Child) {
    let mut kill = Command::new("kill");
    let sent = kill.args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

fn short_pause() {
    std::thread::sleep(Duration::from_millis(50));
}

fn until_called(operator: &Operator, call: &str) {
    while operator.simulator.calls_by_operation()["calls"]
        .get(call)
        .is_none()
    {
        short_pause();
    }
}

/// Every object of the state store, with when it was written and what it holds.
fn list_stored_objects(operator: &Operator) -> String {
    operator.simulator.run_python(
        REGION,
        "print(*[(o['Key'], o['LastModified'], o['ETag']) for o in boto('s3').list_objects_v2(Bucket='state')['Contents']])",
    )
}

fn operation_status(operator: &Operator) -> Value {
    let status = operator.run_ok(&["lock", "status", "-o", "json"]);
    serde_json::from_str(&status.stdout).expect("JSON")
}

/// AWS throttles the last steps of an apply until something else is said: it does not end meanwhile.
fn held_up() -> Value {
    json!({"operation": "CreateAutoScalingGroup", "code": "RequestLimitExceeded", "status": 503, "times": 1_000_000})
}

/// A cloud, and a cluster that is not made yet.
fn stored_cluster() -> Operator {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator
}

#[test]
fn of_two_operators_one_works_and_the_other_hears_who_it_is() {
    let operator = stored_cluster();
    operator.simulator.set_faults(&json!([held_up()]));
    let mut first = start_command(
        operator
            .kctl_command(&["update", "--yes"])
            .env("USER", "alice"),
    );
    until_called(&operator, "ec2.CreateVpc");

    let second = operator.run(&["update", "--yes"]);
    assert_eq!(second.code, Some(4), "{}", second.stderr);
    for words in [
        "prod.example.com is locked by alice@",
        "(kctl update) since",
        "kctl lock status prod.example.com",
        "the lock is free in",
    ] {
        assert!(second.stderr.contains(words), "{words}: {}", second.stderr);
    }
    let seen = operation_status(&operator);
    assert_eq!(
        (&seen["state"], &seen["command"]),
        (&json!("alive"), &json!("update"))
    );
    let release = operator.run(&["lock", "release", "--yes"]);
    assert_eq!(release.code, Some(4), "{}", release.stderr);
    let ended = first.try_wait().expect("a process");
    assert!(
        ended.is_none(),
        "the second was told while the first was at it"
    );

    operator.simulator.set_faults(&json!([]));
    let first = wait_for_end(first);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(operation_status(&operator)["state"], "free");
    operator.run_ok(&["update", "--exit-code"]);
}

#[test]
fn who_was_stopped_past_the_life_of_the_lock_starts_no_write_when_it_goes_on() {
    let operator = Operator::new();
    let before = operator.list_resources();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.simulator.set_latency(100);
    let first = start_command(
        operator
            .kctl_command(&["update", "--yes"])
            .env(LIFE.0, LIFE.1),
    );
    until_called(&operator, "ec2.CreateSubnet");
    send_signal("-STOP", &first);
    operator.simulator.set_latency(0);

    let mut second = operator.kctl_command(&["update", "--yes", "--lock-wait", "5m"]);
    let second = wait_for_end(start_command(&mut second));
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    for words in [
        "waiting, for 5m00s at most: locked by",
        "took over a lock that has expired (6s)",
    ] {
        assert!(second.stderr.contains(words), "{words}: {}", second.stderr);
    }

    operator.simulator.forget_calls();
    let stored = list_stored_objects(&operator);
    send_signal("-CONT", &first);
    let first = wait_for_end(first);
    let calls = operator.simulator.calls_by_operation();
    assert_eq!(list_stored_objects(&operator), stored);
    assert_eq!(first.code, Some(4), "{}", first.stderr);
    assert!(
        first.stderr.contains("the lock was lost"),
        "{}",
        first.stderr
    );
    let calls = calls["calls"].as_object().expect("counts");
    // A renewal may have been about to be sent when the process was stopped: the store refuses it, since it names the version that it
    // replaces.
    let renewal = "s3.PutObject";
    let writes: Vec<_> = calls
        .keys()
        .filter(|call| {
            let (_, operation) = call.split_once('.').expect("service.operation");
            *call != renewal && !READS.iter().any(|read| operation.starts_with(read))
        })
        .collect();
    assert!(writes.is_empty(), "after it went on: {writes:?}");

    operator.run_ok(&["update", "--exit-code"]);
    operator.run_ok(&["delete", "cluster", CLUSTER, "--yes"]);
    assert_eq!(operator.list_resources(), before);
}

#[test]
fn who_was_stopped_past_the_life_of_the_lock_goes_on_if_nobody_took_it() {
    let operator = stored_cluster();
    operator.simulator.set_latency(100);
    let going = start_command(
        operator
            .kctl_command(&["update", "--yes"])
            .env(LIFE.0, LIFE.1),
    );
    until_called(&operator, "ec2.CreateSubnet");
    send_signal("-STOP", &going);
    operator.simulator.set_latency(0);
    operator.simulator.wait_until_idle();
    operator.simulator.forget_calls();
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(operator.simulator.call_count(), 0);
    assert_eq!(operation_status(&operator)["state"], "expired");
    send_signal("-CONT", &going);
    let went_on = wait_for_end(going);
    assert_eq!(went_on.code, Some(0), "{}", went_on.stderr);
    let words = "the lock is held again, and no other process had it";
    assert!(went_on.stderr.contains(words), "{}", went_on.stderr);
    assert_eq!(operation_status(&operator)["state"], "free");
    operator.run_ok(&["update", "--exit-code"]);
}

/// A state store that answers nothing for longer than a lock lives, while the command is at this call.
fn goes_on_after_an_outage(operator: &Operator, words: &[&str], at: &str) {
    let (_, operation) = at.split_once('.').expect("service.operation");
    let held_up = json!({"operation": operation, "code": "RequestLimitExceeded", "status": 503, "times": 1_000_000});
    let broken =
        json!({"service": "s3", "code": "InternalError", "status": 500, "times": 1_000_000});
    operator.simulator.set_faults(&json!([held_up]));
    let going = start_command(operator.kctl_command(words).env(LIFE.0, LIFE.1));
    until_called(operator, at);
    operator.simulator.set_faults(&json!([broken, held_up]));
    std::thread::sleep(Duration::from_secs(8));
    // Calls of before the pause have ended; the lock is asked for, and nothing else is done.
    operator.simulator.forget_calls();
    std::thread::sleep(Duration::from_secs(2));
    let calls = operator.simulator.calls_by_operation();
    let asked = calls["calls"].as_object().expect("counts");
    assert!(!asked.is_empty(), "the lock is not asked for");
    assert!(
        asked.keys().all(|call| call.starts_with("s3.Get")),
        "{calls}"
    );
    operator.simulator.set_faults(&json!([]));
    let went_on = wait_for_end(going);
    assert_eq!(went_on.code, Some(0), "{words:?}: {}", went_on.stderr);
    for said in [
        "the lock could not be renewed in time",
        "the lock is held again, and no other process had it",
    ] {
        assert!(went_on.stderr.contains(said), "{said}: {}", went_on.stderr);
    }
}

#[test]
fn a_command_outlives_an_outage_of_the_store_that_is_longer_than_its_lock() {
    let operator = Operator::new();
    let before = operator.list_resources();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    goes_on_after_an_outage(
        &operator,
        &["update", "--yes"],
        "autoscaling.CreateAutoScalingGroup",
    );
    operator.run_ok(&["update", "--exit-code"]);
    operator.simulator.forget_calls();
    let deletion = ["delete", "cluster", CLUSTER, "--yes"];
    goes_on_after_an_outage(&operator, &deletion, "autoscaling.DeleteAutoScalingGroup");
    assert_eq!(operator.list_resources(), before);
}

#[test]
fn a_lock_is_renewed_through_failures_and_lost_when_they_do_not_end() {
    // The pause lasts ten lives.
    const LIFE: (&str, &str) = ("KCTL_LOCK_LIFE", "3s");
    let operator = stored_cluster();
    let broken = |times: u32| json!([{"service": "s3", "operation": "PutObject", "code": "InternalError", "status": 500, "times": times}, held_up()]);
    operator.simulator.set_faults(&broken(0));
    let going = start_command(
        operator
            .kctl_command(&["update", "--yes"])
            .env(LIFE.0, LIFE.1),
    );
    until_called(&operator, "autoscaling.CreateAutoScalingGroup");
    operator.simulator.set_faults(&broken(3));
    let renewals = || {
        operation_status(&operator)["renewals"]
            .as_u64()
            .expect("it is held")
    };
    let before = renewals();
    while operator.simulator.faults_left()[0]["times"] != 0 || renewals() == before {
        short_pause();
    }
    operator.simulator.set_faults(&broken(1_000_000));
    let lost = wait_for_end(going);
    assert_eq!(lost.code, Some(4), "{}", lost.stderr);
    for words in [
        "the lock could not be renewed in time",
        "the lock was lost: nothing further was started",
    ] {
        assert!(lost.stderr.contains(words), "{words}: {}", lost.stderr);
    }
    operator.simulator.set_faults(&json!([]));
    let again = operator.run_ok(&["update", "--yes"]);
    let took = "took over a lock whose holder on this computer has ended";
    assert!(again.stderr.contains(took), "{}", again.stderr);
    operator.run_ok(&["update", "--exit-code"]);
}

#[test]
fn a_lock_is_released_if_its_holder_is_dead_or_by_force() {
    let operator = stored_cluster();
    operator.simulator.set_faults(&json!([held_up()]));
    let mut killed = start_command(&mut operator.kctl_command(&["update", "--yes"]));
    until_called(&operator, "ec2.CreateVpc");
    killed.kill().expect("killed");
    killed.wait().expect("gone");
    assert_eq!(operation_status(&operator)["state"], "dead");
    let asks = operator.run(&["lock", "release"]);
    assert_eq!(
        asks.code,
        Some(2),
        "without a terminal it needs --yes: {}",
        asks.stderr
    );
    operator.run_ok(&["lock", "release", "--yes"]);
    assert_eq!(operation_status(&operator)["state"], "free");

    operator.simulator.forget_calls();
    let alive = start_command(
        operator
            .kctl_command(&["update", "--yes"])
            .env(LIFE.0, LIFE.1),
    );
    until_called(&operator, "autoscaling.CreateAutoScalingGroup");
    operator.run_ok(&["lock", "release", "--force", "--yes"]);
    let alive = wait_for_end(alive);
    assert_eq!(alive.code, Some(4), "{}", alive.stderr);
    let lost = "another process took over the lock";
    assert!(alive.stderr.contains(lost), "{}", alive.stderr);
    operator.simulator.set_faults(&json!([]));
    operator.run_ok(&["update", "--yes"]);
}
