//! `kctl etcd restore --time` and `--latest`: which snapshot and which parts of the changes after it are chosen, and what cannot be reached.
//! The choice itself is tested in `etcd/rules/src/backup/changes/choose.rs`, the replay in `protokube/tests/roles/snapshot_restore.rs`.

use crate::etcd_snapshots::{Backups, expect_refused, packed};
use crate::kctl::KctlOutput;
use crate::scenario::NAME;
use etcd_rules::backup::{
    ChainEnd, ChangesPart, CollectedChanges, SnapshotManifest, WatchedEvent, changes_key,
    check_follows,
};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const MINUTE: Duration = Duration::from_mins(1);

/// A time so many minutes ago, as the command line takes it.
fn minutes_ago(minutes: i64) -> String {
    let time = OffsetDateTime::now_utc() - time::Duration::minutes(minutes);
    let time = time.replace_nanosecond(0).unwrap();
    time.format(&Rfc3339).unwrap()
}

impl Backups {
    /// Stores a verified snapshot that was taken and written so many minutes ago.
    fn store_timed(&self, name: &str, minutes: u32, (cluster, revision): (&str, u64)) {
        let taken = minutes_ago(i64::from(minutes));
        self.store_snapshot(name, MINUTE * minutes, |manifest| {
            manifest.taken_at = taken;
            manifest.cluster_id = Some(cluster.to_owned());
            manifest.verified.as_mut().unwrap().revision = revision;
        });
    }

    fn part(&self, snapshot: &str, sequence: u32) -> PathBuf {
        self.stored(&changes_key(snapshot, sequence))
    }

    /// Stores parts after a snapshot, one revision each, that were written so many minutes ago. Returns how far the chain goes.
    fn store_parts(&self, snapshot: &str, minutes: &[u32]) -> ChainEnd {
        let bytes = fs::read(self.stored(snapshot).join("manifest.json")).unwrap();
        let manifest = SnapshotManifest::parse("manifest", &bytes).unwrap();
        let mut end = ChainEnd::of_manifest(&manifest).unwrap();
        for minutes in minutes {
            let after = end.revision;
            let event = WatchedEvent {
                revision: after + 1,
                key: b"/registry/a".to_vec(),
                value: Some(b"b".to_vec()),
                lease: None,
                created: after + 1,
                version: 1,
            };
            let changes = CollectedChanges {
                after,
                until: after + 1,
                events: vec![event],
            };
            let part = end.next_part("i-a", &minutes_ago(i64::from(*minutes)), changes);
            let content = part.encode();
            let path = self.part(snapshot, end.sequence + 1);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, packed(&content)).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - MINUTE * *minutes)
                .unwrap();
            end = check_follows(&end, &ChangesPart::parse("part", &content).unwrap()).unwrap();
        }
        end
    }

    /// The document of a preview.
    fn preview(&self, words: &[&str]) -> Value {
        let shown = self.restore(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&shown.expect_success()).unwrap()
    }
}

/// The command in a text that restores something with this option.
fn named_command(text: &str, option: &str) -> Vec<String> {
    let begin = format!("kctl etcd restore {NAME}");
    let found = text.split(&begin).skip(1);
    let found = found.map(|rest| rest.split(['`', '\n']).next().unwrap_or_default());
    let mut found = found.filter(|rest| rest.contains(option));
    let rest = found.next().unwrap_or_else(|| panic!("{option}: {text}"));
    rest.split_whitespace().map(str::to_owned).collect()
}

fn as_words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// Runs what a refusal says to do.
fn follow_hint(here: &Backups, refused: &KctlOutput, option: &str) -> Value {
    here.preview(&as_words(&named_command(&refused.err, option)))
}

#[test]
fn a_restore_to_the_latest_moment_is_pinned_by_its_preview_and_done_once() {
    let here = Backups::new();
    here.store_timed("s1", 10, ("c1", 4000));
    let end = here.store_parts("s1", &[8, 6, 4]);
    let preview = here.restore(&["--latest"]).expect_success();
    for part in [
        "by the backup store's clock, 4m",
        "the snapshot and 3 parts of changes after it",
        "up to revision 4003",
        "replays the changes after the snapshot",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    let document = here.preview(&["--latest"]);
    let point = &document["point"];
    assert_eq!(
        (&document["snapshot"], &document["restored"]),
        (&json!("s1"), &json!(false))
    );
    assert_eq!(
        (&point["parts"], &point["revision"]),
        (&json!(3), &json!(4003))
    );
    let missed = point["missesSeconds"].as_u64().unwrap();
    assert!((240..360).contains(&missed), "{document}");
    // What is stored after the preview is not restored by the command that it names.
    let command = named_command(&preview, "--yes");
    assert!(preview.contains(point["reaches"].as_str().unwrap()));
    here.store_timed("s2", 1, ("c1", 4100));
    let ended = here.with_protokube(true, || here.restore(&as_words(&command)));
    let said = ended.expect_success();
    assert!(
        said.contains("serves the data of s1 with 3 parts of changes after it"),
        "{said}"
    );
    let done = here.read_record();
    let restored = done.generation.restored.as_ref().unwrap();
    let changes = restored.changes.as_ref().unwrap();
    assert_eq!(
        (changes.parts, &changes.sha256, changes.revision),
        (3, &end.sha256, 4003)
    );
    assert_eq!(
        (restored.name.as_str(), restored.revision),
        ("s1", Some(4000))
    );
    // Of before the restore, so of the etcd cluster that was given up.
    let again = here.with_protokube(true, || here.restore(&as_words(&command)));
    assert!(
        again.expect_success().contains("has begun with s1 with 3"),
        "done already"
    );
    assert_eq!(here.read_record(), done);
    let again = here.restore(&["--latest", "--yes"]);
    assert!(again.expect_success().contains("nothing was changed"));
    assert_eq!(here.read_record(), done);
    // The new one has no snapshot yet, and the moments of before can still be restored.
    let refused = here.restore(&["--latest", "--again"]);
    expect_refused(
        &refused,
        "since it was recovered or restored as etcd cluster c2",
    );
    let before = follow_hint(&here, &refused, "--time");
    assert_eq!(before["point"]["givenUp"], "c1");
}

#[test]
fn a_time_chooses_the_last_moment_before_it() {
    let here = Backups::new();
    here.store_timed("s1", 20, ("c1", 4000));
    here.store_parts("s1", &[18, 16, 6]);
    here.store_timed("s2", 4, ("c1", 4003));
    here.store_parts("s2", &[3]);
    for (minutes, snapshot, parts, revision) in [
        (19, "s1", 0, 4000),
        (17, "s1", 1, 4001),
        (9, "s1", 2, 4002),
        (5, "s1", 3, 4003),
        (2, "s2", 1, 4004),
    ] {
        let asked = minutes_ago(minutes);
        let found = here.preview(&["--time", &asked]);
        let point = &found["point"];
        assert_eq!(
            (&found["snapshot"], &point["parts"]),
            (&json!(snapshot), &json!(parts)),
            "{minutes}: {found}"
        );
        assert_eq!(
            (&point["asked"], &point["revision"]),
            (&json!(asked), &json!(revision))
        );
    }
    let preview = here.restore(&["--time", &minutes_ago(9)]).expect_success();
    assert!(
        preview.contains("clock, 7m") && preview.contains(" before "),
        "{preview}"
    );
}

#[test]
fn what_cannot_be_reached_is_refused_with_the_nearest_moments() {
    let here = Backups::new();
    here.store_timed("s1", 10, ("c1", 4000));
    here.store_parts("s1", &[8, 6, 4]);
    let before = here.read_record();
    let old = here.restore(&["--time", &minutes_ago(60)]);
    expect_refused(&old, "its oldest verified snapshot, s1, was stored at");
    let first = follow_hint(&here, &old, "--time");
    assert_eq!(first["point"]["parts"], 0);
    let future = here.restore(&["--time", &minutes_ago(-60), "--yes"]);
    expect_refused(&future, "is in the future: the clock of file://");
    assert_eq!(follow_hint(&here, &future, "--latest")["point"]["parts"], 3);

    // The last part is none of this chain: damaged, or of another etcd cluster.
    let last = here.part("s1", 3);
    let good = fs::read(&last).unwrap();
    let written = fs::metadata(&last).unwrap().modified().unwrap();
    here.store_timed("foreign", 9, ("c9", 4000));
    here.store_parts("foreign", &[8, 6, 4]);
    let foreign = fs::read(here.part("foreign", 3)).unwrap();
    for (bytes, why) in [
        (foreign, "its id of the etcd cluster is c9, and not c1"),
        (b"x".to_vec(), "is no part of changes that can be used"),
    ] {
        fs::write(&last, bytes).unwrap();
        let file = fs::File::options().write(true).open(&last).unwrap();
        file.set_modified(written).unwrap();
        let refused = here.restore(&["--latest", "--yes"]);
        expect_refused(&refused, why);
        assert_eq!(follow_hint(&here, &refused, "--time")["point"]["parts"], 2);
        let alone = follow_hint(&here, &refused, "--snapshot");
        assert_eq!(alone["point"], Value::Null);
    }
    fs::write(&last, good).unwrap();
    fs::remove_file(here.part("s1", 2)).unwrap();
    let gap = here.restore(&["--latest", "--yes"]);
    expect_refused(&gap, "part 2 of the changes after s1 is missing");
    assert_eq!(follow_hint(&here, &gap, "--time")["point"]["parts"], 1);
    let shown = here.snapshot(&["list"]);
    assert!(
        shown
            .err
            .contains("part 2 of the changes after s1 is missing"),
        "{}",
        shown.err
    );

    // Nothing is left but what is of another etcd cluster.
    fs::remove_dir_all(here.stored("s1")).unwrap();
    let other = here.restore(&["--latest", "--yes"]);
    expect_refused(
        &other,
        "foreign, with 3 parts of changes after it, is of etcd cluster c9",
    );
    let alone = follow_hint(&here, &other, "--snapshot");
    assert_eq!(alone["snapshot"], "foreign");
    let none = here.restore(&["--time", "yesterday", "--yes"]);
    assert_eq!(none.code, 2, "{}", none.all_output());
    assert!(none.err.contains("RFC 3339"), "{}", none.err);
    assert_eq!(here.read_record(), before);
}

#[test]
fn parts_are_listed_and_deleted_with_their_snapshot() {
    let here = Backups::new();
    here.store_timed("s1", 10, ("c1", 4000));
    here.store_parts("s1", &[8, 6]);
    here.store_timed("s2", 4, ("c1", 4002));
    let shown = here.snapshot(&["list"]).expect_success();
    assert!(shown.contains("RESTORABLE UNTIL"), "{shown}");
    let shown = here.snapshot(&["list", "-o", "json"]).expect_success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let of = |place: usize| &shown["snapshots"][place];
    assert_eq!((&of(1)["name"], &of(1)["parts"]), (&json!("s1"), &json!(2)));
    assert!(of(1)["restorableUntil"].is_string() && of(0)["parts"].is_null());
    let preview = here.snapshot(&["delete", "s1"]).expect_success();
    assert_eq!(preview, "deletes s1 and 2 parts of changes after it\n");
    here.snapshot(&["delete", "s1", "--yes"]).expect_success();
    assert!(!here.part("s1", 1).exists() && !here.part("s1", 2).exists());
}
