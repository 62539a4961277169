//! `kctl etcd status`. The lab shows the status of a real etcd.

use crate::instances::Cluster;
use crate::scenario::NAME;
use serde_json::{Value, json};

#[test]
fn the_members_are_shown_as_they_report_without_a_call_to_aws() {
    let cluster = Cluster::new_cluster(1);
    let command = ["etcd", "status", NAME];
    let nothing = cluster.kctl.run(&command);
    assert_eq!(nothing.code, 0, "{}", nothing.all_output());
    assert!(nothing.err.contains("has formed etcd"), "{}", nothing.err);

    let record = json!({"format": 1, "state": {"formed": {"clusterId": "c1", "token": "t"}},
        "members": {"a": {"volume": "vol-1", "blank": true}}});
    cluster.store_object("etcd/main.json", &record.to_string());
    cluster.store_object("etcd/formed/main/c1", &record.to_string());
    let gone = cluster.kctl.run(&command).expect_success();
    assert!(
        gone.contains("main: no instance reports member a with volume vol-1"),
        "{gone}"
    );

    let running = json!({"name": "etcd-a", "id": "8e", "clusterId": "c1", "leader": "8e", "term": 2, "revision": 7,
        "version": "3.6.5", "databaseBytes": 20480, "alarms": ["NOSPACE"]});
    let status = json!({"format": 1, "etcd": "main", "instance": "i-1", "written": "2026-11-20T10:00:00Z", "volume": "vol-1",
        "running": running, "unknown": 1});
    cluster.store_object("etcd/main/i-1.status.json", &status.to_string());
    cluster.store_object("etcd/events/i-1.status.json", "{");
    cluster.simulator.forget_calls();
    let shown = cluster.kctl.run(&[&command[..], &["-o", "json"]].concat());
    assert_eq!(shown.code, 0, "{}", shown.all_output());
    assert!(
        shown
            .err
            .contains("etcd/events/i-1.status.json is not the status of a member"),
        "{}",
        shown.err
    );
    let document: Value = serde_json::from_str(&shown.out).expect("JSON");
    let member = &document["members"][0];
    assert_eq!(
        (&member["role"], &member["running"]["revision"]),
        (&json!("leader"), &json!(7))
    );
    let problems = document["problems"].as_array().expect("a list");
    assert!(
        problems[0]
            .as_str()
            .is_some_and(|text| text.contains("has reported nothing for"))
            && problems[1] == "main on i-1: alarm NOSPACE: etcd accepts no writes"
            && problems.len() == 2,
        "{problems:?}"
    );
    assert_eq!(cluster.simulator.calls_by_operation()["aws"], json!(0));
}
