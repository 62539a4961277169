//! Tests of the role backup: what counts is verified, one instance takes a snapshot per interval, and whoever dies or is too late leaves
//! nothing that counts.

use crate::signer::{put_signed, signer_in};
use crate::test_host::{TestHost, pass_fuse};
use anyhow::bail;
use aws_client::store::{Entry, Expect, Store};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etcd_member::backup::{BackupRole, KeyHash, KeysAt, SnapshotSource, SnapshotTaker};
use etcd_member::{DataHash, EtcdMaintenance};
use etcd_rules::backup::{
    BackupState, OWNER_KEY, SnapshotManifest, StoredSnapshot, backup_state_key, begin_snapshot,
    group_snapshots, manifest_key,
};
use etcd_rules::{OtherMember, RunningMember};
use flate2::read::GzDecoder;
use futures::FutureExt;
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings, EtcdBackupSettings};
use node::formatted::UnknownFields;
use node::signed::{SignedPlace, sign_text, signature_key};
use protokube_role::current_waits::CurrentWaits;
use protokube_role::log::{Log, RoleLog};
use protokube_role::signed_objects::SignedObjects;
use serde_json::json;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use test_support::write_script;
use time::OffsetDateTime;

pub const CONTENT: &[u8] = b"a database and its hash";

/// Does what ctr does with etcd's programs. etcdutl finds no hash in a file that does not begin as the snapshot does. The snapshot is a
/// revision younger than what the member said.
const CTR: &str = r#"root=$(dirname "$0")/..
for word; do case $word in type=bind,src=*) from=${word#type=bind,src=}; from=$root${from%%,*} ;; esac; done
case "$*" in
  # On a busy machine ctr may end before it has passed on what etcdutl wrote.
  *"snapshot status"*) if [ -s "$root/silent" ]; then sed -i 1d "$root/silent"; exit 0; fi ;;
esac
case "$*" in
  *"snapshot restore"*) cmp -s "$from/snapshot.db" "$root/content" || { echo 'expected sha256' >&2; exit 1; }
    mkdir "$from/data" ;;
  *"snapshot status"*) echo '{"hash":3125,"revision":2701,"totalKey":300,"totalSize":24576}' ;;
  *"images ls"*) echo "${*##*name==}" ;;
esac
"#;

/// The member of which snapshots are taken.
#[derive(Clone, Debug)]
pub struct FakeMember {
    pub state: Arc<Mutex<MemberState>>,
    /// Of the files of its host.
    root: PathBuf,
}

#[derive(Clone, Debug)]
pub struct MemberState {
    pub sends: Vec<u8>,
    hash: KeyHash,
    keys: u64,
    used_bytes: u64,
    /// How often it was asked before it had compacted no more than its next snapshot.
    pub compacts: u32,
    leads: bool,
    cluster_id: &'static str,
    /// After how many questions it is of another cluster.
    given_up_after: Option<u32>,
}

impl FakeMember {
    fn new(root: PathBuf) -> Self {
        let hash = KeyHash {
            hash: 7,
            compacted: 2500,
        };
        let state = MemberState {
            sends: CONTENT.to_vec(),
            hash,
            keys: 233,
            used_bytes: 4096,
            compacts: 0,
            leads: false,
            cluster_id: "c1",
            given_up_after: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            root,
        }
    }
}

impl SnapshotSource for FakeMember {
    async fn save_snapshot(&self, to: &str) -> anyhow::Result<()> {
        let sends = self.state.lock().unwrap().sends.clone();
        Ok(fs::write(
            self.root.join(to.trim_start_matches('/')),
            sends,
        )?)
    }

    async fn describe_keys(&self, used_bytes: u64) -> anyhow::Result<KeysAt> {
        let mut state = self.state.lock().unwrap();
        let mut hash = state.hash;
        if state.compacts > 0 {
            state.compacts -= 1;
            hash = KeyHash {
                hash: 6,
                compacted: 2400,
            };
        }
        Ok(KeysAt {
            revision: 2700,
            count: state.keys,
            hash: (used_bytes < 1 << 20).then_some(hash),
        })
    }
}

impl EtcdMaintenance for FakeMember {
    async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        let mut state = self.state.lock().unwrap();
        if let Some(left) = state.given_up_after.as_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                (state.cluster_id, state.given_up_after) = ("c9", None);
            }
        }
        let MemberState {
            leads,
            used_bytes,
            cluster_id,
            ..
        } = *state;
        Ok(RunningMember {
            database_used_bytes: used_bytes,
            name: "etcd-a".to_owned(),
            id: "a".to_owned(),
            cluster_id: cluster_id.to_owned(),
            leader: Some(if leads { "a" } else { "b" }.to_owned()),
            version: "3.6.12".to_owned(),
            ..RunningMember::default()
        })
    }

    async fn describe_others(&self, _: &RunningMember) -> Vec<OtherMember> {
        Vec::new()
    }

    async fn move_leader(&self, _: &str) -> anyhow::Result<()> {
        bail!("nobody asks for it here")
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        bail!("nobody asks for it here")
    }

    async fn compact(&self, _: u64) -> anyhow::Result<()> {
        bail!("nobody asks for it here")
    }

    async fn disarm(&self, _: &str) -> anyhow::Result<()> {
        bail!("nobody asks for it here")
    }

    async fn hash_data(&self, _: &RunningMember, _: u64) -> anyhow::Result<Vec<DataHash>> {
        bail!("nobody asks for it here")
    }
}

const CLUSTER: &str = "x.example.com";

pub struct Instance {
    pub host: TestHost,
    pub member: FakeMember,
}

impl Instance {
    pub async fn new() -> Self {
        let mut host = TestHost::new().await;
        let fuse = host.fuse.clone();
        let dies = move || pass_fuse(&fuse).is_err();
        host.host = host.host.with_stop(Arc::new(dies));
        write_script(&host.path("programs/ctr"), CTR);
        fs::write(host.path("content"), CONTENT).unwrap();
        host.kubelet.lock().unwrap().scratch_revision = 2701;
        let member = FakeMember::new(host.folder.path().to_owned());
        let new = Self { host, member };
        new.set_recipients(Vec::new()).await;
        new
    }

    /// Writes the settings, with these public keys.
    pub async fn set_recipients(&self, recipients: Vec<String>) {
        let settings = self.settings(recipients).to_json();
        put_signed(&self.host.store, CLUSTER, BACKUP_SETTINGS_KEY, &settings).await;
    }

    fn settings(&self, recipients: Vec<String>) -> BackupSettings {
        let settings = EtcdBackupSettings {
            store: format!("file://{}", self.host.path("backups").display()),
            interval_seconds: 900,
            hourly_retention_seconds: 7 * 24 * 3600,
            daily_retention_seconds: 90 * 24 * 3600,
            recipients,
            changes_seconds: None,
            unknown: UnknownFields::new(),
        };
        BackupSettings::new([("main".to_owned(), settings)].into())
    }

    /// What takes snapshots on this instance.
    pub fn taker(&self, instance: &str) -> SnapshotTaker<FakeMember> {
        SnapshotTaker {
            cluster: CLUSTER.to_owned(),
            incarnation: "7".to_owned(),
            etcd: "main".to_owned(),
            work: "main".to_owned(),
            instance: instance.to_owned(),
            kubernetes_version: "1.35.7".to_owned(),
            image: "etcd:1".to_owned(),
            encryption_config: Some("/encryptionconfig.yaml".to_owned()),
            members: 3,
            source: self.member.clone(),
            host: self.host.host.clone(),
            store: self.host.store.clone(),
            signed: SignedObjects::new(&self.host.store, CLUSTER),
            clock: OffsetDateTime::now_utc,
            interval: Duration::ZERO,
            busy: tokio::sync::Mutex::default(),
        }
    }

    /// A role after a start of protokube on this instance.
    pub fn role(&self, instance: &str) -> BackupRole<FakeMember> {
        BackupRole {
            taker: Arc::new(self.taker(instance)),
            role_log: RoleLog::with_log(Log::from_fn(|_| ()), "backup-main"),
            observed: Arc::default(),
            sleep: |_| std::future::ready(()).boxed(),
        }
    }

    /// Writes the Secrets that a scratch etcd has: namespace with name, and value.
    fn write_secrets(&self, all: &[(String, &str)]) {
        let pair = |(name, value): &(String, &str)| {
            let key = STANDARD.encode(format!("/registry/secrets/{name}"));
            json!({"key": key, "value": STANDARD.encode(value)})
        };
        let reply = json!({"kvs": all.iter().map(pair).collect::<Vec<_>>()});
        fs::write(self.host.path("secrets"), reply.to_string()).unwrap();
    }

    pub fn backups(&self) -> Store {
        let url = format!("file://{}", self.host.path("backups").display());
        self.host.store.open_other(&url).unwrap()
    }

    async fn list(&self) -> Vec<StoredSnapshot> {
        let listed = self.backups().list("", None).await.unwrap();
        let objects = listed
            .iter()
            .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
        group_snapshots(objects)
    }

    /// The snapshots that count.
    async fn counted(&self) -> Vec<String> {
        let all = self.list().await.into_iter();
        all.filter(|one| one.has_manifest)
            .map(|one| one.name)
            .collect()
    }

    pub async fn state(&self) -> BackupState {
        let object = self
            .host
            .store
            .get(&backup_state_key("main"))
            .await
            .unwrap();
        BackupState::parse("state", &object.unwrap().bytes).unwrap()
    }

    /// Makes everything in the stores so much older.
    pub fn pass(&self, time: Duration) {
        for folder in ["store/etcd/main", "backups"] {
            age_files(&self.host.path(folder), time);
        }
    }
}

pub fn age_files(folder: &Path, time: Duration) {
    for item in fs::read_dir(folder).into_iter().flatten() {
        let path = item.unwrap().path();
        if path.is_dir() {
            age_files(&path, time);
        } else {
            let file = fs::File::options().write(true).open(&path).unwrap();
            let before = file.metadata().unwrap().modified().unwrap();
            file.set_modified(before.max(SystemTime::UNIX_EPOCH + time) - time)
                .unwrap();
        }
    }
}

#[tokio::test]
async fn the_first_snapshot_is_taken_at_the_start_and_the_next_after_the_interval() {
    let here = Instance::new().await;
    here.role("i-1").take_step().await.unwrap();
    let first = here.counted().await;
    assert_eq!(first.len(), 1, "{first:?}");
    let manifest = here.backups().get(&manifest_key(&first[0])).await.unwrap();
    let manifest = SnapshotManifest::parse("m", &manifest.unwrap().bytes).unwrap();
    let verified = manifest.verified.as_ref().unwrap();
    assert_eq!(
        (verified.revision, verified.keys, verified.hash),
        (2701, 234, 8)
    );
    assert_eq!(manifest.cluster_id.as_deref(), Some("c1"));
    assert_eq!(manifest.kubernetes_version.as_deref(), Some("1.35.7"));
    let data = fs::File::open(
        here.host
            .path("backups")
            .join(&first[0])
            .join("etcd.backup.gz"),
    );
    let mut content = Vec::new();
    GzDecoder::new(data.unwrap())
        .read_to_end(&mut content)
        .unwrap();
    assert_eq!(content, CONTENT);
    let listed = here.list().await;
    assert!(listed[0].has_meta, "{listed:?}");
    let state = here.state().await;
    assert_eq!(state.last.unwrap().name, first[0]);
    assert!(state.taking.is_none() && state.failure.is_none());
    // Nothing is left on the root disk.
    assert!(!here.host.path("var/lib/kctl/etcd-backup/main").exists());
    for (minutes, count) in [(10, 1), (6, 2), (1, 2)] {
        here.pass(Duration::from_mins(minutes));
        for instance in ["i-1", "i-2"] {
            here.role(instance).take_step().await.unwrap();
        }
        assert_eq!(here.counted().await.len(), count, "{minutes}");
    }
}

#[tokio::test]
async fn a_snapshot_that_is_not_what_the_member_has_does_not_count() {
    type Damage = fn(&mut MemberState);
    let damages: [(&str, Damage); 5] = [
        ("expected sha256", |member| member.sends[3] ^= 1),
        ("expected sha256", |member| member.sends.truncate(9)),
        ("expected sha256", |member| member.sends.clear()),
        ("has the hash", |member| member.hash.hash = 9),
        ("has 233 keys", |member| member.keys = 232),
    ];
    for (says, damage) in damages {
        let here = Instance::new().await;
        let good = here.member.state.lock().unwrap().clone();
        damage(&mut here.member.state.lock().unwrap());
        let error = here.role("i-1").take_step().await.unwrap_err();
        assert!(format!("{error:#}").contains(says), "{says}: {error:#}");
        assert_eq!(here.list().await, [], "{says}");
        let failure = here.state().await.failure.unwrap();
        assert!(failure.reason.contains(says), "{failure:?}");
        assert_eq!(failure.count, 1);
        // Not at once again, and then it counts.
        *here.member.state.lock().unwrap() = good;
        here.role("i-1").take_step().await.unwrap();
        assert_eq!(here.counted().await.len(), 0, "{says}");
        here.pass(Duration::from_mins(2));
        here.role("i-1").take_step().await.unwrap();
        assert_eq!(here.counted().await.len(), 1, "{says}");
        assert_eq!(here.state().await.failure, None);
    }
}

/// A restored cluster whose Secrets nobody can decrypt would not be restored.
#[tokio::test]
async fn a_drill_fails_if_the_api_server_could_not_decrypt_a_secret() {
    let here = Instance::new().await;
    here.write_secrets(&[("a/b".to_owned(), "k8s:enc:secretbox:v1:old:")]);
    here.role("i-1").take_step().await.unwrap();
    // The snapshot is what the member has, so it counts.
    assert_eq!(here.counted().await.len(), 1);
    let drill = here.state().await.drill.unwrap();
    let says = "no EncryptionConfiguration";
    assert!(drill.failed && drill.found.contains(says), "{drill:?}");
    let config = "resources: [{providers: [{secretbox: {keys: [{name: new, secret: c2VjcmV0}]}}]}]";
    fs::write(here.host.path("encryptionconfig.yaml"), config).unwrap();
    here.pass(Duration::from_hours(25));
    let taker = here.taker("i-1");
    let name = here.counted().await.remove(0);
    let why = format!("{:#}", taker.drill(&name).await.unwrap_err());
    assert!(
        why.contains("the key old of secretbox") && !why.contains("c2VjcmV0"),
        "{why}"
    );
}

/// Room is looked for by the size of the snapshot, so a manifest that says more of the packed file fills no disk.
#[tokio::test]
async fn a_drill_receives_no_more_than_the_snapshot_can_have_when_it_is_packed() {
    let here = Instance::new().await;
    here.role("i-1").take_step().await.unwrap();
    let name = here.counted().await.remove(0);
    let folder = here.host.path("backups").join(&name);
    let path = folder.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let most = 100 << 20;
    manifest["compressedBytes"] = json!(most);
    fs::write(&path, manifest.to_string()).unwrap();
    let data = fs::File::create(folder.join("etcd.backup.gz")).unwrap();
    data.set_len(most).unwrap();
    let why = here.taker("i-1").drill(&name).await.unwrap_err();
    assert!(
        format!("{why:#}").contains("it is not what it should be"),
        "{why:#}"
    );
}

/// The first Secret may be one that was written since the key was changed, and the others not.
#[tokio::test]
async fn a_drill_reads_all_secrets() {
    let here = Instance::new().await;
    // As many as are read at once, twice.
    let mut all: Vec<(String, &str)> = (0..50)
        .map(|number| (format!("a/{number:03}"), "k8s\0"))
        .collect();
    here.write_secrets(&all);
    here.role("i-1").take_step().await.unwrap();
    let drill = here.state().await.drill.unwrap();
    assert!(
        !drill.failed && drill.found.contains("not encrypted"),
        "{drill:?}"
    );
    all.push(("b/x".to_owned(), "k8s:enc:aescbc:v1:old:x"));
    here.write_secrets(&all);
    let name = here.counted().await.remove(0);
    fs::write(here.host.path("encryptionconfig.yaml"), "resources: []").unwrap();
    let why = here.taker("i-1").drill(&name).await.unwrap_err();
    let why = format!("{why:#}");
    assert!(why.contains("the key old of aescbc"), "{why}");
}

/// Once a day a stored snapshot is read again, and the result stands in the state.
#[tokio::test]
async fn a_drill_reads_what_is_stored_once_a_day() {
    let here = Instance::new().await;
    here.role("i-1").take_step().await.unwrap();
    let drill = here.state().await.drill.unwrap();
    assert!(
        !drill.failed && drill.found.contains("234 keys"),
        "{drill:?}"
    );
    here.pass(Duration::from_mins(16));
    here.role("i-1").take_step().await.unwrap();
    let state = here.state().await;
    assert_eq!(state.drill.as_ref(), Some(&drill));
    assert_ne!(state.last.unwrap().name, drill.name);
}

/// The member has compacted its keys between what it said and the snapshot: it is asked once more.
#[tokio::test]
async fn a_compaction_meanwhile_is_no_difference() {
    for (compacts, counts) in [(1, 1), (2, 0)] {
        let here = Instance::new().await;
        here.member.state.lock().unwrap().compacts = compacts;
        let taken = here.role("i-1").take_step().await;
        assert_eq!(here.counted().await.len(), counts, "{taken:?}");
        assert_eq!(taken.is_ok(), counts == 1);
    }
}

/// A member with more keys than it can hash while it serves: their number is compared.
#[tokio::test]
async fn the_keys_of_a_large_database_are_counted_and_not_hashed() {
    let here = Instance::new().await;
    {
        let mut state = here.member.state.lock().unwrap();
        (state.used_bytes, state.hash.hash) = (4 << 30, 99);
    }
    here.role("i-1").take_step().await.unwrap();
    assert_eq!(here.counted().await.len(), 1);
    here.pass(Duration::from_mins(16));
    here.member.state.lock().unwrap().keys = 5;
    here.role("i-1").take_step().await.unwrap_err();
    assert_eq!(here.counted().await.len(), 1);
}

/// After a restore, or when nothing was left, another etcd cluster takes snapshots into the store: the last one of before is what may be
/// wanted back, and the new one has its own at once.
#[tokio::test]
async fn the_last_snapshot_of_each_etcd_cluster_stays() {
    let here = Instance::new().await;
    let role = here.role("i-1");
    let mut last = Vec::new();
    for cluster in ["c1", "c2", "c3"] {
        here.member.state.lock().unwrap().cluster_id = cluster;
        let before = here.counted().await;
        role.take_step().await.unwrap();
        here.pass(Duration::from_mins(16));
        role.take_step().await.unwrap();
        let taken = here.counted().await.into_iter();
        let mut taken: Vec<String> = taken.filter(|name| !before.contains(name)).collect();
        assert_eq!(taken.len(), 2, "{cluster}");
        // Names end with a number that counts up.
        taken.sort_by_key(|name| name.rsplit_once('-').unwrap().1.to_owned());
        last.push(taken.pop().unwrap());
        here.pass(Duration::from_secs(30));
    }
    here.pass(Duration::from_hours(1000 * 24));
    role.take_step().await.unwrap();
    let mut left = here.counted().await;
    left.retain(|name| !last.contains(name));
    // Besides these three, the one that was just taken.
    assert_eq!(here.counted().await.len(), left.len() + 2, "{left:?}");
    assert!(here.counted().await.contains(&last[0]) && here.counted().await.contains(&last[1]));
}

/// Two clusters whose specs name one store would delete each other's snapshots.
#[tokio::test]
async fn nothing_is_written_to_or_deleted_from_the_store_of_another_cluster() {
    let elsewhere = |here: &Instance| {
        let url = format!("file://{}", here.host.path("elsewhere").display());
        here.host.store.open_other(&url).unwrap()
    };
    for is_namesake in [false, true] {
        let here = Instance::new().await;
        let other = match is_namesake {
            true => SnapshotTaker {
                incarnation: "8".to_owned(),
                store: elsewhere(&here),
                ..here.taker("i-9")
            },
            false => SnapshotTaker {
                cluster: "other.example.com".to_owned(),
                ..here.taker("i-9")
            },
        };
        let other = BackupRole {
            taker: Arc::new(other),
            ..here.role("i-9")
        };
        other.take_step().await.unwrap();
        let before = here.backups().list("", None).await.unwrap();
        assert!(before.iter().any(|entry| entry.key == OWNER_KEY));
        here.pass(Duration::from_hours(1000 * 24));
        let why = here.role("i-1").take_step().await.unwrap_err();
        let whose = match is_namesake {
            true => "elsewhere",
            false => "etcd main of other.example.com",
        };
        assert!(format!("{why:#}").contains(whose), "{why:#}");
        assert_eq!(here.counted().await.len(), 1);
    }
}

/// Whoever may write to the state store must not have the keys of the cluster sealed for himself, snapshots deleted, or stored elsewhere.
#[tokio::test]
async fn settings_that_kctl_did_not_sign_seal_store_and_delete_nothing() {
    let here = Instance::new().await;
    let role = here.role("i-1");
    role.take_step().await.unwrap();
    let store = &here.host.store;
    let put = async |key: &str, text: &str| {
        let put = store.put(key, text.as_bytes().to_vec(), Expect::Any);
        put.await.unwrap();
    };
    let read = async |key: &str| {
        let object = store.get(key).await.unwrap().unwrap();
        String::from_utf8(object.bytes).unwrap()
    };
    let good = read(BACKUP_SETTINGS_KEY).await;
    let signature = read(&signature_key(BACKUP_SETTINGS_KEY, &good)).await;
    let evil = here.settings(vec!["age1evil".to_owned()]).to_json();
    let keyset = signer_in(store).await;
    let elsewhere = SignedPlace {
        cluster: "other.example.com",
        key: BACKUP_SETTINGS_KEY,
    };
    let elsewhere = sign_text(&keyset, elsewhere, &evil, 9).unwrap();
    let rare = good.replacen("900", "300000000", 1);
    let before = here.backups().list("", None).await.unwrap();
    here.pass(Duration::from_hours(1000 * 24));
    for (text, signature) in [
        (&evil, None),
        (&evil, Some(&signature)),
        (&evil, Some(&elsewhere)),
        (&rare, Some(&signature)),
    ] {
        if let Some(signature) = signature {
            put(&signature_key(BACKUP_SETTINGS_KEY, text), signature).await;
        }
        put(BACKUP_SETTINGS_KEY, text).await;
        for role in [&role, &here.role("i-1")] {
            let why = format!("{:#}", role.take_step().await.unwrap_err());
            let next_step = "run `kctl update x.example.com --refresh --yes`";
            assert!(why.contains(next_step), "{why}");
        }
        let keys = |all: &[Entry]| all.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
        let now = here.backups().list("", None).await.unwrap();
        assert_eq!(keys(&now), keys(&before));
    }
    // Older settings are not used either, once newer ones were.
    put(BACKUP_SETTINGS_KEY, &good).await;
    let recipient = age::x25519::Identity::generate().to_public();
    here.set_recipients(vec![recipient.to_string()]).await;
    role.take_step().await.unwrap();
    put(BACKUP_SETTINGS_KEY, &good).await;
    let why = format!("{:#}", role.take_step().await.unwrap_err());
    assert!(why.contains("put an older one back"), "{why}");
}

/// protokube dies at each change of the instance and at each call of ctr; another instance goes on.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_leaves_nothing_that_counts_twice() {
    let whole = Instance::new().await;
    whole.role("i-1").take_step().await.unwrap();
    let calls = whole.host.fuse.lock().unwrap().done;
    assert!(calls > 10, "{calls}");
    for dies_at in 1..=calls {
        let here = Instance::new().await;
        here.host.fuse.lock().unwrap().dies_at = Some(dies_at);
        let _ = here.role("i-1").take_step().await;
        here.host.fuse.lock().unwrap().dies_at = None;
        // Its claim gives way, or it goes on after the restart.
        here.pass(Duration::from_mins(16));
        here.role("i-2").take_step().await.unwrap();
        let counted = here.counted().await;
        assert!((1..=2).contains(&counted.len()), "{dies_at}: {counted:?}");
        // What it left is deleted after a day.
        here.pass(Duration::from_hours(25));
        here.role("i-1").take_step().await.unwrap();
        let left = here.list().await;
        assert!(
            left.iter().all(|one| one.has_manifest),
            "{dies_at}: {left:?}"
        );
        assert!(!here.host.path("var/lib/kctl/etcd-backup/main").exists());
    }
}

/// An instance that was stopped for a while finds that another one has taken over.
#[tokio::test]
async fn whoever_lost_its_claim_leaves_no_snapshot() {
    let here = Instance::new().await;
    let late = here.role("i-1");
    let was_asked = AtomicBool::new(false);
    let counts = || async {
        was_asked.store(true, Ordering::Relaxed);
        Ok(false)
    };
    let backups = here.backups();
    let name = "2026-11-25T05:40:00Z-000001";
    let error = late.taker.take(&backups, (name, "schedule"), counts).await;
    let error = error.unwrap_err();
    assert!(was_asked.load(Ordering::Relaxed));
    assert!(format!("{error:#}").contains("taken over"), "{error:#}");
    assert_eq!(here.list().await, []);
}

/// Two instances, or an import, under one name: who comes second deletes nothing of what the first has.
#[tokio::test]
async fn a_snapshot_whose_name_is_taken_meanwhile_deletes_nothing() {
    let here = Instance::new().await;
    let taker = here.taker("i-1");
    let backups = here.backups();
    let key = manifest_key("n");
    let others = async || {
        let put = backups.put(&key, b"somebody else's".to_vec(), Expect::Absent);
        put.await.unwrap();
        Ok(true)
    };
    let taken = taker.take(&backups, ("n", "command"), others).await;
    let why = format!("{:#}", taken.unwrap_err());
    assert!(why.contains("somebody else has stored a snapshot"), "{why}");
    let left = backups.list("n/", None).await.unwrap();
    let left: Vec<&str> = left.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(left, ["n/etcd.backup.gz", "n/manifest.json"]);
    let stored = backups.get(&key).await.unwrap().unwrap();
    assert_eq!(stored.bytes, b"somebody else's");
}

/// What is older than the retention goes, and what somebody asked for stays.
#[tokio::test]
async fn old_snapshots_are_deleted_after_a_new_one_counts() {
    let here = Instance::new().await;
    let role = here.role("i-1");
    role.take_step().await.unwrap();
    let always = || async { Ok(true) };
    let backups = here.backups();
    let asked = role.taker.take(&backups, ("asked", "command"), always);
    asked.await.unwrap();
    let old = here.counted().await;
    here.pass(Duration::from_hours(91 * 24));
    // Nothing can be taken: nothing is deleted.
    here.member.state.lock().unwrap().keys = 1;
    role.take_step().await.unwrap_err();
    assert_eq!(here.counted().await, old);
    here.member.state.lock().unwrap().keys = 233;
    here.pass(Duration::from_mins(2));
    role.take_step().await.unwrap();
    let left = here.counted().await;
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&"asked".to_owned()), "{left:?}");
    assert!(!left.contains(&old[0]), "{left:?}");
}

/// A store may refuse deletions, which costs money only.
#[tokio::test]
async fn a_new_snapshot_is_drilled_although_an_old_one_cannot_be_deleted() {
    let here = Instance::new().await;
    let (backups, taker) = (here.backups(), here.taker("i-1"));
    let old = [1, 2].map(|number| format!("2026-01-01T00:00:0{number}Z-900000"));
    for name in &old {
        let taken = taker.take(&backups, (name, "schedule"), || async { Ok(true) });
        taken.await.unwrap();
    }
    here.pass(Duration::from_hours(91 * 24));
    // Once the first one is deleted, the store refuses the second: a link leads out of it.
    let second = here.host.path("backups").join(&old[1]);
    let aside = here.host.path("aside");
    let lines = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&lines);
    let log = Log::from_fn(move |line| {
        if line.contains("deleted the snapshot") {
            fs::rename(&second, &aside).unwrap();
            std::os::unix::fs::symlink(&aside, &second).unwrap();
        }
        said.lock().unwrap().push(line.to_owned());
    });
    let role = BackupRole {
        role_log: RoleLog::with_log(log, "backup-main"),
        ..here.role("i-1")
    };
    role.take_step().await.unwrap();
    let state = here.state().await;
    let last = state.last.unwrap().name;
    assert_eq!(state.drill.map(|drill| drill.name), Some(last));
    let said = lines.lock().unwrap().join("\n");
    assert!(
        said.contains("old snapshots could not be deleted"),
        "{said}"
    );
}

/// What only keeps an instance from reading a snapshot says nothing about it: it is tried again soon, with its whole cause, and is neither a
/// verdict nor anything that the control plane waits for.
#[tokio::test]
async fn a_drill_without_a_result_is_no_verdict_and_is_repeated_soon() {
    for (lines, says) in [
        // Fewer than it is asked for: nothing happens at all.
        ("x\nx\n", None),
        (&*"x\n".repeat(60), Some("etcdutl says no revision")),
    ] {
        let here = Instance::new().await;
        here.role("i-1").take_step().await.unwrap();
        let first = here.state().await.drill.unwrap();
        // A day later.
        let later = || OffsetDateTime::now_utc() + Duration::from_hours(25);
        let role = |clock: fn() -> OffsetDateTime| {
            let waits = Arc::new(CurrentWaits::default());
            let role_log = RoleLog::with_log(Log::from_fn(|_| ()), "backup-main");
            let taker = SnapshotTaker {
                clock,
                ..here.taker("i-1")
            };
            let role = BackupRole {
                taker: Arc::new(taker),
                role_log: role_log.recording_waits(&waits, ""),
                ..here.role("i-1")
            };
            (role, waits)
        };
        let (role_then, waits) = role(later);
        fs::write(here.host.path("silent"), lines).unwrap();
        let name = here.counted().await.remove(0);
        let drilled = role_then.taker.drill(&name).await;
        let state = here.state().await;
        let Some(says) = says else {
            drilled.unwrap();
            continue;
        };
        let why = format!("{:#}", drilled.unwrap_err());
        assert!(why.contains(says), "{why}");
        assert_eq!(state.drill.as_ref(), Some(&first), "it is no verdict");
        let attempt = state.unfinished_drill.unwrap();
        assert!(attempt.reason.contains(says), "{attempt:?}");
        fs::write(here.host.path("silent"), "").unwrap();
        // Not at once, but soon, although no snapshot is due.
        role_then.take_step().await.unwrap();
        assert_eq!(here.state().await.drill.as_ref(), Some(&first));
        let (role_soon, _) =
            role(|| OffsetDateTime::now_utc() + Duration::from_hours(25) + Duration::from_mins(2));
        role_soon.take_step().await.unwrap();
        let state = here.state().await;
        assert_eq!(state.unfinished_drill, None);
        assert_ne!(state.drill.as_ref(), Some(&first));
        assert!(waits.list_waits().is_empty());
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_snapshot_is_a_verdict_and_all_else_is_not() {
    type Change = fn(&Instance, &Path);
    let changes: [(&str, bool, Change); 8] = [
        ("does not exist", true, |_, folder| {
            fs::remove_file(folder.join("etcd.backup.gz")).unwrap();
        }),
        ("has more than", true, |_, folder| {
            let data = folder.join("etcd.backup.gz");
            let longer = [&fs::read(&data).unwrap()[..], b"more"].concat();
            fs::write(data, longer).unwrap();
        }),
        ("damaged", true, |_, folder| {
            let data = folder.join("etcd.backup.gz");
            let mut bytes = fs::read(&data).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(data, bytes).unwrap();
        }),
        ("is no manifest", true, |_, folder| {
            fs::write(folder.join("manifest.json"), "[]").unwrap();
        }),
        ("its manifest says", true, |_, folder| {
            let path = folder.join("manifest.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("\"keys\": 234", "\"keys\": 235")).unwrap();
        }),
        ("free space", false, |here, _| {
            here.host.set_free_bytes(1000);
        }),
        ("500 Internal Server Error: too busy", false, |here, _| {
            fs::write(here.host.path("fails"), "too busy").unwrap();
        }),
        ("ctr", false, |here, _| {
            fs::remove_file(here.host.path("programs/ctr")).unwrap();
        }),
    ];
    for (says, is_verdict, change) in changes {
        let here = Instance::new().await;
        here.role("i-1").take_step().await.unwrap();
        let before = here.state().await;
        let name = here.counted().await.remove(0);
        change(&here, &here.host.path("backups").join(&name));
        let taker = here.taker("i-1");
        let drilled = tokio::time::timeout(Duration::from_secs(20), taker.drill(&name));
        let Ok(drilled) = drilled.await else {
            panic!("{says}: it takes too long");
        };
        let why = format!("{:#}", drilled.unwrap_err());
        assert!(why.contains(says) || says == "damaged", "{says}: {why}");
        let state = here.state().await;
        assert_eq!(
            state.drill.as_ref().is_some_and(|drill| drill.failed),
            is_verdict,
            "{why}"
        );
        assert_eq!(state.unfinished_drill.is_some(), !is_verdict, "{why}");
        if !is_verdict {
            assert_eq!(state.drill, before.drill, "{why}");
        }
    }
}

/// A drill that somebody asks for writes the state, too, and an instance that died keeps its turn no longer for it.
#[tokio::test]
async fn drills_do_not_keep_the_claim_of_an_instance_that_died() {
    let here = Instance::new().await;
    here.role("i-1").take_step().await.unwrap();
    here.pass(Duration::from_mins(16));
    let name = here.counted().await.remove(0);
    let state = here.state().await;
    let (claimed, _) = begin_snapshot(&state, "i-dead", OffsetDateTime::now_utc());
    let key = backup_state_key("main");
    let put = here
        .host
        .store
        .put(&key, claimed.to_json().into_bytes(), Expect::Any);
    put.await.unwrap();
    for minutes in [8, 8] {
        here.role("i-2").take_step().await.unwrap();
        assert_eq!(here.counted().await.len(), 1);
        here.pass(Duration::from_mins(minutes));
        here.taker("i-2").drill(&name).await.unwrap();
    }
    here.role("i-2").take_step().await.unwrap();
    assert_eq!(here.counted().await.len(), 2);
}

/// The etcd cluster is given up while its snapshot is uploaded: it would be the newest one of the store.
#[tokio::test]
async fn a_snapshot_of_a_cluster_that_was_given_up_meanwhile_leaves_nothing() {
    // It is asked before the snapshot, before the upload and after it.
    for asked in [2, 3] {
        let here = Instance::new().await;
        here.member.state.lock().unwrap().given_up_after = Some(asked);
        let taker = here.taker("i-1");
        let backups = here.backups();
        let taken = taker.take(&backups, ("n", "command"), || async { Ok(true) });
        let why = format!("{:#}", taken.await.unwrap_err());
        assert!(why.contains("is another cluster since"), "{asked}: {why}");
        assert_eq!(here.list().await, [], "{asked}");
    }
}

/// One manifest that cannot be read keeps neither other deletions nor the drill from being done, and its snapshot stays.
#[tokio::test]
async fn one_bad_manifest_blocks_nothing() {
    for content in [
        "",
        "[]",
        "{\"format\": 99}",
        "{\"name\": \"of another tool\"}",
    ] {
        let here = Instance::new().await;
        let role = here.role("i-1");
        for _ in 0..4 {
            role.take_step().await.unwrap();
            here.pass(Duration::from_hours(50 * 24));
        }
        let mut all = here.list().await;
        all.sort_by_key(|one| one.written);
        assert_eq!(all.len(), 4 - 2, "{all:?}");
        let bad = here.host.path("backups").join(&all[0].name);
        fs::write(bad.join("manifest.json"), content).unwrap();
        age_files(&bad, Duration::from_hours(100 * 24));
        here.pass(Duration::from_hours(50 * 24));
        let later = SnapshotTaker {
            clock: || OffsetDateTime::now_utc() + Duration::from_hours(25),
            ..here.taker("i-1")
        };
        let later = BackupRole {
            taker: Arc::new(later),
            ..here.role("i-1")
        };
        later.take_step().await.unwrap();
        let left = here.counted().await;
        assert!(left.contains(&all[0].name), "{content}: {left:?}");
        let state = here.state().await;
        assert_eq!(
            state.drill.unwrap().name,
            state.last.unwrap().name,
            "{content}"
        );
    }
}

/// The first of its day has a damaged manifest: the next good one of that day stays, as if the first were not there. If it is the last of
/// its day, nobody knows whether the one before is the last of its etcd cluster, and that stays too.
#[tokio::test]
async fn a_snapshot_with_a_damaged_manifest_stands_for_no_other() {
    const DAY: u64 = 24 * 60 * 60;
    for (damaged, stay) in [
        (0, [true, false, false]),
        (1, [true, true, false]),
        (3, [true, true, true]),
    ] {
        let here = Instance::new().await;
        let role = here.role("i-1");
        for _ in 0..3 {
            role.take_step().await.unwrap();
            here.pass(Duration::from_mins(16));
        }
        let mut names = here.counted().await;
        names.sort_by_key(|name| name.rsplit_once('-').unwrap().1.to_owned());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let day = (now.unwrap().as_secs() / DAY - 30) * DAY;
        for (name, hour) in names.iter().zip(1..) {
            let folder = here.host.path("backups").join(name);
            if hour == damaged {
                fs::write(folder.join("manifest.json"), "damaged").unwrap();
            }
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day + hour * 60 * 60);
            for item in fs::read_dir(&folder).unwrap() {
                let path = item.unwrap().path();
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_modified(time).unwrap();
            }
        }
        role.take_step().await.unwrap();
        let left = here.counted().await;
        let is_left: Vec<bool> = names.iter().map(|name| left.contains(name)).collect();
        assert_eq!(is_left, stay, "{damaged}: {names:?}: {left:?}");
    }
}

/// A state that is damaged, of something else, or too large stops no backups.
#[tokio::test]
async fn a_bad_state_of_the_backups_is_replaced() {
    for content in ["", "[]", "{\"format\": 99}", &" ".repeat(100_000)] {
        let here = Instance::new().await;
        let key = backup_state_key("main");
        let put = here
            .host
            .store
            .put(&key, content.as_bytes().to_vec(), Expect::Any);
        put.await.unwrap();
        here.role("i-1").take_step().await.unwrap();
        assert_eq!(here.counted().await.len(), 1);
        assert!(here.state().await.last.is_some());
    }
}

/// Whatever was copied, and whenever: a store that was copied keeps its history, and too many deletions at once are not done.
#[tokio::test]
async fn too_many_are_not_deleted_at_once() {
    let here = Instance::new().await;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&lines);
    let log = Log::from_fn(move |line| said.lock().unwrap().push(line.to_owned()));
    let role = BackupRole {
        role_log: RoleLog::with_log(log, "backup-main"),
        ..here.role("i-1")
    };
    role.take_step().await.unwrap();
    let one = here.host.path("backups").join(&here.counted().await[0]);
    for number in 0..10 {
        let name = format!("2026-01-01T00:{number:02}:00Z-9{number:05}");
        let folder = here.host.path("backups").join(&name);
        fs::create_dir_all(&folder).unwrap();
        let text = fs::read_to_string(one.join("manifest.json")).unwrap();
        let was = one.file_name().unwrap().to_str().unwrap();
        fs::write(folder.join("manifest.json"), text.replace(was, &name)).unwrap();
        fs::write(folder.join("etcd.backup.gz"), "x").unwrap();
        age_files(&folder, Duration::from_hours(300 * 24));
    }
    here.pass(Duration::from_mins(16));
    role.take_step().await.unwrap();
    assert_eq!(here.counted().await.len(), 12);
    let said = lines.lock().unwrap().join("\n");
    assert!(
        said.contains("10 of 12") && said.contains("kctl etcd snapshot prune"),
        "{said}"
    );
}
