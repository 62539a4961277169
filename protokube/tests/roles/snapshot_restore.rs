//! Tests of a restore: an etcd cluster begins anew with a snapshot from the backup store, whenever protokube or the instance dies, and
//! a snapshot that is not what the record says stops nobody.

use crate::etcd::{
    AT_ONCE, let_settle, member_of, read_record, serving_member, settle_through_death, write_record,
};
use crate::test_host::{
    FakeEc2, FakeEtcd, FakeQuorum, TestHost, founder_identity, pass_fuse, write_log,
};
use aws_client::store::Expect;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etcd_member::EtcdMember;
use etcd_rules::backup::{
    ChainEnd, CollectedChanges, SnapshotManifest, WatchedEvent, manifest_key,
};
use etcd_rules::{FormationRecord, RestoredChanges, RestoredSnapshot, begin_restore};
use etcd_store::{PreparedPart, store_part};
use flate2::Compression;
use flate2::write::GzEncoder;
use node::config::NodeConfig;
use node::digest::sha256_hex;
use node::formatted::UnknownFields;
use protokube_role::pace::PollPace;
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use test_support::write_script;

const NEW_TOKEN: &str = "restored";
const NAME: &str = "2026-11-25T05:40:00Z-000123";
const CONTENT: &[u8] = b"a database and its hash";

/// What needs etcd.
const API_PODS: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Does what ctr does with etcd's programs. etcdutl finds no hash in a file that does not begin as the snapshot does.
const CTR: &str = r#"root=$(dirname "$0")/..
echo "$*" >> "$root/ctr-calls"
for word; do case $word in type=bind,src=*) from=${word#type=bind,src=}; from=$root${from%%,*} ;; esac; done
case "$*" in
  *"etcdutl snapshot restore"*) grep -q '^a database' "$from/snapshot.db" || { echo 'expected sha256' >&2; exit 1; }
    case "$*" in
      *"--data-dir /work/data"*) mkdir "$from/data" ;;
      *) mkdir -p "$from/restored/member" && cp -r "$root/programs/restored-wal" "$from/restored/member/wal" ;;
    esac ;;
  *"images ls"*) echo "${*##*name==}" ;;
esac
"#;

fn new_member(host: &TestHost, config: &NodeConfig) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    member_of(host, config.clone(), AT_ONCE)
}

fn snapshot_in(host: &TestHost) -> RestoredSnapshot {
    RestoredSnapshot {
        store: format!("file://{}", host.path("backups").display()),
        name: NAME.into(),
        sha256: sha256_hex(CONTENT),
        bytes: CONTENT.len() as u64,
        revision: Some(2700),
        keys: Some(233),
        bump: 1_000_000_000,
        unreadable_secrets: false,
        changes: None,
        unknown: UnknownFields::new(),
    }
}

fn write_snapshot(host: &TestHost, content: &[u8]) {
    let folder = host.path("backups").join(NAME);
    fs::create_dir_all(&folder).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(content).unwrap();
    fs::write(folder.join("etcd.backup.gz"), packed.finish().unwrap()).unwrap();
}

/// The member a serves with two others, and an operator has asked to restore a snapshot on it.
async fn asked_member() -> (TestHost, NodeConfig, FormationRecord) {
    let (mut host, config) = serving_member(true, true).await;
    let fuse = host.fuse.clone();
    let dies = move || pass_fuse(&fuse).is_err();
    host.host = host.host.with_stop(Arc::new(dies));
    write_script(&host.path("programs/ctr"), CTR);
    let restored = founder_identity(NEW_TOKEN);
    write_log(&host.path("programs/restored-wal"), &restored);
    write_snapshot(&host, CONTENT);
    let before = read_record(&host).await;
    let record = begin_restore(&before, "a", None, NEW_TOKEN, snapshot_in(&host)).unwrap();
    write_record(&host, &record);
    (host, config, before)
}

fn is_ready(record: &FormationRecord) -> bool {
    record.next.as_ref().is_some_and(|next| next.ready)
}

/// The other two have stopped, as their instances say in the record.
async fn stop_the_others(host: &TestHost) {
    let mut record = read_record(host).await;
    if let Some(recovering) = &mut record.next {
        recovering.stopped = ["b", "c"].map(|name| (name.to_owned(), None)).into();
    }
    write_record(host, &record);
}

/// Steps until the source is ready, and a step has been taken after that.
async fn take_steps(host: &TestHost, config: &NodeConfig) {
    let member = new_member(host, config);
    for _ in 0..4 {
        let _ = member.take_step().await;
    }
}

async fn assert_restored(host: &TestHost, before: &FormationRecord, what: &str) {
    let record = read_record(host).await;
    let log = founder_identity(NEW_TOKEN);
    assert_eq!(record.formed_id(), Some(log.cluster_id.as_str()), "{what}");
    let restored = record.generation.restored.as_ref();
    assert_eq!(restored, Some(&snapshot_in(host)), "{what}");
    let members: Vec<&String> = record.members.keys().collect();
    assert_eq!(members, ["a"], "{what}");
    assert_eq!(record.members["a"].member_id, Some(log.member_id), "{what}");
    assert!(record.has_given_up(before.formed_id().unwrap()), "{what}");
    let disk = |path: &str| host.path_on_disk(path);
    for left in ["data.lost-2", "data.scratch", "data.restored-restored"] {
        assert!(
            !disk(&format!("var/etcd/{left}")).exists(),
            "{what}: {left}"
        );
    }
    assert!(host.kubelet.lock().unwrap().running.is_some(), "{what}");
}

/// All that takes long is done while the members serve, and the old data is kept.
#[tokio::test]
async fn members_serve_until_the_snapshot_is_proven_and_unpacked() {
    let (host, config, before) = asked_member().await;
    take_steps(&host, &config).await;
    let restored = host.path_on_disk("var/etcd/data.restored-restored/member/wal");
    assert!(restored.exists());
    assert!(is_ready(&read_record(&host).await));
    let served = API_PODS.map(|pod| host.path(&format!("etc/kubernetes/manifests/{pod}.manifest")));
    served.iter().for_each(|path| fs::write(path, "").unwrap());
    take_steps(&host, &config).await;
    assert!(served.iter().all(|path| path.exists()));
    let starts = host.kubelet.lock().unwrap().starts;
    assert!(host.kubelet.lock().unwrap().running.is_some());
    stop_the_others(&host).await;
    let_settle(&new_member(&host, &config)).await;
    assert_restored(&host, &before, "later").await;
    // The role manifests brings them back.
    assert!(!served.iter().any(|path| path.exists()));
    assert_eq!(host.kubelet.lock().unwrap().starts, starts + 1);
    assert!(
        host.path_on_disk("var/etcd/data.lost-1/member/wal")
            .exists()
    );
    host.reboot();
    let_settle(&new_member(&host, &config)).await;
    assert_restored(&host, &before, "after a reboot").await;
}

/// The only member of a cluster: nobody else has to stop.
#[tokio::test]
async fn a_lone_member_is_restored_whatever_became_of_its_log() {
    for loses_log in [false, true] {
        let (host, config) = serving_member(false, true).await;
        write_script(&host.path("programs/ctr"), CTR);
        let restored = founder_identity(NEW_TOKEN);
        write_log(&host.path("programs/restored-wal"), &restored);
        write_snapshot(&host, CONTENT);
        if loses_log {
            fs::remove_dir_all(host.wal_path()).unwrap();
        }
        let before = read_record(&host).await;
        let record = begin_restore(&before, "a", None, NEW_TOKEN, snapshot_in(&host)).unwrap();
        write_record(&host, &record);
        let_settle(&new_member(&host, &config)).await;
        assert_restored(&host, &before, &format!("loses its log: {loses_log}")).await;
    }
}

/// Damage of the file, of what is in it, and of what the record says of it.
#[tokio::test]
async fn a_snapshot_that_is_not_what_the_record_says_stops_nobody() {
    let packed = |host: &TestHost| host.path("backups").join(NAME).join("etcd.backup.gz");
    let flip = |path: &std::path::Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    type Damage<'a> = Box<dyn Fn(&TestHost, &mut RestoredSnapshot) + 'a>;
    let damages: [(&str, Damage<'_>); 9] = [
        (
            "does not exist",
            Box::new(|host, _| fs::remove_file(packed(host)).unwrap()),
        ),
        ("etcd.backup.gz", Box::new(|host, _| flip(&packed(host)))),
        (
            "etcd.backup.gz",
            Box::new(|host, _| fs::write(packed(host), "").unwrap()),
        ),
        (
            "has more than",
            Box::new(|host, _| {
                let file = fs::File::options().append(true).open(packed(host));
                file.unwrap().set_len(50 << 20).unwrap();
            }),
        ),
        (
            "no database of etcd has so many",
            Box::new(|_, snapshot| snapshot.bytes = u64::MAX / 3 + 1),
        ),
        (
            "22 bytes instead of 23",
            Box::new(|host, _| write_snapshot(host, &CONTENT[1..])),
        ),
        (
            "SHA-256",
            Box::new(|host, _| write_snapshot(host, b"a database and its hush")),
        ),
        (
            "233 keys",
            Box::new(|_, snapshot| snapshot.keys = Some(234)),
        ),
        (
            "as its revision",
            Box::new(|_, snapshot| snapshot.revision = Some(2701)),
        ),
    ];
    for (says, damage) in damages {
        let (host, config, before) = asked_member().await;
        let mut snapshot = snapshot_in(&host);
        damage(&host, &mut snapshot);
        let damaged = begin_restore(&before, "a", None, NEW_TOKEN, snapshot).unwrap();
        write_record(&host, &damaged);
        let starts = host.kubelet.lock().unwrap().starts;
        let_settle(&new_member(&host, &config)).await;
        // protokube calls it off by itself, and says why.
        let after = read_record(&host).await;
        let refused = after.generation.refused.expect(says);
        assert_eq!(
            (refused.token.as_str(), refused.source.as_str()),
            (NEW_TOKEN, NAME)
        );
        assert!(refused.why.contains(says), "{says}: {refused:?}");
        assert_eq!(after.next, None, "{says}");
        assert_eq!(after.generation.token, before.generation.token, "{says}");
        assert_eq!(host.kubelet.lock().unwrap().starts, starts, "{says}");
        assert!(host.wal_path().exists(), "{says}");
    }
}

/// Each attempt would write the whole snapshot to the disk of a member that serves.
#[tokio::test]
async fn a_restore_that_failed_is_repeated_after_a_pause() {
    for (rest, repeats) in [(Duration::ZERO, true), (Duration::from_hours(1), false)] {
        let (host, config, _) = asked_member().await;
        host.set_free_bytes(0);
        let member = member_of(&host, config, PollPace { rest, ..AT_ONCE });
        let mut errors = Vec::new();
        while errors.len() < 3 {
            if let Err(error) = member.take_step().await {
                errors.push(format!("{error:#}"));
                let calls = fs::read_to_string(host.path("ctr-calls")).unwrap();
                // An attempt begins by removing what the one before left.
                fs::write(host.path("ctr-calls"), "").unwrap();
                assert_eq!(calls.is_empty(), errors.len() > 1 && !repeats, "{errors:?}");
            }
        }
        assert!(errors[0].contains("MiB of free space"), "{errors:?}");
        assert_eq!(errors[0], errors[2]);
        // Another restore does not wait for it.
        host.set_free_bytes(u64::MAX);
        let mut other = read_record(&host).await;
        if let Some(recovering) = &mut other.next {
            "another".clone_into(&mut recovering.token);
        }
        write_record(&host, &other);
        let _ = member.take_step().await;
        assert!(is_ready(&read_record(&host).await), "{rest:?}");
    }
}

/// protokube dies at each change, file or call, and the instance may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_with_the_restore() {
    let (whole, config, _) = asked_member().await;
    stop_the_others(&whole).await;
    let first = whole.fuse.lock().unwrap().done;
    let_settle(&new_member(&whole, &config)).await;
    let calls = whole.fuse.lock().unwrap().done - first;
    assert!(calls > 25, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let what = format!("dies at {dies_at} of {calls}, reboots: {reboots}");
            let (host, config, before) = asked_member().await;
            stop_the_others(&host).await;
            settle_through_death(&host, &config, (dies_at, reboots), &what).await;
            assert_restored(&host, &before, &what).await;
            let aside = host.path_on_disk("var/etcd/data.lost-1/member/wal");
            assert!(aside.exists(), "{what}");
        }
    }
}

/// Only the bucket is left: the volumes are gone, and another one is blank.
#[tokio::test]
async fn a_blank_volume_takes_the_snapshot_once_the_old_one_is_gone() {
    let (host, config, before) = asked_member().await;
    host.reboot();
    host.cloud.volumes.lock().unwrap().clear();
    host.cloud.add_volume_of("vol-0n", "main", "a/a,b,c", None);
    let_settle(&new_member(&host, &config)).await;
    let record = read_record(&host).await;
    assert_eq!(record.members["a"].volume, "vol-0n");
    let restored = founder_identity(NEW_TOKEN).cluster_id;
    assert_eq!(record.formed_id(), Some(restored.as_str()));
    assert!(record.has_given_up(before.formed_id().unwrap()));
    assert!(host.kubelet.lock().unwrap().running.is_some());
}

/// What was restored is lost before it is used: the snapshot is restored again, and never the member's own data.
#[tokio::test]
async fn restored_data_that_is_lost_is_restored_from_the_snapshot_again() {
    let (host, config, before) = asked_member().await;
    stop_the_others(&host).await;
    let member = new_member(&host, &config);
    while !read_record(&host).await.is_formed() {
        member.take_step().await.unwrap();
    }
    let restored = host.path_on_disk("var/etcd/data.restored-restored");
    fs::remove_dir_all(&restored).unwrap();
    fs::remove_file(host.path("ctr-calls")).unwrap();
    let_settle(&member).await;
    assert_restored(&host, &before, "later").await;
    let calls = fs::read_to_string(host.path("ctr-calls")).unwrap();
    assert!(!calls.contains("--skip-hash-check"), "{calls}");
}

/// etcdutl would keep them, and the restored cluster would refuse its first writes, or everything.
#[tokio::test]
async fn alarms_of_the_old_cluster_do_not_pass_to_the_restored_one() {
    for alarm in [None, Some("NOSPACE"), Some("CORRUPT")] {
        let (host, config, before) = asked_member().await;
        if let Some(alarm) = alarm {
            let raised = format!(r#"{{"alarms":[{{"memberID":"8630161756","alarm":"{alarm}"}}]}}"#);
            fs::write(host.path("alarms"), raised).unwrap();
        }
        stop_the_others(&host).await;
        let_settle(&new_member(&host, &config)).await;
        assert_restored(&host, &before, "alarms").await;
        let calls = fs::read_to_string(host.path("ctr-calls")).unwrap();
        let last = calls
            .lines()
            .rfind(|call| call.contains("snapshot restore"));
        let from_scratch = last
            .unwrap()
            .contains("/work/data/member/snap/db --skip-hash-check");
        assert_eq!(from_scratch, alarm.is_some(), "{alarm:?}: {calls}");
    }
}

/// A key that was rotated out, or that a cluster of the same name never had: nobody stops for data that no API server can read.
#[tokio::test]
async fn a_snapshot_whose_secrets_nobody_can_read_stops_nobody_unless_forced() {
    for forced in [false, true] {
        let (host, config, before) = asked_member().await;
        let key = STANDARD.encode("/registry/secrets/default/x");
        let value = STANDARD.encode("k8s:enc:aescbc:v1:old:0123456789abcdef0123456789abcdef");
        let secret = format!(r#"{{"kvs":[{{"key":"{key}","value":"{value}"}}]}}"#);
        fs::write(host.path("secrets"), secret).unwrap();
        let snapshot = RestoredSnapshot {
            unreadable_secrets: forced,
            ..snapshot_in(&host)
        };
        let record = begin_restore(&before, "a", None, NEW_TOKEN, snapshot).unwrap();
        write_record(&host, &record);
        take_steps(&host, &config).await;
        let after = read_record(&host).await;
        assert_eq!(is_ready(&after), forced, "{after:?}");
        if after.next.is_some() {
            continue;
        }
        let why = &after.generation.refused.as_ref().unwrap().why;
        assert!(
            why.contains("key old of aescbc") || why.contains("no EncryptionConfiguration"),
            "{why}"
        );
        assert!(why.contains("--unreadable-secrets"), "{why}");
        assert!(host.kubelet.lock().unwrap().running.is_some());
    }
}

/// Stores three parts of changes after the snapshot, and its manifest. Returns what the record says of them.
async fn write_changes(host: &TestHost) -> RestoredChanges {
    let sha256 = sha256_hex(CONTENT);
    let text = format!(
        r#"{{"format":1,"name":"{NAME}","cluster":"x.example.com","etcd":"main","reason":"schedule","takenAt":"2026-11-25T05:40:00Z",
        "clusterId":"c1","bytes":{},"sha256":"{sha256}","compressedBytes":1,"compressedSha256":"","kctlVersion":"0.1.0",
        "verified":{{"at":"","revision":2700,"compacted":0,"hash":0,"keys":233,"seconds":9}}}}"#,
        CONTENT.len()
    );
    let url = format!("file://{}", host.path("backups").display());
    let backups = host.store.open_other(&url).unwrap();
    let manifest = SnapshotManifest::parse("manifest", text.as_bytes()).unwrap();
    let (key, text) = (manifest_key(NAME), text.into_bytes());
    backups.put(&key, text, Expect::Any).await.unwrap();
    let mut end = ChainEnd::of_manifest(&manifest).unwrap();
    for after in 2700..2703_u64 {
        let put = WatchedEvent {
            revision: after + 1,
            key: after.to_string().into_bytes(),
            value: Some(b"b".to_vec()),
            lease: None,
            created: after + 1,
            version: 1,
        };
        let changes = CollectedChanges {
            after,
            until: after + 1,
            events: vec![put],
        };
        let part = end.next_part("i-1", "2026-11-25T05:45:00Z", changes);
        let prepared = PreparedPart::new(&end, &part).unwrap();
        end = store_part(&backups, prepared).await.unwrap().unwrap();
    }
    RestoredChanges {
        parts: end.sequence,
        sha256: end.sha256,
        revision: end.revision,
        unknown: UnknownFields::new(),
    }
}

/// What the record says of the changes is what is restored, or nothing is. What is behind that does not matter.
#[tokio::test]
async fn changes_after_the_snapshot_are_replayed_before_it_is_restored() {
    type Damage = fn(&mut RestoredChanges);
    let damages: [(Option<&str>, u64, Damage); 7] = [
        (None, 2700, |_| ()),
        (Some("changes after it"), 2700, |changes| changes.parts = 0),
        (Some("another one was chosen"), 2700, |changes| {
            changes.sha256 = "5".repeat(64);
        }),
        (Some("another one was chosen"), 2700, |changes| {
            changes.revision = 2704;
        }),
        (Some("another one was chosen"), 2700, |changes| {
            changes.parts = 2;
        }),
        (Some("changes/00000004"), 2700, |changes| {
            changes.parts = 4;
        }),
        (Some("do not fit"), 2699, |_| ()),
    ];
    for (refused, scratch, damage) in damages {
        let (host, config, before) = asked_member().await;
        let mut changes = write_changes(&host).await;
        damage(&mut changes);
        let behind = host.path("backups").join(NAME).join("changes/00000009");
        fs::write(behind, "damaged").unwrap();
        host.kubelet.lock().unwrap().scratch_revision = scratch;
        let snapshot = RestoredSnapshot {
            changes: Some(changes),
            ..snapshot_in(&host)
        };
        let record = begin_restore(&before, "a", None, NEW_TOKEN, snapshot.clone()).unwrap();
        write_record(&host, &record);
        if refused.is_none() {
            stop_the_others(&host).await;
        }
        let_settle(&new_member(&host, &config)).await;
        let record = read_record(&host).await;
        assert!(record.is_formed(), "{refused:?}: {record:?}");
        let (restored, found) = (record.generation.restored, record.generation.refused);
        let Some(says) = refused else {
            assert_eq!(restored, Some(snapshot));
            let calls = fs::read_to_string(host.path("gateway-calls")).unwrap();
            assert_eq!(calls.matches("POST /v3/kv/txn").count(), 3, "{calls}");
            let calls = fs::read_to_string(host.path("ctr-calls")).unwrap();
            let last = calls
                .lines()
                .rfind(|call| call.contains("snapshot restore"));
            let from_scratch = "/work/data/member/snap/db --skip-hash-check";
            assert!(last.unwrap().contains(from_scratch), "{calls}");
            continue;
        };
        let why = found.unwrap().why;
        assert!(why.contains(says), "{says}: {why}");
        assert!(host.kubelet.lock().unwrap().running.is_some());
    }
}
