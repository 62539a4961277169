//! `kctl delete cluster` keeps the backups of etcd unless it is told otherwise, and another cluster of the name can be created.

use crate::plans::stored_cluster;
use crate::scenario::{NAME, REGION};
use crate::simulator::Simulator;
use etcd_rules::backup::StoreOwner;
use etcd_rules::kept_backups_key;
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings, EtcdBackupSettings};
use node::formatted::UnknownFields;

const BACKUP: &str = "backups/etcd/main/2026-11-25T05:40:00Z-000123/etcd.backup.gz";

fn put(simulator: &Simulator, key: &str, text: &str) {
    let code =
        format!("boto('s3').put_object(Bucket='state', Key='{key}', Body={text:?}.encode())");
    simulator.run_python(REGION, &code);
}

fn put_backup(simulator: &Simulator) {
    let key = format!("clusters/{NAME}/{BACKUP}");
    simulator.run_python(
        REGION,
        &format!("boto('s3').put_object(Bucket='state', Key='{key}', Body=b'x')"),
    );
}

/// Keys in the cluster's folder.
fn keys_left(simulator: &Simulator) -> Vec<String> {
    let code = format!(
        "for o in boto('s3').list_objects_v2(Bucket='state', Prefix='clusters/{NAME}/').get('Contents', []):\n print(o['Key'])"
    );
    let folder = format!("clusters/{NAME}/");
    let keys = simulator.run_python(REGION, &code);
    keys.lines()
        .map(|key| key.trim_start_matches(&folder).to_owned())
        .collect()
}

#[test]
fn backups_outlive_their_cluster_unless_they_are_deleted_too() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let delete = ["delete", "cluster", NAME];
    for deletes_all in [false, true] {
        kctl.run(&["update", "--yes"]).expect_success();
        put_backup(&simulator);
        let preview = kctl.run(&delete).expect_success();
        assert!(preview.contains("of etcd backups stay"), "{preview}");
        let more: &[&str] = if deletes_all {
            &["--yes", "--delete-backups"]
        } else {
            &["--yes"]
        };
        let ran = kctl.run(&[&delete[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.all_output());
        let left = keys_left(&simulator);
        if deletes_all {
            assert_eq!(left, Vec::<String>::new());
            return;
        }
        assert!(ran.err.contains("kept the backups of etcd"), "{}", ran.err);
        let marks = ["events", "main"].map(kept_backups_key);
        for key in &left {
            assert!(key == BACKUP || marks.contains(key), "{left:?}");
        }
        assert!(left.contains(&BACKUP.to_owned()), "{left:?}");
        // The name is free.
        let words = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
        kctl.run(&words).expect_success();
    }
}

/// Snapshots may be in another store, so the key stays also without any here.
#[test]
fn the_key_of_the_secrets_in_backups_outlives_its_cluster_unless_backups_are_deleted() {
    const KEY: &str = "secrets/encryptionconfig";
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    for (deletes_all, has_backup) in [(false, false), (false, true), (true, true)] {
        let key = format!("clusters/{NAME}/{KEY}");
        simulator.run_python(
            REGION,
            &format!("boto('s3').put_object(Bucket='state', Key='{key}', Body=b'x')"),
        );
        // Without settings nobody knows of other stores.
        let key = format!("clusters/{NAME}/{BACKUP_SETTINGS_KEY}");
        let inside = format!("s3://state/clusters/{NAME}/backups/etcd/main");
        put(&simulator, &key, &settings_with(&inside));
        if has_backup {
            put_backup(&simulator);
        }
        let delete = ["delete", "cluster", NAME];
        let preview = kctl.run(&delete).expect_success();
        assert!(preview.contains("the secret encryptionconfig"), "{preview}");
        let more: &[&str] = if deletes_all {
            &["--yes", "--delete-backups"]
        } else {
            &["--yes"]
        };
        let ran = kctl.run(&[&delete[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.all_output());
        let left = keys_left(&simulator);
        assert_eq!(left.iter().any(|one| one == KEY), !deletes_all, "{left:?}");
        assert_eq!(ran.err.contains(KEY), !deletes_all, "{}", ran.err);
        if !deletes_all {
            let words = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
            kctl.run(&words).expect_success();
        }
    }
}

/// Settings of backups in this store.
fn settings_with(store: &str) -> String {
    let settings = EtcdBackupSettings {
        store: store.to_owned(),
        interval_seconds: 900,
        hourly_retention_seconds: 7 * 86_400,
        daily_retention_seconds: 90 * 86_400,
        recipients: Vec::new(),
        changes_seconds: None,
        unknown: UnknownFields::new(),
    };
    BackupSettings::new([("main".to_owned(), settings)].into()).to_json()
}

/// A store that is not this cluster's, nobody's, another copy's or unknown keeps its backups, and they need the keys.
#[test]
fn the_keys_stay_as_long_as_any_backup_may_be_left() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let owner_of = |name: &str, store: &str| {
        StoreOwner::new(name, "main", &format!("{store}/{name}"), Some("7")).to_json()
    };
    let owner = |name: &str| owner_of(name, "s3://state/clusters");
    put(
        &simulator,
        "foreign/main/owner.json",
        &owner("other.example.com"),
    );
    // A cluster of this name whose state lies elsewhere, as that of a copy does.
    let namesake = owner_of(NAME, "s3://state/before");
    put(&simulator, "before/main/owner.json", &namesake);
    put(&simulator, "own/main/owner.json", &owner(NAME));
    put(&simulator, "own/main/asked/etcd.backup.gz", "x");
    put(&simulator, "own/main/asked/changes/00000001", "x");
    let live = format!("live/{NAME}");
    put(&simulator, &format!("{live}/config"), "x");
    put(
        &simulator,
        &format!("{live}/backups/etcd/main/owner.json"),
        &owner(NAME),
    );
    let settings = settings_with;
    let inside = |store: &str| settings(&format!("s3://state/{store}/backups/etcd/main"));
    for (settings, stays) in [
        (settings("s3://state/foreign/main"), true),
        (settings("s3://state/before/main"), true),
        (settings("s3://state/nobodys/main"), true),
        (inside(&live), true),
        ("damaged".to_owned(), true),
        // None: a deletion that an earlier release began.
        (String::new(), true),
        (settings("s3://state/own/main"), false),
    ] {
        let objects = [
            (BACKUP_SETTINGS_KEY, settings.as_str()),
            ("secrets/encryptionconfig", "x"),
            (
                "secrets/encryptionconfig-kept-2026-11-27T12-00-00Z",
                "before",
            ),
        ];
        for (key, text) in objects.iter().filter(|(_, text)| !text.is_empty()) {
            put(&simulator, &format!("clusters/{NAME}/{key}"), text);
        }
        let ran = kctl.run(&["delete", "cluster", NAME, "--yes", "--delete-backups"]);
        assert_eq!(ran.code, 0, "{}", ran.all_output());
        let left = keys_left(&simulator);
        let kept = left.iter().filter(|key| key.starts_with("secrets/"));
        let expected = if stays { 2 } else { 0 };
        assert_eq!(kept.count(), expected, "{settings}: {left:?}");
        let words = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
        kctl.run(&words).expect_success();
    }
    let code = "print([o['Key'] for o in boto('s3').list_objects_v2(Bucket='state')['Contents']])";
    let all = simulator.run_python(REGION, code);
    assert!(!all.contains("own/main/"), "{all}");
    let of_live = format!("{live}/backups/etcd/main/owner.json");
    assert!(
        all.contains("foreign/main/owner.json")
            && all.contains("before/main/owner.json")
            && all.contains(&of_live),
        "{all}"
    );
}

/// The cluster goes on, or its state is a copy: what is outside of the folder is needed.
#[test]
fn unregistering_deletes_no_backups_outside_of_the_folder() {
    const KEY: &str = "secrets/encryptionconfig";
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let owner = StoreOwner::new(NAME, "main", &format!("s3://state/clusters/{NAME}"), None);
    put(&simulator, "own/main/owner.json", &owner.to_json());
    put(&simulator, "own/main/asked/etcd.backup.gz", "x");
    let inside = |key: &str| format!("clusters/{NAME}/{key}");
    let settings = settings_with("s3://state/own/main");
    put(&simulator, &inside(BACKUP_SETTINGS_KEY), &settings);
    put(&simulator, &inside(KEY), "x");
    put_backup(&simulator);
    let words = ["--unregister", "--delete-backups", "--yes"];
    let ran = kctl.run(&[&["delete", "cluster", NAME][..], &words].concat());
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(
        ran.err.contains("backups in other places stay"),
        "{}",
        ran.err
    );
    assert_eq!(keys_left(&simulator), [KEY]);
    let code = "print([o['Key'] for o in boto('s3').list_objects_v2(Bucket='state', Prefix='own/')['Contents']])";
    let outside = simulator.run_python(REGION, code);
    for key in ["own/main/owner.json", "own/main/asked/etcd.backup.gz"] {
        assert!(outside.contains(key), "{outside}");
    }
}
