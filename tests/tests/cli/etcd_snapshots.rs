//! `kctl etcd snapshot` and `kctl etcd restore`, with stores in folders and a fake protokube. protokube's side is tested in
//! `protokube/tests/roles/backups.rs` and `snapshot_restore.rs`, both together in the lab (`etcd_is_restored_from_snapshots`).

use crate::instances::Cluster;
use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::{NAME, REGION};
use etcd_rules::backup::{
    MANIFEST_FORMAT, OWNER_KEY, SnapshotManifest, StoreOwner, VerifiedSnapshot,
};
use etcd_rules::{
    CommandState, EtcdCommand, FormationRecord, Generation, LogIdentity, RecordedMember,
    RestoredSnapshot, Verb, begin_restore, call_off_restore, end_recovery,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings, EtcdBackupSettings};
use node::digest::sha256_hex;
use node::formatted::UnknownFields;
use node::pki::{KeyAlgorithm, STATE_SIGNER, SystemKeys, keyset_path, mint_keyset, write_keyset};
use node::signed::{SignedPlace, sign_text, signature_key};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const SCHEDULED: &str = "2026-11-25T05:40:00Z-000123";

/// A cluster whose etcd main has three members that serve.
pub struct Backups {
    pub kctl: Kctl,
}

/// What etcd's snapshot API sends: whole pages and their hash.
fn snapshot_file() -> Vec<u8> {
    let mut file = vec![7; 1024];
    file.extend_from_slice(&Sha256::digest(&file));
    file
}

pub fn packed(content: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

impl Backups {
    pub fn new() -> Self {
        let here = Self {
            kctl: Kctl::with_store(),
        };
        let settings = EtcdBackupSettings {
            store: format!("file://{}", here.kctl.home_path("backups").display()),
            interval_seconds: 900,
            hourly_retention_seconds: 7 * 86_400,
            daily_retention_seconds: 90 * 86_400,
            recipients: Vec::new(),
            changes_seconds: None,
            unknown: UnknownFields::new(),
        };
        let settings = BackupSettings::new([("main".to_owned(), settings)].into()).to_json();
        fs::create_dir_all(here.folder().join("etcd/main")).unwrap();
        fs::create_dir_all(here.folder().join("etcd/commands")).unwrap();
        fs::write(here.folder().join(BACKUP_SETTINGS_KEY), &settings).unwrap();
        here.sign_settings(&settings);
        let member = |id: &str| {
            let recorded = RecordedMember {
                member_id: Some(format!("id-{id}")),
                ..RecordedMember::on_volume(&format!("vol-{id}"), true)
            };
            (id.to_owned(), recorded)
        };
        here.write_record(&FormationRecord::new(
            Generation::formed("c1", "t1"),
            ["a", "b", "c"].map(member).into(),
        ));
        for id in ["a", "b", "c"] {
            here.report(id, 5000, "c1");
        }
        here
    }

    fn folder(&self) -> PathBuf {
        self.kctl.home_path(&format!("store/{NAME}"))
    }

    /// What `kctl update --yes` leaves: the signature, and the keyset it was made with.
    fn sign_settings(&self, settings: &str) {
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let signer = mint_keyset(STATE_SIGNER, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let keyset = self.folder().join(keyset_path(STATE_SIGNER));
        fs::create_dir_all(keyset.parent().unwrap()).unwrap();
        fs::write(keyset, write_keyset(&signer).unwrap().reveal()).unwrap();
        let (cluster, key) = (NAME, BACKUP_SETTINGS_KEY);
        let signature = sign_text(&signer, SignedPlace { cluster, key }, settings, 1).unwrap();
        let path = self.folder().join(signature_key(key, settings));
        fs::write(path, signature).unwrap();
    }

    pub fn stored(&self, name: &str) -> PathBuf {
        self.kctl.home_path("backups").join(name)
    }

    pub fn read_record(&self) -> FormationRecord {
        let bytes = fs::read(self.folder().join("etcd/main.json")).unwrap();
        FormationRecord::parse("main", &bytes).unwrap()
    }

    fn write_record(&self, record: &FormationRecord) {
        replace_file(&self.folder().join("etcd/main.json"), &record.to_json());
    }

    fn report(&self, id: &str, revision: u64, cluster: &str) {
        let written = OffsetDateTime::now_utc().format(&Rfc3339).unwrap();
        let running = json!({"name": format!("etcd-{id}"), "id": format!("id-{id}"), "clusterId": cluster, "leader": "id-b", "term": 2,
            "revision": revision, "databaseBytes": 8192});
        let status = json!({"format": 1, "etcd": "main", "instance": format!("i-{id}"), "volume": format!("vol-{id}"),
            "written": written, "running": running});
        let path = format!("etcd/main/i-{id}.status.json");
        replace_file(&self.folder().join(path), &status.to_string());
    }

    /// Stores a snapshot that was written so long ago.
    pub fn store_snapshot(
        &self,
        name: &str,
        age: Duration,
        change: impl FnOnce(&mut SnapshotManifest),
    ) {
        let (content, packed) = (snapshot_file(), packed(&snapshot_file()));
        let mut manifest = SnapshotManifest {
            format: MANIFEST_FORMAT,
            name: name.to_owned(),
            cluster: NAME.to_owned(),
            etcd: "main".to_owned(),
            reason: "schedule".to_owned(),
            taken_at: "2026-11-25T05:40:00Z".to_owned(),
            instance: None,
            member: None,
            cluster_id: Some("c1".to_owned()),
            etcd_version: Some("3.6.12".to_owned()),
            kubernetes_version: None,
            bytes: content.len() as u64,
            sha256: sha256_hex(&content),
            compressed_bytes: packed.len() as u64,
            compressed_sha256: sha256_hex(&packed),
            cluster_state: None,
            cluster_state_problem: None,
            verified: Some(VerifiedSnapshot {
                at: "2026-11-25T05:40:01Z".to_owned(),
                revision: 4000,
                compacted: 3000,
                hash: 7,
                keys: 233,
                seconds: 1,
                unknown: UnknownFields::new(),
            }),
            kctl_version: "1".to_owned(),
            unknown: UnknownFields::new(),
        };
        change(&mut manifest);
        let folder = self.stored(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, bytes) in [
            ("etcd.backup.gz", packed),
            ("manifest.json", manifest.to_json().into_bytes()),
        ] {
            fs::write(folder.join(file), bytes).unwrap();
            let file = fs::File::options().write(true).open(folder.join(file));
            file.unwrap().set_modified(SystemTime::now() - age).unwrap();
        }
    }

    pub fn snapshot(&self, words: &[&str]) -> KctlOutput {
        let begin = ["etcd", "snapshot"];
        self.kctl
            .run(&[&begin[..], words, &["--name", NAME]].concat())
    }

    pub fn restore(&self, words: &[&str]) -> KctlOutput {
        self.kctl.run(&[&["etcd", "restore", NAME], words].concat())
    }

    /// Runs kctl while protokube takes snapshots that are asked for, if `takes`, and restores what the record says, unless it is named
    /// `damaged`.
    pub fn with_protokube(&self, takes: bool, run: impl FnOnce() -> KctlOutput) -> KctlOutput {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                    self.answer_commands(takes);
                    let record = self.read_record();
                    if record.to_json().contains(r#""name": "damaged""#) {
                        if let Ok(next) = call_off_restore(&record, "the snapshot is damaged") {
                            self.write_record(&next);
                        }
                        continue;
                    }
                    let restored = LogIdentity {
                        cluster_id: "c2".to_owned(),
                        member_id: "id-new".to_owned(),
                    };
                    if let Some(next) = end_recovery(&record, &restored) {
                        self.write_record(&next);
                        self.report("a", 1_000_004_000, "c2");
                    }
                }
            });
            let ended = run();
            over.store(true, Ordering::Relaxed);
            ended
        })
    }

    fn answer_commands(&self, takes: bool) {
        for item in fs::read_dir(self.folder().join("etcd/commands")).unwrap() {
            let path = item.unwrap().path();
            // kctl deletes a command that it has the answer of.
            let Ok(text) = fs::read(&path) else { continue };
            let Ok(command) = EtcdCommand::parse("command", &text) else {
                continue;
            };
            if command.state != CommandState::Waiting {
                continue;
            }
            let now = OffsetDateTime::now_utc();
            let answer = match &command.verb {
                Verb::Snapshot { name } if takes => {
                    self.store_snapshot(name, Duration::ZERO, |_| {});
                    command.done(&format!("took the snapshot {name}"), now)
                }
                Verb::VerifySnapshot { name } if takes => {
                    command.done(&format!("{name} has 233 keys"), now)
                }
                _ => command.failed("the root disk is full", now),
            };
            replace_file(&path, &answer.to_json());
        }
    }
}

fn replace_file(path: &Path, text: &str) {
    let aside = path.with_file_name(".kctl-aside");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

#[track_caller]
pub fn expect_refused(ended: &KctlOutput, why: &str) {
    assert!([1, 2, 4].contains(&ended.code), "{}", ended.all_output());
    assert!(ended.err.contains(why), "{why}: {}", ended.all_output());
}

#[test]
fn the_list_shows_each_kind_the_newest_first() {
    let here = Backups::new();
    let empty = here.snapshot(&["list"]).expect_success();
    assert!(empty.contains("has no snapshots"), "{empty}");
    here.store_snapshot(SCHEDULED, Duration::from_mins(90), |_| {});
    here.store_snapshot("asked", Duration::from_mins(10), |manifest| {
        manifest.verified = None;
    });
    for (name, file) in [("old", "_etcd_backup.meta"), ("part", "etcd.backup.gz")] {
        fs::create_dir_all(here.stored(name)).unwrap();
        fs::write(here.stored(name).join(file), "x").unwrap();
    }
    let shown = here.snapshot(&["list"]).expect_success();
    let row = |name: &str| {
        let row = shown.lines().find(|line| line.starts_with(name));
        let row = row.unwrap_or_else(|| panic!("{name}: {shown}"));
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        row(SCHEDULED).contains("1h30m scheduled yes 233 4000"),
        "{shown}"
    );
    assert!(row("asked").contains("asked for") && row("asked").contains("no"));
    assert!(row("old").contains("of etcd-manager") && row("part").contains("unfinished"));
    let place = |name: &str| shown.lines().position(|line| line.starts_with(name));
    assert!(place("asked") < place(SCHEDULED), "{shown}");
    let shown = here.snapshot(&["list", "-o", "json"]).expect_success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["snapshots"].as_array().map(Vec::len), Some(4));
    // Without the cluster.
    let store = format!("file://{}", here.kctl.home_path("backups").display());
    let shown = here
        .kctl
        .run(&["etcd", "snapshot", "list", "--store", &store]);
    assert!(shown.expect_success().contains(SCHEDULED));
}

#[test]
fn a_download_is_whole_or_is_not_there() {
    let here = Backups::new();
    here.store_snapshot("asked", Duration::ZERO, |_| {});
    let file = here.kctl.home_path("etcd.db");
    let path = file.display().to_string();
    let words = ["download", "asked", "--file", &path];
    let data = here.stored("asked").join("etcd.backup.gz");
    let good = fs::read(&data).unwrap();
    for damaged in [
        good[..good.len() / 2].to_vec(),
        packed(&[7; 1056]),
        Vec::new(),
    ] {
        fs::write(&data, damaged).unwrap();
        expect_refused(&here.snapshot(&words), "cannot be used");
        assert!(!file.exists());
    }
    fs::write(&data, good).unwrap();
    here.snapshot(&words).expect_success();
    assert_eq!(fs::read(&file).unwrap(), snapshot_file());
    expect_refused(&here.snapshot(&words), "exists");
    expect_refused(
        &here.snapshot(&["download", "other", "--file", "x"]),
        "has no snapshot other",
    );
    let left = fs::read_dir(file.parent().unwrap()).unwrap();
    let left = left.map(|item| item.unwrap().file_name().into_string().unwrap());
    assert!(left.filter(|name| name.starts_with("etcd.db")).count() == 1);
}

#[test]
fn snapshots_of_etcdctl_etcd_manager_and_rke_are_imported_and_damaged_ones_are_not() {
    let here = Backups::new();
    let good = snapshot_file();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("/backup/snap", options).unwrap();
    zip.write_all(&good).unwrap();
    zip.start_file("/backup/snap.rkestate", options).unwrap();
    zip.write_all(b"{}").unwrap();
    let zip = zip.finish().unwrap().into_inner();
    for (name, file) in [("plain", good.clone()), ("gz", packed(&good)), ("rke", zip)] {
        let path = here.kctl.home_path(&format!("{name}.file"));
        fs::write(&path, file).unwrap();
        let path = path.display().to_string();
        here.snapshot(&["import", name, "--file", &path])
            .expect_success();
        let to = here.kctl.home_path(&format!("{name}.back"));
        let back = to.display().to_string();
        here.snapshot(&["download", name, "--file", &back])
            .expect_success();
        assert_eq!(fs::read(to).unwrap(), good, "{name}");
        expect_refused(
            &here.snapshot(&["import", name, "--file", &path]),
            "already",
        );
    }
    let mut flipped = good.clone();
    flipped[9] ^= 1;
    for (damaged, why) in [
        (flipped, "does not match the hash"),
        (good[..1000].to_vec(), "was cut off"),
        (good[..1024].to_vec(), "has no hash"),
        (Vec::new(), "is no snapshot of etcd"),
        (packed(b"x"), "was cut off"),
        (b"PK nothing".to_vec(), "is no snapshot of etcd"),
    ] {
        let path = here.kctl.home_path("damaged");
        fs::write(&path, damaged).unwrap();
        let path = path.display().to_string();
        expect_refused(&here.snapshot(&["import", "damaged", "--file", &path]), why);
        assert!(!here.stored("damaged").exists(), "{why}");
    }
    let path = here.kctl.home_path("plain.file").display().to_string();
    for name in [SCHEDULED, "../up", ""] {
        let ended = here.snapshot(&["import", name, "--file", &path]);
        assert!([2, 4].contains(&ended.code), "{}", ended.all_output());
    }
}

#[test]
fn snapshots_are_deleted_by_exact_name_and_never_the_newest_verified_one() {
    let here = Backups::new();
    here.store_snapshot("snap1", Duration::from_mins(9), |_| {});
    here.store_snapshot("snap10", Duration::from_mins(8), |_| {});
    here.store_snapshot("brought", Duration::ZERO, |manifest| {
        manifest.verified = None;
    });
    let preview = here.snapshot(&["delete", "snap1"]).expect_success();
    assert!(preview.contains("deletes snap1\n"), "{preview}");
    assert!(here.stored("snap1").exists());
    for (names, why) in [
        (vec!["snap10", "snap1"], "newest verified"),
        (vec!["snap1", "snap"], "has no snapshot snap"),
    ] {
        let ended = here.snapshot(&[&["delete", "--yes"], &names[..]].concat());
        expect_refused(&ended, why);
        assert!(here.stored("snap1").join("manifest.json").exists());
    }
    here.snapshot(&["delete", "snap1", "--yes"])
        .expect_success();
    assert!(!here.stored("snap1").join("etcd.backup.gz").exists());
    assert!(here.stored("snap10").join("etcd.backup.gz").exists());
}

/// An import of last year's file is no present to fall back to.
#[test]
fn an_imported_snapshot_is_not_the_newest_one() {
    let here = Backups::new();
    let import = |manifest: &mut SnapshotManifest| {
        manifest.reason = "imported by me from old.db".to_owned();
        manifest.taken_at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap();
    };
    here.store_snapshot("own", Duration::from_mins(90), |_| {});
    here.store_snapshot("brought", Duration::ZERO, import);
    expect_refused(
        &here.snapshot(&["delete", "own", "--yes"]),
        "own is the newest verified snapshot",
    );
    let drilled = here.with_protokube(true, || here.kctl.run(&["etcd", "drill", NAME]));
    assert!(drilled.expect_success().contains("own has 233 keys"));
    here.snapshot(&["delete", "brought", "--yes"])
        .expect_success();
    // Without any other, it is the newest.
    here.store_snapshot("brought", Duration::ZERO, import);
    fs::remove_dir_all(here.stored("own")).unwrap();
    expect_refused(
        &here.snapshot(&["delete", "brought", "--yes"]),
        "brought is the newest verified snapshot",
    );
}

#[test]
fn prune_deletes_what_protokube_would() {
    let here = Backups::new();
    let old = Duration::from_hours(100 * 24);
    here.store_snapshot("2026-08-01T00:00:00Z-000001", old, |_| {});
    here.store_snapshot("asked", old, |_| {});
    here.store_snapshot(SCHEDULED, Duration::from_mins(5), |_| {});
    let preview = here.snapshot(&["prune"]).expect_success();
    assert_eq!(preview, "deletes 2026-08-01T00:00:00Z-000001\n");
    here.snapshot(&["prune", "--yes"]).expect_success();
    let kept = here.snapshot(&["prune"]).expect_success();
    assert_eq!(kept, "all 2 snapshots are kept\n");
}

#[test]
fn protokube_takes_and_verifies_what_is_asked_for() {
    let here = Backups::new();
    let said = here.with_protokube(true, || here.snapshot(&["save", "mine"]));
    assert!(said.expect_success().contains("took the snapshot mine"));
    let said = here.with_protokube(true, || here.snapshot(&["verify"]));
    assert!(said.expect_success().contains("mine has 233 keys"));
    expect_refused(&here.snapshot(&["save", "mine"]), "already");
    expect_refused(&here.snapshot(&["save", SCHEDULED]), "form of scheduled");
    expect_refused(&here.snapshot(&["save", NAME]), "name of the cluster");
    let failed = here.with_protokube(false, || here.snapshot(&["save", "other"]));
    expect_refused(&failed, "the root disk is full");
}

#[test]
fn a_restore_is_shown_before_it_is_done_and_keeps_the_present() {
    let here = Backups::new();
    here.store_snapshot(SCHEDULED, Duration::from_mins(90), |_| {});
    let before = here.read_record();
    let preview = here.restore(&["--snapshot", SCHEDULED]).expect_success();
    for part in [
        "233 keys at revision 4000, 1h30m old",
        "gives up everything that was written since",
        "--on a --yes",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert_eq!(here.read_record(), before);
    // Without a snapshot of the present, nothing is changed.
    let ended = here.with_protokube(false, || here.restore(&["--snapshot", SCHEDULED, "--yes"]));
    expect_refused(&ended, "the root disk is full");
    assert_eq!(here.read_record(), before);
    let ended = here.with_protokube(true, || here.restore(&["--snapshot", SCHEDULED, "--yes"]));
    let said = ended.expect_success();
    assert!(said.contains("serves the data of"), "{said}");
    let restored = here.read_record().generation.restored.unwrap();
    assert_eq!((restored.revision, restored.keys), (Some(4000), Some(233)));
    assert!(!restored.unreadable_secrets);
    // Above the highest revision that was reported.
    assert_eq!(4000 + restored.bump, 5000 + 1_000_000_000);
    let kept = here.snapshot(&["list"]).expect_success();
    assert!(kept.contains("before-restore-"), "{kept}");
    // A command that is repeated gives up nothing that was written since, unless that is said.
    let restored = here.read_record();
    let said = here.with_protokube(true, || here.restore(&["--snapshot", SCHEDULED, "--yes"]));
    assert!(
        said.out.contains("has begun with") && said.err.contains("--again"),
        "{}",
        said.all_output()
    );
    assert_eq!(here.read_record(), restored);
    let words = ["--snapshot", SCHEDULED, "--again", "--yes"];
    let again = here.with_protokube(true, || here.restore(&words));
    assert!(again.expect_success().contains("serves the data of"));
    assert_ne!(here.read_record().generation, restored.generation);
}

#[test]
fn a_snapshot_that_protokube_refuses_changes_nothing() {
    let here = Backups::new();
    here.store_snapshot("damaged", Duration::ZERO, |_| {});
    let before = here.read_record();
    let ended = here.with_protokube(true, || here.restore(&["--snapshot", "damaged", "--yes"]));
    expect_refused(&ended, "nothing was changed: the snapshot is damaged");
    let after = here.read_record();
    assert_eq!(
        (&after.generation.token, &after.members),
        (&before.generation.token, &before.members)
    );
    assert!(after.is_formed());
}

/// Two clusters whose specs name one store.
#[test]
fn snapshots_of_another_cluster_are_neither_deleted_nor_added_to() {
    let here = Backups::new();
    here.store_snapshot("asked", Duration::from_hours(1), |_| {});
    here.store_snapshot("newest", Duration::ZERO, |_| {});
    let file = here.kctl.home_path("etcd.db");
    fs::write(&file, snapshot_file()).unwrap();
    let path = file.display().to_string();
    let owner = StoreOwner::new("other.example.com", "main", "s3://state", None).to_json();
    fs::write(here.kctl.home_path("backups").join(OWNER_KEY), owner).unwrap();
    for words in [
        &["delete", "asked", "--yes"][..],
        &["prune", "--yes"],
        &["import", "mine", "--file", &path],
    ] {
        expect_refused(&here.snapshot(words), "etcd main of other.example.com");
    }
    assert!(here.stored("asked").exists() && !here.stored("mine").exists());
    let shown = here.snapshot(&["list"]).expect_success();
    assert!(shown.contains("asked"), "{shown}");
}

/// Who may only write the settings chooses neither what is restored, nor what is deleted, nor where snapshots go.
#[test]
fn settings_that_kctl_has_not_signed_are_not_used() {
    let here = Backups::new();
    here.store_snapshot("own", Duration::ZERO, |_| {});
    let file = here.kctl.home_path("snapshot");
    fs::write(&file, snapshot_file()).unwrap();
    let file = file.to_str().unwrap();
    let settings = here.folder().join(BACKUP_SETTINGS_KEY);
    let forged = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, forged.replace("backups", "forged")).unwrap();
    let before = here.read_record();
    for ended in [
        here.restore(&["--snapshot", "own", "--yes"]),
        here.snapshot(&["list"]),
        here.snapshot(&["delete", "own", "--yes"]),
        here.snapshot(&["import", "new", "--file", file]),
    ] {
        expect_refused(&ended, "has no valid signature of the keyset state-signer");
        assert_eq!(here.read_record(), before);
    }
}

#[test]
fn a_snapshot_of_another_cluster_is_refused_and_a_restore_can_be_called_off() {
    let here = Backups::new();
    here.store_snapshot("foreign", Duration::ZERO, |manifest| {
        manifest.cluster = "other.example.com".to_owned();
    });
    here.store_snapshot("events", Duration::ZERO, |manifest| {
        manifest.etcd = "events".to_owned();
    });
    let before = here.read_record();
    for snapshot in ["foreign", "events"] {
        let ended = here.restore(&["--snapshot", snapshot, "--yes"]);
        expect_refused(&ended, "--force restores it nevertheless");
        assert_eq!(here.read_record(), before);
    }
    // What is given up is named before, and Secrets are a matter of their own.
    let preview = here
        .restore(&["--snapshot", "foreign", "--force"])
        .expect_success();
    for said in ["! --force: it is a snapshot of etcd", "! --force: goes on"] {
        assert!(preview.contains(said), "{said}: {preview}");
    }
    assert!(!preview.contains("Secrets"), "{preview}");
    let secrets = ["--snapshot", "events", "--force", "--unreadable-secrets"];
    let preview = here.restore(&secrets).expect_success();
    for said in [
        "! --unreadable-secrets: goes on",
        "--force --unreadable-secrets --yes",
    ] {
        assert!(preview.contains(said), "{said}: {preview}");
    }
    // A folder that somebody copied would be the other snapshot.
    here.store_snapshot("copied", Duration::ZERO, |manifest| {
        manifest.name = "own".to_owned();
    });
    let ended = here.restore(&["--snapshot", "copied", "--yes", "--force"]);
    expect_refused(&ended, "has the manifest of own");
    assert_eq!(here.read_record(), before);
    expect_refused(
        &here.restore(&["--call-off"]),
        "it is neither being restored nor recovered",
    );
    here.store_snapshot("own", Duration::ZERO, |_| {});
    let begun = here.with_protokube(true, || {
        here.restore(&["--snapshot", "own", "--on", "d", "--yes"])
    });
    expect_refused(&begun, "has no member d");
    assert_eq!(here.read_record(), before);
}

/// API servers drop what they cannot read. While they emulate a minor, they serve that one.
#[test]
fn data_of_a_newer_minor_than_api_servers_serve_is_refused_before_anything_stops() {
    let here = Backups::new();
    let before = here.read_record();
    let snapshots = [
        ("unknown", None, false),
        ("older", Some("1.34.10"), false),
        ("same", Some("1.35.8"), false),
        ("newer", Some("1.36.3"), true),
    ];
    for (name, version, _) in snapshots {
        here.store_snapshot(name, Duration::ZERO, |manifest| {
            manifest.kubernetes_version = version.map(str::to_owned);
        });
    }
    // Before the first update nothing is served.
    here.restore(&["--snapshot", "newer"]).expect_success();
    for spec in [
        "{kubernetesVersion: 1.35.7}",
        "{kubernetesVersion: 1.36.3, kubernetesUpgrade: {from: 1.35.7}}",
    ] {
        let cluster = format!(
            "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {{name: {NAME}}}\nspec: {spec}\n"
        );
        replace_file(&here.folder().join("cluster-completed.spec"), &cluster);
        for (name, _, refused) in snapshots {
            let shown = here.restore(&["--snapshot", name]);
            assert_eq!(shown.code == 4, refused, "{}", shown.all_output());
            if refused {
                let ended = here.restore(&["--snapshot", name, "--yes"]);
                expect_refused(&ended, "newer was taken with Kubernetes 1.36.3");
                assert!(ended.err.contains("serve 1.35.7"), "{}", ended.err);
            } else {
                shown.expect_success();
            }
        }
        // No other option gives up this guard, and its own gives up no other.
        let forced = here.restore(&["--snapshot", "newer", "--force", "--unreadable-secrets"]);
        expect_refused(&forced, "--newer-minor restores it nevertheless");
        let preview = here.restore(&["--snapshot", "newer", "--newer-minor"]);
        let preview = preview.expect_success();
        for said in [
            "! --newer-minor: it was taken with Kubernetes 1.36.3",
            "--on a --newer-minor --yes",
        ] {
            assert!(preview.contains(said), "{said}: {preview}");
        }
    }
    let words = ["--snapshot", "newer", "--newer-minor", "--yes"];
    let ended = here.with_protokube(false, || here.restore(&words));
    expect_refused(&ended, "the root disk is full");
    assert_eq!(here.read_record(), before);
}

/// Whoever repeats a command need not know the options that it was begun with.
#[test]
fn a_restore_that_was_begun_with_an_option_is_followed_without_it() {
    let here = Backups::new();
    here.store_snapshot("newer", Duration::ZERO, |manifest| {
        manifest.cluster = "other.example.com".to_owned();
        manifest.kubernetes_version = Some("1.36.3".to_owned());
    });
    let served = format!(
        "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {{name: {NAME}}}\nspec: {{kubernetesVersion: 1.35.7}}\n"
    );
    replace_file(&here.folder().join("cluster-completed.spec"), &served);
    let repeated = ["--snapshot", "newer", "--yes"];
    let before = here.read_record();
    for (options, why) in [
        (&["--newer-minor"][..], "of etcd main of other.example.com"),
        (&["--force"][..], "was taken with Kubernetes 1.36.3"),
    ] {
        expect_refused(&here.restore(&[&repeated[..], options].concat()), why);
    }
    assert_eq!(here.read_record(), before);

    let source = RestoredSnapshot {
        store: String::new(),
        name: "newer".to_owned(),
        sha256: String::new(),
        bytes: 1,
        revision: None,
        keys: None,
        bump: 1,
        unreadable_secrets: false,
        changes: None,
        unknown: UnknownFields::new(),
    };
    here.write_record(&begin_restore(&before, "a", None, "t2", source).unwrap());
    let running = here.restore(&["--snapshot", "newer"]).expect_success();
    let said = "newer is being restored on member a";
    assert!(running.contains(said), "{running}");

    here.write_record(&before);
    let words = [&repeated[..], &["--force", "--newer-minor"]].concat();
    let ended = here.with_protokube(true, || here.restore(&words));
    ended.expect_success();
    let over = here.with_protokube(true, || here.restore(&repeated));
    let said = "etcd main has begun with newer already";
    assert!(over.expect_success().contains(said));
}

/// Nobody stops for a restore that would wait for an instance that is off.
#[test]
fn an_instance_that_is_silent_with_a_members_volume_is_named_before_anything_stops() {
    let cluster = Cluster::new_cluster(1);
    let silent = &cluster.workers[0];
    // Any volume that it has will do.
    let held = format!(
        "f = [{{'Name': 'attachment.instance-id', 'Values': ['{silent}']}}]\n\
         print(boto('ec2').describe_volumes(Filters=f)['Volumes'][0]['VolumeId'])"
    );
    let volume = cluster.simulator.run_python(REGION, &held);
    let volume = volume.trim();
    let record = json!({"format": 1, "generation": {"clusterId": "c1", "token": "t"}, "members": {
        "a": {"volume": "vol-0a", "blank": true, "memberId": "id-a"},
        "b": {"volume": volume, "blank": true, "memberId": "id-b"}}});
    cluster.store_object("etcd/main.json", &record.to_string());
    let written = OffsetDateTime::now_utc().format(&Rfc3339).unwrap();
    let status = json!({"format": 1, "etcd": "main", "instance": "i-1", "written": written, "volume": "vol-0a",
        "running": {"name": "etcd-a", "id": "id-a", "clusterId": "c1", "leader": "id-a", "term": 2, "revision": 9}});
    cluster.store_object("etcd/main/i-1.status.json", &status.to_string());
    let here = Backups::new();
    here.store_snapshot("asked", Duration::ZERO, |_| {});
    let manifest = fs::read_to_string(here.stored("asked").join("manifest.json")).unwrap();
    cluster.store_object("backups/etcd/main/asked/manifest.json", &manifest);
    let words = ["etcd", "restore", NAME, "--snapshot", "asked", "--yes"];
    let ended = cluster.kctl.run(&words);
    expect_refused(
        &ended,
        &format!("{silent} has {volume} of member b and does not report"),
    );
}

/// What is no manifest: damaged, of another tool, a copy of another folder, or one that would spoil everything.
fn bad_manifests() -> Vec<(&'static str, String)> {
    let copied = json!({"format": 1, "name": "other", "cluster": NAME, "etcd": "main", "reason": "schedule",
        "takenAt": "2026-11-25T05:40:00Z", "bytes": 1, "sha256": "", "compressedBytes": 1, "compressedSha256": "", "kctlVersion": "1"});
    let mut huge = copied.clone();
    (huge["name"], huge["bytes"]) = (json!("bad"), json!(u64::MAX));
    vec![
        ("it is empty", String::new()),
        ("it is damaged", "{\"format\":".to_owned()),
        ("of another program", "{\"schemaVersion\": 2}".to_owned()),
        ("of another program", "null".to_owned()),
        ("another release", "{\"format\": 99}".to_owned()),
        ("a copy of another folder", copied.to_string()),
        ("more than 64 GiB", huge.to_string()),
        ("bytes or more", " ".repeat(100_000)),
    ]
}

const OLD: &str = "2026-06-01T00:00:00Z-000001";

/// A store with a verified snapshot, others, and one whose manifest is this.
fn with_bad_manifest(text: &str) -> Backups {
    let here = Backups::new();
    here.store_snapshot("good", Duration::from_hours(2), |_| {});
    here.store_snapshot("older", Duration::from_hours(9), |_| {});
    here.store_snapshot(OLD, Duration::from_hours(100 * 24), |_| {});
    here.store_snapshot(SCHEDULED, Duration::from_mins(5), |manifest| {
        manifest.verified = None;
    });
    here.store_snapshot("bad", Duration::ZERO, |_| {});
    fs::write(here.stored("bad").join("manifest.json"), text).unwrap();
    here
}

/// One bad object is one row with a reason, and it hides and blocks nothing.
#[test]
fn one_bad_manifest_hides_and_blocks_nothing() {
    for (why, text) in bad_manifests() {
        let here = with_bad_manifest(&text);
        let shown = here.snapshot(&["list"]).expect_success();
        let row = shown.lines().find(|line| line.starts_with("bad"));
        let row = row.unwrap_or_default();
        assert!(row.contains(why) && row.contains("unusable"), "{shown}");
        assert!(
            shown.contains("good") && shown.lines().count() == 6,
            "{shown}"
        );
        let shown = here.snapshot(&["list", "-o", "json"]).expect_success();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let problem = shown["snapshots"][0]["problem"].as_str();
        assert!(problem.is_some_and(|of| of.contains(why)), "{shown}");
        // The newest good one is drilled with.
        let drilled = here.with_protokube(true, || here.kctl.run(&["etcd", "drill", NAME]));
        let (out, err) = (&drilled.out, &drilled.err);
        assert!(
            out.contains("good has 233 keys"),
            "{}",
            drilled.all_output()
        );
        assert!(
            err.contains("bad is passed over"),
            "{}",
            drilled.all_output()
        );
        let verified = here.with_protokube(true, || here.snapshot(&["verify", "good"]));
        verified.expect_success();
        here.restore(&["--snapshot", "good"]).expect_success();
        let to = here.kctl.home_path("good.db").display().to_string();
        here.snapshot(&["download", "good", "--file", &to])
            .expect_success();
    }
}

/// What is said to do about a bad object works in the state in which it is said.
#[test]
fn a_bad_manifest_is_refused_with_a_next_step_that_works() {
    for (why, text) in bad_manifests() {
        let here = with_bad_manifest(&text);
        let to = here.kctl.home_path("bad.db").display().to_string();
        for refused in [
            here.snapshot(&["download", "bad", "--file", &to]),
            here.restore(&["--snapshot", "bad", "--force"]),
            here.snapshot(&["verify", "bad"]),
        ] {
            expect_refused(&refused, why);
            let hint = "kctl etcd snapshot delete bad";
            assert!(refused.err.contains(hint), "{}", refused.err);
        }
        let newest = here.snapshot(&["delete", "good", "--yes"]);
        expect_refused(&newest, "newest verified");
        let shown = here.snapshot(&["prune"]).expect_success();
        assert_eq!(shown, format!("deletes {OLD}\n"));
        for words in [
            &["prune", "--yes"][..],
            &["delete", "older", "--yes"],
            &["delete", "bad", "--yes"],
        ] {
            here.snapshot(words).expect_success();
        }
        let shown = here.snapshot(&["list"]).expect_success();
        assert!(
            !shown.contains("bad") && !shown.contains("PROBLEM"),
            "{shown}"
        );
    }
}

#[test]
fn a_store_that_was_copied_is_not_pruned_and_too_much_is_not_deleted_at_once() {
    let here = Backups::new();
    let now = OffsetDateTime::now_utc();
    let store = |days: i64, age: Duration| {
        let at = now - time::Duration::days(days);
        let at = at.replace_nanosecond(0).unwrap().format(&Rfc3339).unwrap();
        let name = format!("{at}-{days:06}");
        here.store_snapshot(&name, age, |manifest| manifest.taken_at = at);
        name
    };
    // Written within ten minutes.
    for days in 0..85 {
        let minutes = u64::try_from(days % 10).unwrap();
        store(days, Duration::from_mins(120 + minutes));
    }
    let kept = here.snapshot(&["prune"]).expect_success();
    assert_eq!(kept, "all 85 snapshots are kept\n");
    let shown = here.snapshot(&["list"]).expect_success();
    let newest = shown.lines().nth(1).unwrap_or_default();
    assert!(
        newest.ends_with("3.6.12") && newest.contains("-000000"),
        "{shown}"
    );
    let oldest = shown.lines().last().unwrap_or_default();
    assert!(oldest.contains("-000084"), "{shown}");
    // What is old by both times.
    let old: Vec<String> = (200..300)
        .map(|days| {
            store(
                days,
                Duration::from_hours(u64::try_from(days).unwrap() * 24),
            )
        })
        .collect();
    let preview = here.snapshot(&["prune"]);
    assert!(
        preview.err.contains("100 of 185"),
        "{}",
        preview.all_output()
    );
    assert_eq!(preview.expect_success().lines().count(), 100);
    let listed = here.snapshot(&["list"]);
    assert!(listed.err.contains("100 of 185"), "{}", listed.err);
    let refused = here.snapshot(&["prune", "--yes"]);
    expect_refused(&refused, "nothing was deleted");
    assert!(here.stored(&old[0]).join("manifest.json").exists());
    here.snapshot(&["prune", "--yes", "--force"])
        .expect_success();
    assert!(!here.stored(&old[0]).join("manifest.json").exists());
    let kept = here.snapshot(&["prune"]).expect_success();
    assert_eq!(kept, "all 85 snapshots are kept\n");
}

/// Whoever may write one object must not spoil all restores: revisions are never lowered again.
#[test]
fn one_forged_revision_spoils_no_restore() {
    const HUGE: u64 = 9_223_372_036_854_775_000;
    let forge = |manifest: &mut SnapshotManifest| {
        manifest.verified.as_mut().unwrap().revision = HUGE;
    };
    let bump = |here: &Backups| {
        let words = ["--snapshot", "good", "--yes"];
        let ended = here.with_protokube(true, || here.restore(&words));
        let said = ended.err.clone();
        ended.expect_success();
        let restored = here.read_record().generation.restored;
        (restored.unwrap().bump, said)
    };
    let here = Backups::new();
    here.store_snapshot("good", Duration::from_mins(9), |_| {});
    here.store_snapshot("forged", Duration::from_mins(8), forge);
    let (raised, said) = bump(&here);
    assert_eq!(4000 + raised, 5000 + 1_000_000_000);
    assert!(said.contains("the snapshot forged is ignored"), "{said}");
    // One of another cluster counts for nothing here.
    let here = Backups::new();
    here.store_snapshot("good", Duration::from_mins(9), |_| {});
    here.store_snapshot("other", Duration::from_mins(8), |manifest| {
        manifest.cluster = "other.example.com".to_owned();
        manifest.verified.as_mut().unwrap().revision = 900_000_000_000;
    });
    let (raised, _) = bump(&here);
    assert_eq!(4000 + raised, 5000 + 1_000_000_000);
    // A follower, and the member that leads.
    for (member, is_refused) in [("a", false), ("b", true)] {
        let here = Backups::new();
        here.store_snapshot("good", Duration::from_mins(9), |_| {});
        here.report(member, HUGE, "c1");
        let shown = here.restore(&["--snapshot", "good"]);
        assert!(
            shown.err.contains(&HUGE.to_string()),
            "{}",
            shown.all_output()
        );
        assert!(shown.err.contains(&format!("i-{member}")), "{}", shown.err);
        assert_eq!(shown.code != 0, is_refused, "{}", shown.all_output());
    }
    let here = Backups::new();
    here.store_snapshot("good", Duration::from_mins(9), forge);
    expect_refused(
        &here.restore(&["--snapshot", "good"]),
        "could not count for long",
    );
}

/// Whatever lies in a file, the message names it, says what is wrong with it, and what to do.
#[test]
fn a_file_that_is_no_snapshot_is_named_with_what_is_wrong_with_it() {
    let here = Backups::new();
    let good = snapshot_file();
    let whole = packed(&good);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("snap", options).unwrap();
    zip.write_all(&good).unwrap();
    let zip = zip.finish().unwrap().into_inner();
    let empty_zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let empty_zip = empty_zip.finish().unwrap().into_inner();
    let path = here.kctl.home_path("the.file");
    let words = path.display().to_string();
    for (content, why) in [
        (Vec::new(), "it is empty"),
        (b"x".to_vec(), "was cut off"),
        (whole[..2].to_vec(), "gzip"),
        (whole[..whole.len() - 9].to_vec(), "gzip"),
        ([&whole[..20], b"????", &whole[20..]].concat(), "gzip"),
        (zip[..zip.len() / 2].to_vec(), "it is a zip"),
        (zip[..4].to_vec(), "it is a zip"),
        (empty_zip, "0 files"),
        (packed(b""), "was cut off"),
        (good[1..].to_vec(), "was cut off"),
        (b"<html>access denied</html>".to_vec(), "was cut off"),
    ] {
        fs::write(&path, content).unwrap();
        let ended = here.snapshot(&["import", "n", "--file", &words]);
        expect_refused(&ended, why);
        assert!(ended.err.contains("the.file"), "{}", ended.err);
        assert!(ended.err.contains("name a file of"), "{}", ended.err);
    }
    fs::remove_file(&path).unwrap();
    expect_refused(
        &here.snapshot(&["import", "n", "--file", &words]),
        "the.file cannot be read",
    );
    fs::create_dir(&path).unwrap();
    expect_refused(
        &here.snapshot(&["import", "n", "--file", &words]),
        "it is no file",
    );
}

/// An import that was interrupted is gone on with by the same command.
#[test]
fn an_interrupted_import_is_repeated_by_the_same_command() {
    let here = Backups::new();
    let (path, other) = (here.kctl.home_path("a.db"), here.kctl.home_path("b.db"));
    fs::write(&path, snapshot_file()).unwrap();
    let mut file = vec![9; 1024];
    file.extend_from_slice(&Sha256::digest(&file));
    fs::write(&other, file).unwrap();
    let import =
        |path: &Path| here.snapshot(&["import", "n", "--file", &path.display().to_string()]);
    import(&path).expect_success();
    fs::remove_file(here.stored("n").join("manifest.json")).unwrap();
    let refused = import(&other);
    expect_refused(&refused, "other content");
    assert!(
        refused.err.contains("kctl etcd snapshot delete n"),
        "{}",
        refused.err
    );
    import(&path).expect_success();
    fs::remove_file(here.stored("n").join("manifest.json")).unwrap();
    here.snapshot(&["delete", "n", "--yes"]).expect_success();
    import(&other).expect_success();
}

#[test]
fn an_option_without_an_effect_is_refused() {
    let here = Backups::new();
    let store = format!("file://{}", here.kctl.home_path("backups").display());
    for words in [
        &["snapshot", "list", "--store", &store, "--etcd", "events"][..],
        &["snapshot", "list", "--store", &store, "--name", NAME],
        &[
            "snapshot", "download", "n", "--file", "f", "--store", &store, "--etcd", "events",
        ],
        &[
            "snapshot", "download", "n", "--file", "f", "--store", &store, "--name", NAME,
        ],
        &["restore", NAME, "--call-off", "--on", "a"],
        &["restore", NAME, "--call-off", "--yes"],
        &["restore", NAME, "--call-off", "--timeout", "1m"],
        &["restore", NAME, "--call-off", "--force"],
        &["restore", NAME, "--call-off", "--again"],
        &["restore", NAME, "--call-off", "--snapshot", "n"],
        &["restore", NAME, "--call-off", "--latest"],
        &["restore", NAME, "--call-off", "-o", "json"],
        &["restore", NAME, "--latest", "--snapshot", "n"],
        &[
            "restore",
            NAME,
            "--latest",
            "--time",
            "2026-11-26T15:04:05Z",
        ],
        &[
            "restore",
            NAME,
            "--snapshot",
            "n",
            "--time",
            "2026-11-26T15:04:05Z",
        ],
        &["restore", NAME],
    ] {
        let ended = here.kctl.run(&[&["etcd"], words].concat());
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.all_output());
    }
}

/// After a restore only its member is recorded. If its volume dies before another one has joined, the instance of any other takes a snapshot.
#[test]
fn a_member_that_the_record_does_not_have_yet_takes_a_snapshot() {
    let here = Backups::new();
    here.store_snapshot(SCHEDULED, Duration::from_mins(90), |_| {});
    let mut record = here.read_record();
    let generation = std::mem::replace(&mut record.generation, Generation::forming("t0"));
    record.give_up(generation);
    record.members.retain(|name, _| name == "a");
    here.write_record(&record);
    for gone in ["a", "c"] {
        fs::remove_file(
            here.folder()
                .join(format!("etcd/main/i-{gone}.status.json")),
        )
        .unwrap();
    }
    // Nothing is mounted there, so only the record of before knows the volume.
    let written = OffsetDateTime::now_utc().format(&Rfc3339).unwrap();
    let status =
        json!({"format": 1, "etcd": "main", "instance": "i-b", "member": "b", "written": written});
    let path = here.folder().join("etcd/main/i-b.status.json");
    replace_file(&path, &status.to_string());
    let words = ["--snapshot", SCHEDULED, "--force"];
    let shown = here.restore(&words).expect_success();
    assert!(shown.contains("--on b --force --yes"), "{shown}");
    expect_refused(
        &here.restore(&[&words[..], &["--on", "c"]].concat()),
        "no member c",
    );
    let named = [&words[..], &["--on", "etcd-b", "--yes"]].concat();
    let said = here.with_protokube(true, || here.restore(&named));
    assert!(said.expect_success().contains("serves the data of"));
    let record = here.read_record();
    let members: Vec<(&str, &str)> = record
        .members
        .iter()
        .map(|(name, one)| (name.as_str(), one.volume.as_str()))
        .collect();
    assert_eq!(members, [("b", "vol-b")]);
}
