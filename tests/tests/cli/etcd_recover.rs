//! `kctl etcd recover`, with a store in a folder and a fake protokube that changes the record in it. protokube's side is tested in
//! `protokube/tests/roles/recovery.rs`, both together in the lab (`quorum-lost`).

use crate::instances::Cluster;
use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::NAME;
use etcd_rules::{
    FormationRecord, Generation, LogIdentity, RecordedMember, RecoveryTerms, begin_recovery,
    end_recovery,
};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Three members of main in the record; a and b report, and see no quorum.
struct LostQuorum {
    kctl: Kctl,
}

impl LostQuorum {
    fn new() -> Self {
        let mut kctl = Kctl::new();
        let store = format!("file://{}", kctl.home_path("store").display());
        kctl.set_variable("KCTL_STATE_STORE", &store);
        let lost = Self { kctl };
        fs::create_dir_all(lost.folder().join("main")).expect("a folder");
        let member = |id: &str| {
            let recorded = RecordedMember {
                member_id: Some(format!("id-{id}")),
                ..RecordedMember::on_volume(&format!("vol-{id}"), true)
            };
            (id.to_owned(), recorded)
        };
        lost.write_record(&FormationRecord::new(
            Generation::formed("c1", "t1"),
            ["a", "b", "c"].map(member).into(),
        ));
        lost.report("a", 9, None, "c1");
        lost.report_long_ago("b", 7);
        lost.report_long_ago("c", 5);
        lost
    }

    fn folder(&self) -> PathBuf {
        self.kctl.home_path(&format!("store/{NAME}/etcd"))
    }

    fn read_record(&self) -> FormationRecord {
        let bytes = fs::read(self.folder().join("main.json")).expect("a record");
        FormationRecord::parse("main", &bytes).expect("a record")
    }

    fn write_record(&self, record: &FormationRecord) {
        let aside = self.folder().join(".kctl-record");
        fs::write(&aside, record.to_json()).expect("a record");
        fs::rename(aside, self.folder().join("main.json")).expect("a record");
    }

    /// Writes the report of a member as of now.
    fn report(&self, id: &str, revision: u64, leader: Option<&str>, cluster: &str) {
        let written = OffsetDateTime::now_utc().format(&Rfc3339);
        let running = json!({"name": format!("etcd-{id}"), "id": format!("id-{id}"), "clusterId": cluster, "leader": leader, "term": 2,
            "revision": revision, "databaseBytes": 8192});
        let status = json!({"format": 1, "etcd": "main", "instance": format!("i-{id}"), "volume": format!("vol-{id}"),
            "written": written.expect("a time"), "running": running});
        fs::write(self.report_path(id), status.to_string()).expect("a file");
    }

    /// Writes the report of a member that was lost an hour ago, whatever its clock said.
    fn report_long_ago(&self, id: &str, revision: u64) {
        self.report(id, revision, None, "c1");
        let report = fs::File::options().write(true).open(self.report_path(id));
        let hour = SystemTime::now() - Duration::from_hours(1);
        report.expect("a file").set_modified(hour).expect("a time");
    }

    fn report_path(&self, id: &str) -> PathBuf {
        self.folder().join(format!("main/i-{id}.status.json"))
    }

    fn run(&self, words: &[&str]) -> KctlOutput {
        self.kctl.run(&[&["etcd", "recover", NAME], words].concat())
    }

    /// Runs the command while protokube restores member a.
    fn run_with_protokube(&self, words: &[&str]) -> KctlOutput {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                    let restored = LogIdentity {
                        cluster_id: "c2".to_owned(),
                        member_id: "id-new".to_owned(),
                    };
                    if let Some(next) = end_recovery(&self.read_record(), &restored) {
                        self.write_record(&next);
                        self.report("a", 1_000_000_009, Some("id-new"), "c2");
                    }
                }
            });
            let ended = self.run(words);
            over.store(true, Ordering::Relaxed);
            ended
        })
    }

    /// Nothing was changed, and the error has these words.
    fn expect_refused(&self, words: &[&str], why: &[&str]) {
        let before = self.read_record();
        let ended = self.run(words);
        assert_eq!(ended.code, 4, "{}", ended.all_output());
        for why in why {
            assert!(ended.err.contains(why), "{why}: {}", ended.err);
        }
        assert_eq!(self.read_record(), before);
    }
}

#[test]
fn the_newest_copy_is_named_and_nothing_is_changed_without_yes() {
    let lost = LostQuorum::new();
    let before = lost.read_record();
    let shown = lost.run(&[]).expect_success();
    assert!(
        shown.contains("The newest data is that of member a."),
        "{shown}"
    );
    let row = shown.lines().find(|line| line.starts_with('c')).expect("c");
    assert!(row.contains("vol-c") && row.contains("1h"), "{row}");
    let shown = lost.run(&["-o", "json"]).expect_success();
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (&shown["newest"], &shown["recovered"]),
        (&json!("a"), &json!(false))
    );
    assert_eq!(shown["copies"][1]["revision"], 7);
    let preview = lost.run(&["--from", "etcd-a"]).expect_success();
    for part in [
        "b on i-b with vol-b; c on i-c with vol-c",
        "Writes that only the lost members acknowledged are lost",
        "kctl etcd recover demo.example.com --etcd main --from a --yes",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert_eq!(lost.read_record(), before);
}

#[test]
fn a_recovery_is_followed_until_the_new_cluster_has_a_leader() {
    let lost = LostQuorum::new();
    let ended = lost.run_with_protokube(&["--from", "a", "--yes"]);
    let said = ended.expect_success();
    assert!(said.contains("etcd main serves again"), "{said}");
    let record = lost.read_record();
    let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
    assert_eq!((members, record.retired.len()), (vec!["a"], 1));
    assert_eq!(record.generation.token.len(), 32);
}

#[test]
fn a_cluster_with_a_leader_is_not_recovered() {
    let lost = LostQuorum::new();
    lost.report("b", 7, Some("id-b"), "c1");
    lost.expect_refused(
        &["--from", "a", "--yes"],
        &["etcd main has a leader, as i-b reports"],
    );
}

#[test]
fn newer_data_is_given_up_only_by_force() {
    let lost = LostQuorum::new();
    fs::remove_file(lost.report_path("a")).expect("a file");
    lost.report("b", 7, None, "c1");
    lost.report_long_ago("a", 9);
    lost.expect_refused(
        &["--from", "b", "--yes"],
        &[
            "member a is newer (revision 9) than that of member b (revision 7)",
            "--force",
        ],
    );
    let forced = lost.run(&["--from", "b", "--force"]).expect_success();
    assert!(forced.contains("from member b"), "{forced}");
    let shown = lost.run(&[]).expect_success();
    assert!(
        shown.contains("The data of member a on vol-a is newer"),
        "{shown}"
    );
}

/// During an election every member knows no leader, whatever the clocks of the instances say.
#[test]
fn a_quorum_that_runs_is_given_up_only_by_force() {
    let lost = LostQuorum::new();
    lost.report("b", 7, None, "c1");
    let why = ["members a, b of etcd main run", "Wait", "--force"];
    lost.expect_refused(&["--from", "a", "--yes"], &why);
    lost.run(&["--from", "a", "--force"]).expect_success();
}

#[test]
fn a_member_of_whose_data_nothing_is_known_is_given_up_only_by_force() {
    let lost = LostQuorum::new();
    fs::remove_file(lost.report_path("c")).expect("a file");
    let why = [
        "nothing is known of the data of member c on vol-c",
        "EC2 could not be asked",
        "use --force",
    ];
    lost.expect_refused(&["--from", "a", "--yes"], &why);
    lost.run(&["--from", "a", "--force"]).expect_success();
}

#[test]
fn an_etcd_that_cannot_restore_with_higher_revisions_is_refused_before_anything_stops() {
    let lost = LostQuorum::new();
    let text = fs::read_to_string(lost.report_path("a")).expect("a report");
    let mut report: Value = serde_json::from_str(&text).expect("JSON");
    report["running"]["version"] = json!("3.5.9");
    fs::write(lost.report_path("a"), report.to_string()).expect("a file");
    let why = ["member a runs etcd 3.5.9", "3.5.10"];
    lost.expect_refused(&["--from", "a", "--force", "--yes"], &why);
}

#[test]
fn only_a_member_whose_instance_reports_can_be_the_source() {
    let lost = LostQuorum::new();
    let why = "no instance reports lately that it holds the data of member c";
    lost.expect_refused(&["--from", "c", "--force", "--yes"], &[why]);
    let why = "etcd main has no member x; its members: a, b, c";
    lost.expect_refused(&["--from", "x", "--yes"], &[why]);
    let ended = lost.run(&["--etcd", "events"]);
    assert_eq!(ended.code, 4, "{}", ended.all_output());
    assert!(
        ended
            .err
            .contains("has no record of an etcd cluster events")
    );
}

#[test]
fn a_recovery_that_is_under_way_is_followed_and_not_begun_again() {
    let lost = LostQuorum::new();
    let terms = RecoveryTerms::default();
    let begun = begin_recovery(&lost.read_record(), "a", "token", terms).expect("a recovery");
    lost.write_record(&begun);
    let ended = lost.run(&["--from", "a", "--yes", "--timeout", "3s"]);
    assert_eq!(ended.code, 1, "{}", ended.all_output());
    let why = "it is not over after 3s: waiting for protokube on the instance of member a";
    assert!(ended.err.contains(why), "{}", ended.err);
    assert_eq!(lost.read_record(), begun);
    // Force is added to the same recovery.
    let forced = ["--from", "a", "--force", "--yes", "--timeout", "3s"];
    assert_eq!(lost.run(&forced).code, 1);
    let Some(recovering) = lost.read_record().next else {
        panic!("it recovers");
    };
    assert_eq!(
        (recovering.token.as_str(), recovering.is_forced()),
        ("token", true)
    );
    // Another source may be chosen until the first one is restored.
    lost.report("b", 7, None, "c1");
    let other = ["--from", "b", "--force", "--yes", "--timeout", "3s"];
    assert_eq!(lost.run(&other).code, 1);
    let Some(recovering) = lost.read_record().next else {
        panic!("it recovers");
    };
    assert_eq!(recovering.from, "b");
}

#[test]
fn a_recovery_for_which_nobody_has_stopped_is_called_off() {
    let lost = LostQuorum::new();
    let before = lost.read_record();
    let begun = begin_recovery(&before, "a", "token", RecoveryTerms::default());
    lost.write_record(&begun.expect("a recovery"));
    lost.run(&["--call-off"]).expect_success();
    let after = lost.read_record();
    assert_eq!((after.next, after.members), (None, before.members));
    assert_eq!(after.generation.refused.expect("why").source, "member a");
    assert_eq!(lost.run(&["--call-off"]).code, 4);
}

/// EC2 says that the volumes of the others do not exist: nothing of theirs is left.
#[test]
fn members_whose_volumes_are_gone_need_no_force() {
    let cluster = Cluster::new_cluster(1);
    let member = |id: &str| json!({"volume": format!("vol-0{id}"), "blank": true, "memberId": format!("id-{id}")});
    let record = json!({"format": 1, "generation": {"clusterId": "c1", "token": "t"},
        "members": {"a": member("a"), "b": member("b"), "c": member("c")}});
    cluster.store_object("etcd/main.json", &record.to_string());
    let written = OffsetDateTime::now_utc().format(&Rfc3339).expect("a time");
    let status = json!({"format": 1, "etcd": "main", "instance": "i-1", "written": written, "volume": "vol-0a",
        "running": {"name": "etcd-a", "id": "id-a", "clusterId": "c1", "term": 2, "revision": 9}});
    cluster.store_object("etcd/main/i-1.status.json", &status.to_string());
    let words = ["etcd", "recover", NAME, "--from", "a"];
    let shown = cluster.kctl.run(&words).expect_success();
    assert!(shown.contains("from member a"), "{shown}");
}
