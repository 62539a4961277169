//! What the members of etcd report, as `kctl etcd status` and `kctl validate` show it. The lab shows the status of a real etcd.

use crate::instances::Cluster;
use crate::scenario::NAME;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[test]
fn the_members_are_shown_as_they_report_without_a_call_to_aws() {
    let cluster = Cluster::new_cluster(1);
    let command = ["etcd", "status", NAME];
    let nothing = cluster.kctl.run(&command);
    assert_eq!(nothing.code, 0, "{}", nothing.all_output());
    assert!(nothing.err.contains("has formed etcd"), "{}", nothing.err);

    let record = json!({"format": 1, "generation": {"clusterId": "c1", "token": "t"},
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
            && problems[1] == "main: alarm NOSPACE: etcd accepts no writes"
            && problems.len() == 2,
        "{problems:?}"
    );
    assert_eq!(cluster.simulator.calls_by_operation()["aws"], json!(0));
}

/// By the clock of the backup store: what the instance that stores changes says of its own is four days old here.
#[test]
fn validate_says_up_to_when_etcd_can_be_restored_and_that_a_part_is_missing() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    cluster.store_object("etcd/main.json", &record(&json!({})));
    cluster.report_member(20, None, &json!({}));
    let state = json!({"format": 1, "changes": {"snapshot": "s1", "sequence": 2, "revision": 4002, "instance": "i-1",
        "at": "2026-11-20T10:00:00Z"}});
    cluster.store_object("etcd/main/backups.json", &state.to_string());
    let manifest = json!({"format": 1, "name": "s1", "cluster": NAME, "etcd": "main", "reason": "schedule", "clusterId": "c1",
        "takenAt": "2026-11-20T10:00:00Z", "bytes": 1, "sha256": "", "compressedBytes": 1, "compressedSha256": "", "kctlVersion": "1",
        "verified": {"at": "", "revision": 4000, "compacted": 0, "hash": 0, "keys": 0, "seconds": 1}});
    let stored = |file: &str, body: &str| {
        cluster.store_object(&format!("backups/etcd/main/s1/{file}"), body);
    };
    stored("manifest.json", &manifest.to_string());
    for file in ["etcd.backup.gz", "changes/00000001", "changes/00000002"] {
        stored(file, "x");
    }
    let command = ["validate", NAME, "--api-server", &api.url];
    let validated = |code: i32| {
        let ran = cluster.kctl.run(&[&command[..], &["-o", "json"]].concat());
        assert_eq!(ran.code, code, "{}", ran.all_output());
        serde_json::from_str::<Value>(&ran.out).expect("JSON")
    };
    let report = validated(0);
    let row = &report["restorable"][0];
    assert_eq!(
        (&row["etcd"], &row["snapshot"], &row["parts"]),
        (&json!("main"), &json!("s1"), &json!(2))
    );
    assert!(
        row["ageSeconds"].as_u64().is_some_and(|age| age < 120) && row["until"].is_string(),
        "{report}"
    );
    let shown = cluster.kctl.run(&command).expect_success();
    assert!(shown.contains("RESTORABLE UNTIL"), "{shown}");
    // The status reads the state store alone.
    let status = ["etcd", "status", NAME, "-o", "json"];
    let status = cluster.kctl.run(&status).expect_success();
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let told = &status["restorable"][0];
    assert_eq!(
        (&told["until"], &told["clock"]),
        (&json!("2026-11-20T10:00:00Z"), &json!("i-1"))
    );

    stored("changes/00000004", "x");
    let found = etcd_findings(&validated(3));
    assert!(
        found.len() == 1
            && found[0]
                .1
                .contains("part 3 of the changes after s1 is missing"),
        "{found:?}"
    );
}

/// A record of `main` whose member `a` is on `vol-1`, as it goes on with these fields.
fn record(more: &Value) -> String {
    let mut record = json!({"format": 1, "generation": {"clusterId": "c1", "token": "t"},
        "members": {"a": {"volume": "vol-1", "blank": true}}});
    let fields = more.as_object().into_iter().flatten();
    fields.for_each(|(name, value)| record[name] = value.clone());
    record.to_string()
}

impl Cluster {
    /// Member `a` of `main` on the control plane reports this, so many seconds ago.
    fn report_member(&self, seconds: i64, problem: Option<&str>, more: &Value) {
        let written = OffsetDateTime::now_utc() - time::Duration::seconds(seconds);
        let id = &self.control_plane;
        let mut running = json!({"name": "etcd-a", "id": "8e", "clusterId": "c1", "leader": "8e", "fsyncP99Seconds": 0.064});
        let fields = more.as_object().into_iter().flatten();
        fields.for_each(|(name, value)| running[name] = value.clone());
        let status = json!({"format": 1, "etcd": "main", "instance": id, "written": written.format(&Rfc3339).expect("a time"),
            "volume": "vol-1", "problem": problem, "running": running});
        self.store_object(&format!("etcd/main/{id}.status.json"), &status.to_string());
    }

    /// Its name in a finding.
    fn member_name(&self) -> String {
        format!("main/{}", self.control_plane)
    }

    /// Calls of the state store by operation, `GetObject` and `ListObjectsV2`, since they were forgotten.
    fn store_reads(&self) -> (u64, u64) {
        let calls = self.simulator.calls_by_operation()["calls"].clone();
        let count = |name: &str| calls[name].as_u64().unwrap_or(0);
        (count("s3.GetObject"), count("s3.ListObjectsV2"))
    }
}

/// Names and messages of the findings in the report of `kctl validate -o json`.
fn etcd_findings(report: &Value) -> Vec<(String, String)> {
    let all = report["findings"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let etcd = all.filter(|found| found["kind"] == "etcd");
    etcd.map(|found| {
        assert!(!text(&found["next"]).is_empty(), "{found}");
        (text(&found["name"]), text(&found["message"]))
    })
    .collect()
}

#[test]
fn validate_shows_what_members_report_and_reads_the_store_once_more_for_each() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let command = ["validate", NAME, "-o", "json", "--api-server", &api.url];
    let validate = |code: i32, more: &[&str]| {
        cluster.simulator.forget_calls();
        let ran = cluster.kctl.run(&[&command[..], more].concat());
        assert_eq!(ran.code, code, "{}", ran.all_output());
        let report: Value = serde_json::from_str(&ran.out).expect("JSON");
        (report, ran.err)
    };
    validate(0, &[]);
    let (gets, lists) = cluster.store_reads();

    cluster.store_object("etcd/main.json", &record(&json!({})));
    cluster.report_member(20, None, &json!({}));
    validate(0, &[]);
    // The record, the report, and the settings of backups.
    assert_eq!(cluster.store_reads(), (gets + 3, lists));
    assert_eq!(cluster.simulator.calls_by_operation()["aws"], json!(2));

    cluster.report_member(400, None, &json!({}));
    let (report, said) = validate(3, &[]);
    let found = etcd_findings(&report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0 == cluster.member_name() && found[0].1.contains("has reported nothing for"),
        "{found:?}"
    );
    assert!(said.contains("is not healthy: 1 problem"), "{said}");
    validate(0, &["--ignore", "etcd"]);
    validate(0, &["--ignore", "etcd/main/*"]);
    validate(3, &["--ignore", "etcd/events"]);

    let alarm = json!({"alarms": ["NOSPACE"], "leader": null, "fsyncP99Seconds": 0.256});
    let added = json!({"replacing": {"member": "b", "added": true}, "members": {"a": {"volume": "vol-1"}, "b": {"volume": "vol-2"}}});
    cluster.store_object("etcd/main.json", &record(&added));
    cluster.report_member(20, Some("vol-1 cannot grow"), &alarm);
    cluster.store_object("etcd/events.json", "{");
    let (report, said) = validate(3, &[]);
    let names = etcd_findings(&report);
    let messages: Vec<&str> = names.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "vol-1 cannot grow",
            "it knows no leader, and accepts no writes",
            "alarm NOSPACE: etcd accepts no writes",
            "member b is being added",
            "no instance reports member b with volume vol-2",
        ]
    );
    assert!(said.contains("events.json cannot be read"), "{said}");
    let warnings = report["warnings"].as_array().expect("a list");
    assert!(
        warnings.iter().any(|one| one["topic"] == "etcd"
            && one["message"]
                .as_str()
                .is_some_and(|text| text.contains("256 ms"))),
        "{warnings:?}"
    );
}

#[test]
fn validate_says_once_what_protokube_reports_twice_and_fails_if_the_store_does() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let id = &cluster.control_plane;
    let gone = "the log of member a of etcd main is gone";
    let wait = json!({"role": "etcd-main", "about": "member a", "failed": true, "message": gone, "since": "2026-11-21T10:00:00Z"});
    let waits =
        json!({"format": 1, "instance": id, "release": "0.1.0", "written": "", "waits": [wait]});
    cluster.store_object(&format!("nodes/{id}.protokube.json"), &waits.to_string());
    cluster.store_object("etcd/main.json", &record(&json!({})));
    cluster.report_member(20, Some(gone), &json!({"leader": null}));
    let validate = ["validate", NAME, "--api-server", &api.url];
    cluster.simulator.forget_calls();
    let ran = cluster.kctl.run(&validate);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    assert_eq!(ran.out.matches(gone).count(), 1, "{}", ran.out);
    let (machine, etcd) = (format!("Machine/{id}"), format!("etcd/main/{id}  it knows"));
    let places = (ran.out.find(&machine), ran.out.find(&etcd));
    assert!(places.0.is_some() && places.0 < places.1, "{}", ran.out);

    // The list of the reports is the last one.
    let (_, lists) = cluster.store_reads();
    let denied = |times: u32| {
        json!([{"service": "s3", "operation": "ListObjectsV2", "code": "AccessDenied", "status": 403, "skip": lists - 1,
            "times": times}])
    };
    cluster.simulator.set_faults(&denied(1));
    let ran = cluster
        .kctl
        .run(&[&validate[..], &["--wait", "1m"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.all_output());
    assert!(ran.err.contains("AccessDenied"), "{}", ran.err);
}

#[test]
fn a_volume_that_protokube_refuses_is_shown_by_status_instances_and_validate() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let id = &cluster.control_plane;
    let why = "vol-1 holds data of member a of etcd main of other.example.com, written on vol-9: is the volume's tag correct?";
    let wait = json!({"role": "etcd-main", "about": "member a", "failed": true, "message": why, "since": "2026-11-21T10:00:00Z"});
    let waits =
        json!({"format": 1, "instance": id, "release": "0.1.0", "written": "", "waits": [wait]});
    cluster.store_object(&format!("nodes/{id}.protokube.json"), &waits.to_string());
    cluster.store_object("etcd/main.json", &record(&json!({})));
    cluster.report_member(20, Some(why), &json!({"leader": null}));
    let api = ["--api-server", &api.url];
    for (command, code) in [
        (vec!["etcd", "status", NAME], 0),
        ([&["get", "instances"][..], &api].concat(), 0),
        ([&["validate", NAME][..], &api].concat(), 3),
    ] {
        let ran = cluster.kctl.run(&command);
        assert_eq!(ran.code, code, "{command:?}: {}", ran.all_output());
        assert!(ran.out.contains(why), "{command:?}: {}", ran.out);
    }
}

#[test]
fn a_wait_for_a_healthy_cluster_reads_what_members_report_at_each_look() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    cluster.store_object("etcd/main.json", &record(&json!({})));
    let url = ["--api-server", &api.url];
    let wait = ["validate", NAME, "--wait", "2m", "--interval", "100ms"];
    let command = [&wait[..], &url].concat();
    let mut waits = cluster.kctl.start_command(&command, Stdio::null());
    let mut told = BufReader::new(waits.stderr.take().expect("its words")).lines();
    let mut hears = |words: &str| {
        let said = told.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        assert!(said.is_some(), "it never says {words}");
    };
    hears("no instance reports member a with volume vol-1");
    cluster.report_member(400, None, &json!({}));
    hears("has reported nothing for");
    cluster.report_member(0, None, &json!({}));
    hears("is healthy, 1 of 1 times");
    let ran = cluster.kctl.wait_for_end(waits);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
}
