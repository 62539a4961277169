//! `kctl delete cluster` deletes nothing that has data and of which no last snapshot can be taken. A fake protokube answers; the real one
//! is tested in `protokube/tests/roles/backups.rs`.

use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use etcd_rules::{CommandState, EtcdCommand};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const DELETE: [&str; 4] = ["delete", "cluster", NAME, "--yes"];

fn made_cluster(simulator: &Simulator) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    let words = ["create", "cluster", NAME, "--zones", "eu-west-1a", "--yes"];
    kctl.run(&words).expect_success();
    kctl
}

fn put(simulator: &Simulator, key: &str, text: &str) {
    let code = format!(
        "boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/{key}', Body={text:?}.encode())"
    );
    simulator.run_python(REGION, &code);
}

fn now() -> String {
    OffsetDateTime::now_utc().format(&Rfc3339).expect("a time")
}

fn resources_in_aws(simulator: &Simulator) -> BTreeSet<String> {
    let all = simulator.list_resources(REGION).into_iter();
    all.filter(|line| !line.starts_with("s3")).collect()
}

fn formed_record() -> Value {
    json!({"format": 1, "generation": {"clusterId": "c1", "token": "t"}, "members": {
        "a": {"volume": "vol-0a", "blank": true, "memberId": "id-a"}}})
}

/// Stores a verified snapshot of this etcd cluster, taken so long ago.
fn put_snapshot(simulator: &Simulator, cluster: &str, age: Duration) {
    let taken = (OffsetDateTime::now_utc() - age).format(&Rfc3339);
    let manifest = json!({"format": 1, "name": "asked", "cluster": NAME, "etcd": "main", "reason": "command", "clusterId": cluster,
        "takenAt": taken.expect("a time"), "bytes": 1, "sha256": "", "compressedBytes": 1, "compressedSha256": "", "kctlVersion": "1",
        "verified": {"at": now(), "revision": 9, "compacted": 1, "hash": 7, "keys": 3, "seconds": 1}});
    put(
        simulator,
        "backups/etcd/main/asked/manifest.json",
        &manifest.to_string(),
    );
    put(simulator, "backups/etcd/main/asked/etcd.backup.gz", "x");
}

#[test]
fn a_cluster_with_data_goes_only_with_a_young_snapshot_or_when_told_so() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    let before = resources_in_aws(&simulator);
    let refused = |words: &[&str]| {
        let ran = kctl.run(&DELETE);
        assert_eq!(ran.code, 4, "{}", ran.all_output());
        let always = [
            "no last snapshot of etcd main can be taken, and nothing was deleted",
            "--no-last-backup --yes",
        ];
        for word in always.iter().chain(words) {
            assert!(ran.err.contains(word), "{word}: {}", ran.err);
        }
        assert_eq!(resources_in_aws(&simulator), before);
    };
    put(&simulator, "etcd/main.json", "damaged");
    refused(&["no member reports lately", "etcd/main.json"]);
    put(&simulator, "etcd/main.json", &formed_record().to_string());
    refused(&["no member reports lately", "younger than two intervals"]);
    // What was written to the store now may have been taken before.
    put_snapshot(&simulator, "c1", Duration::from_hours(2));
    refused(&["younger than two intervals"]);
    put_snapshot(&simulator, "c0", Duration::ZERO);
    refused(&["younger than two intervals"]);
    put(&simulator, "etcd-backups.json", "damaged");
    put_snapshot(&simulator, "c1", Duration::ZERO);
    refused(&["its backups cannot be read"]);
    kctl.run(&["update", "--refresh", "--yes"]).expect_success();
    let ran = kctl.run(&DELETE);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    let went_on = ran.err.contains("; asked, ") && ran.err.contains(" old, is the last one");
    assert!(went_on, "{}", ran.err);
}

/// The store was lost and brought back with the spec and the keys: neither the record of etcd nor the log is there.
#[test]
fn a_store_that_was_brought_back_does_not_know_what_is_on_the_volumes() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    let before = resources_in_aws(&simulator);
    let code = format!(
        "s3 = boto('s3')\nfor o in s3.list_objects_v2(Bucket='state', Prefix='clusters/{NAME}/operations/')['Contents']:\n s3.delete_object(Bucket='state', Key=o['Key'])"
    );
    simulator.run_python(REGION, &code);
    let ran = kctl.run(&DELETE);
    assert_eq!(ran.code, 4, "{}", ran.all_output());
    assert!(
        ran.err
            .contains("no last snapshot of etcd main can be taken"),
        "{}",
        ran.err
    );
    assert_eq!(resources_in_aws(&simulator), before);
    let ran = kctl.run(&[&DELETE[..], &["--no-last-backup"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.all_output());
}

#[test]
fn who_wants_no_last_snapshot_gets_none() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    put(&simulator, "etcd/main.json", &formed_record().to_string());
    kctl.run(&[&DELETE[..], &["--no-last-backup"]].concat())
        .expect_success();
}

/// The key and the text of the command that waits for protokube.
fn waiting_command(simulator: &Simulator) -> (String, EtcdCommand) {
    let code = format!(
        "s3 = boto('s3')\nfor o in s3.list_objects_v2(Bucket='state', Prefix='clusters/{NAME}/etcd/commands/').get('Contents', []):\n print(o['Key'], s3.get_object(Bucket='state', Key=o['Key'])['Body'].read().decode().replace('\\n', ' '))"
    );
    for _ in 0..300 {
        let all = simulator.run_python(REGION, &code);
        let found = all.lines().find_map(|line| {
            let (key, text) = line.split_once(' ')?;
            let command = EtcdCommand::parse(key, text.as_bytes()).ok()?;
            let key = key.strip_prefix(&format!("clusters/{NAME}/"))?.to_owned();
            (command.state == CommandState::Waiting).then_some((key, command))
        });
        if let Some(found) = found {
            return found;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("kctl asks for no snapshot");
}

/// A notebook that slept a night: the snapshot is not the last any more.
#[test]
fn nothing_is_deleted_after_a_pause_with_the_plan_and_the_snapshot_of_before() {
    let simulator = Simulator::start_simulator();
    let mut kctl = made_cluster(&simulator);
    kctl.set_variable("KCTL_LOCK_LIFE", "2s");
    put(&simulator, "etcd/main.json", &formed_record().to_string());
    let status = json!({"format": 1, "etcd": "main", "instance": "i-1", "written": now(), "volume": "vol-0a",
        "running": {"name": "etcd-a", "id": "id-a", "clusterId": "c1", "leader": "id-a", "term": 2, "revision": 9}});
    put(&simulator, "etcd/main/i-1.status.json", &status.to_string());
    let before = resources_in_aws(&simulator);
    let deletes = kctl.start_command(&DELETE, Stdio::null());
    let (key, command) = waiting_command(&simulator);
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &deletes.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    };
    signal("-STOP");
    sleep(Duration::from_secs(4));
    signal("-CONT");
    let answer = command.done("took the snapshot", OffsetDateTime::now_utc());
    put(&simulator, &key, &answer.to_json());
    let ran = kctl.wait_for_end(deletes);
    assert_eq!(ran.code, 4, "{}", ran.all_output());
    for word in [
        "the lock was paused since the plan was made",
        "nothing was deleted",
        "repeat the command: kctl delete cluster demo.example.com",
    ] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    assert_eq!(resources_in_aws(&simulator), before);
}
