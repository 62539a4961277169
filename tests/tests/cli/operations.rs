//! The log of operations: who did what to a cluster, and what came of it, however it ended.

use crate::kctl::Kctl;
use crate::plans::stored;
use crate::scenario::{NAME, REGION};
use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

fn records(kctl: &Kctl) -> Vec<Value> {
    let text = kctl.run(&["get", "operations", "-o", "json"]).good();
    serde_json::from_str(&text).expect("a list")
}

/// Command and result of each, the newest first.
fn told(kctl: &Kctl) -> Vec<String> {
    let word = |record: &Value, name: &str| record[name].as_str().expect("text").to_owned();
    let line = |record: &Value| format!("{}: {}", word(record, "command"), word(record, "result"));
    records(kctl).iter().map(line).collect()
}

/// AWS refuses to make subnets now: an update waits in the middle of its changes.
fn stuck(simulator: &Simulator) {
    simulator.faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": 100_000, "code": "RequestLimitExceeded", "message": "later", "status": 503}]));
}

/// Starts an update, and waits until it is in the middle of its changes.
fn started(kctl: &Kctl) -> std::process::Child {
    let before = records(kctl).len();
    let child = kctl.start(&["update", "--yes"], Stdio::null());
    while records(kctl).len() == before {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// The newest operation in full.
fn newest(kctl: &Kctl) -> String {
    let id = records(kctl)[0]["id"].as_str().expect("an id").to_owned();
    kctl.run(&["get", "operation", &id]).good()
}

#[test]
fn success_failure_interrupt_and_kill_are_told_apart() {
    let simulator = Simulator::start();
    let kctl = stored(&simulator);
    assert_eq!(told(&kctl), ["create cluster: done"]);

    simulator.faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": 1, "code": "SubnetLimitExceeded", "message": "too many subnets", "status": 400}]));
    assert_eq!(kctl.run(&["update", "--yes"]).code, 1);
    simulator.faults(&json!([]));
    assert_eq!(told(&kctl)[0], "update: failed");
    let failed = newest(&kctl);
    for words in [
        "ec2:CreateSubnet failed with SubnetLimitExceeded: too many subnets",
        "Result      failed",
        "autoscaling_group/nodes-eu-west-1a",
        "not tried: subnet/eu-west-1a.demo.example.com failed",
    ] {
        assert!(failed.contains(words), "{words}: {failed}");
    }

    stuck(&simulator);
    let mut child = started(&kctl);
    assert_eq!(told(&kctl)[0], "update: running");
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert_eq!(told(&kctl)[0], "update: no end recorded");
    let killed = newest(&kctl);
    assert!(
        killed.contains("no end recorded: it was killed") && killed.contains(" to add, "),
        "{killed}"
    );

    let child = started(&kctl);
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill");
    assert_eq!(kctl.end(child).code, 130);
    simulator.faults(&json!([]));
    assert_eq!(told(&kctl)[0], "update: interrupted");

    kctl.run(&["update", "--yes"]).good();
    assert_eq!(
        told(&kctl),
        [
            "update: done",
            "update: interrupted",
            "update: no end recorded",
            "update: failed",
            "create cluster: done"
        ]
    );
    // Nothing to do is no operation.
    kctl.run(&["update", "--yes"]).good();
    assert_eq!(told(&kctl).len(), 5);
    let table = kctl.run(&["get", "operations"]).good();
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
            .good()
            .contains(REGION)
    );
}

/// A stored cluster in a folder, changed three times.
fn edited() -> Kctl {
    let kctl = Kctl::with_store();
    let create = [
        "create",
        "cluster",
        NAME,
        "--zones",
        "eu-west-1a,eu-west-1b",
        "--dry-run",
    ];
    let spec = kctl.run(&create).good();
    kctl.run_with(&["create", "-f", "-"], &spec).good();
    kctl.run(&[
        "edit",
        "ig",
        "nodes-eu-west-1a",
        "--set",
        "spec.maxSize=5",
        "--set",
        "spec.cloudLabels.Owner=hush",
    ])
    .good();
    kctl.run(&["delete", "ig", "nodes-eu-west-1b", "--yes"])
        .good();
    kctl
}

#[test]
fn changes_of_the_spec_say_who_changed_what_and_no_value() {
    let kctl = edited();
    assert_eq!(
        told(&kctl),
        ["delete instancegroup: done", "edit: done", "create: done"]
    );
    let all = records(&kctl);
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
        kctl.path("store")
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
            .good()
            .contains("hush")
    );
    // A save that changes nothing is no change.
    let before = kctl.run(&["get", "all", "-o", "yaml"]).good();
    kctl.run_with(&["replace", "-f", "-"], &before).good();
    assert_eq!(told(&kctl).len(), 3);
}

#[test]
fn what_cannot_be_read_is_one_line_and_not_the_end() {
    let kctl = edited();
    let log = kctl.path("store").join(NAME).join("operations");
    std::fs::write(log.join("20990101T000000Z-000001.json"), "{\"format\": 2}").expect("a file");
    std::fs::write(log.join("20990101T000000Z-000002.json"), "{\"form").expect("a file");
    let table = kctl.run(&["get", "operations"]).good();
    assert!(
        table.contains("it has format 2, and this kctl reads 1") && table.contains("not JSON"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 6, "{table}");
    assert_eq!(
        kctl.run(&["get", "operations", "--limit", "1", "-o", "name"])
            .good(),
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
    let kctl = edited();
    let ids: Vec<String> = records(&kctl)
        .iter()
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect();
    let detail = kctl
        .run(&["get", "operation", &ids[1][..ids[1].len() - 1]])
        .good();
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
