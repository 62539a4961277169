//! The log of operations: who did what to a cluster, and what came of it, however it ended.

use crate::kctl::Kctl;
use crate::plans::stored_cluster;
use crate::scenario::{NAME, REGION};
use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

fn list_records(kctl: &Kctl) -> Vec<Value> {
    let text = kctl
        .run(&["get", "operations", "-o", "json"])
        .expect_success();
    serde_json::from_str(&text).expect("a list")
}

/// Command and result of each, the newest first.
fn commands_and_results(kctl: &Kctl) -> Vec<String> {
    let word = |record: &Value, name: &str| record[name].as_str().expect("text").to_owned();
    let line = |record: &Value| format!("{}: {}", word(record, "command"), word(record, "result"));
    list_records(kctl).iter().map(line).collect()
}

/// Starts an update, and waits until it is in the middle of its changes, which AWS lets it finish once [`Simulator::set_faults`] says
/// something else.
fn start_update(simulator: &Simulator, kctl: &Kctl) -> std::process::Child {
    let before = list_records(kctl).len();
    simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": 1_000_000, "code": "RequestLimitExceeded", "status": 503}]));
    let child = kctl.start_command(&["update", "--yes"], Stdio::null());
    while list_records(kctl).len() == before {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// The newest operation in full.
fn newest_operation(kctl: &Kctl) -> String {
    let id = list_records(kctl)[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    kctl.run(&["get", "operation", &id]).expect_success()
}

#[test]
fn success_failure_interrupt_and_kill_are_told_apart() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    assert_eq!(commands_and_results(&kctl), ["create cluster: done"]);

    simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": 1, "code": "SubnetLimitExceeded", "message": "too many subnets", "status": 400}]));
    assert_eq!(kctl.run(&["update", "--yes"]).code, 1);
    simulator.set_faults(&json!([]));
    assert_eq!(commands_and_results(&kctl)[0], "update: failed");
    let failed = newest_operation(&kctl);
    for words in [
        "ec2:CreateSubnet failed with SubnetLimitExceeded: too many subnets",
        "Result      failed",
        "autoscaling_group/nodes-eu-west-1a",
        "not tried: subnet/eu-west-1a.demo.example.com failed",
    ] {
        assert!(failed.contains(words), "{words}: {failed}");
    }

    let mut child = start_update(&simulator, &kctl);
    assert_eq!(commands_and_results(&kctl)[0], "update: running");
    child.kill().expect("killed");
    child.wait().expect("gone");
    simulator.set_faults(&json!([]));
    assert_eq!(commands_and_results(&kctl)[0], "update: no end recorded");
    let killed = newest_operation(&kctl);
    assert!(
        killed.contains("no end recorded: it was killed") && killed.contains(" to add, "),
        "{killed}"
    );

    let child = start_update(&simulator, &kctl);
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill");
    simulator.set_faults(&json!([]));
    assert_eq!(kctl.wait_for_end(child).code, 130);
    assert_eq!(commands_and_results(&kctl)[0], "update: interrupted");

    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(
        commands_and_results(&kctl),
        [
            "update: done",
            "update: interrupted",
            "update: no end recorded",
            "update: failed",
            "create cluster: done"
        ]
    );
    // Nothing to do is no operation.
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(commands_and_results(&kctl).len(), 5);
    let table = kctl.run(&["get", "operations"]).expect_success();
    for words in [
        "ID ",
        "STARTED",
        "WHO",
        "tester@",
        "no end recorded",
        "Cluster demo.example.com (new)",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(
        kctl.run(&["get", "operations", "-o", "wide"])
            .expect_success()
            .contains(REGION)
    );
}

/// A stored cluster in a folder, changed three times.
fn edited_cluster() -> Kctl {
    let kctl = Kctl::with_store();
    let create = [
        "create",
        "cluster",
        NAME,
        "--zones",
        "eu-west-1a,eu-west-1b",
        "--dry-run",
    ];
    let spec = kctl.run(&create).expect_success();
    kctl.run_with(&["create", "-f", "-"], &spec)
        .expect_success();
    kctl.run(&[
        "edit",
        "ig",
        "nodes-eu-west-1a",
        "--set",
        "spec.maxSize=5",
        "--set",
        "spec.cloudLabels.Owner=hush",
    ])
    .expect_success();
    kctl.run(&["delete", "ig", "nodes-eu-west-1b", "--yes"])
        .expect_success();
    kctl
}

#[test]
fn changes_of_the_spec_say_who_changed_what_and_no_value() {
    let kctl = edited_cluster();
    assert_eq!(
        commands_and_results(&kctl),
        ["delete instancegroup: done", "edit: done", "create: done"]
    );
    let all = list_records(&kctl);
    let edit = &all[1]["objects"][0];
    assert_eq!(
        (&edit["object"], &edit["action"], &edit["fields"]),
        (
            &json!("InstanceGroup nodes-eu-west-1a"),
            &json!("update"),
            &json!(2)
        )
    );
    let stored = std::fs::read(
        kctl.home_path("store")
            .join(NAME)
            .join("instancegroup/nodes-eu-west-1a"),
    )
    .expect("the object");
    use sha2::{Digest, Sha256};
    let digest: String = Sha256::digest(&stored)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(edit["after"], json!(digest), "the digest of what is stored");
    assert_eq!(all[0]["objects"][0]["action"], "delete");
    assert!(
        !kctl
            .run(&["get", "operations", "-o", "yaml"])
            .expect_success()
            .contains("hush")
    );
    // A save that changes nothing is no change.
    let before = kctl.run(&["get", "all", "-o", "yaml"]).expect_success();
    kctl.run_with(&["replace", "-f", "-"], &before)
        .expect_success();
    assert_eq!(commands_and_results(&kctl).len(), 3);
}

#[test]
fn what_cannot_be_read_is_one_line_and_not_the_end() {
    let kctl = edited_cluster();
    let log = kctl.home_path("store").join(NAME).join("operations");
    std::fs::write(log.join("20990101T000000Z-000001.json"), "{\"format\": 2}").expect("a file");
    std::fs::write(log.join("20990101T000000Z-000002.json"), "{\"form").expect("a file");
    let table = kctl.run(&["get", "operations"]).expect_success();
    assert!(
        table.contains("it has format 2, and this kctl reads 1") && table.contains("not JSON"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 6, "{table}");
    assert_eq!(
        kctl.run(&["get", "operations", "--limit", "1", "-o", "name"])
            .expect_success(),
        "operation/20990101T000000Z-000002\n"
    );
    let limited = kctl.run(&["get", "operations", "--limit", "2"]);
    assert!(
        limited.err.contains("3 older ones are not shown"),
        "{}",
        limited.err
    );
}

#[test]
fn an_operation_is_named_by_the_beginning_of_its_id() {
    let kctl = edited_cluster();
    let ids: Vec<String> = list_records(&kctl)
        .iter()
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect();
    let detail = kctl
        .run(&["get", "operation", &ids[1][..ids[1].len() - 1]])
        .expect_success();
    assert!(
        detail.contains("InstanceGroup nodes-eu-west-1a (2 fields)"),
        "{detail}"
    );
    let ambiguous = kctl.run(&["get", "operation", "2"]);
    assert_eq!(ambiguous.code, 2);
    assert!(
        ids.iter().all(|id| ambiguous.err.contains(id.as_str())),
        "{}",
        ambiguous.err
    );
    let mut typo = ids[0].clone();
    typo.replace_range(9..10, "X");
    let unknown = kctl.run(&["get", "operation", &typo]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean"), "{}", unknown.err);
    let wrong = kctl.run(&["get", "operations", "--name", "dem.example.com"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("did you mean demo.example.com"),
        "{}",
        wrong.err
    );
}
