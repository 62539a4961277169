//! Laws of the role changes: whatever becomes of the instances that store the changes of an etcd, what is stored can be replayed, and no
//! change is missing in it.

use crate::backups::Instance;
use crate::signer::put_signed;
use crate::store::store_in;
use aws_client::store::{Expect, Store};
use etcd_member::backup::{BackupRole, SnapshotTaker};
use etcd_member::changes::{
    ChangesMemory, ChangesPace, ChangesRole, ChangesSource, ChangesWatch, Compacted, Following,
    Turn, Watched,
};
use etcd_rules::RunningMember;
use etcd_rules::backup::{
    BackupState, ChainEnd, ChangesState, CollectedChanges, LastSnapshot, SnapshotManifest,
    WatchedEvent, check_follows, manifest_key,
};
use etcd_store::{BackupStateObject, PreparedPart, list_parts, require_part, store_part};
use futures::FutureExt;
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings, EtcdBackupSettings};
use node::formatted::UnknownFields;
use proptest::prelude::*;
use protokube_role::log::{Log, RoleLog};
use protokube_role::signed_objects::SignedObjects;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;
use time::OffsetDateTime;

const CLUSTER: &str = "x.example.com";
const ETCD_ID: &str = "cdf818194e3a8c32";
const INSTANCES: [&str; 2] = ["i-0", "i-1"];

/// An etcd with a member on each instance, which have the same data.
#[derive(Debug, Default)]
struct FakeEtcd {
    /// All changes since revision 1.
    events: Vec<WatchedEvent>,
    revision: u64,
    compacted: u64,
    /// Members that believe to lead.
    leaders: BTreeSet<&'static str>,
    /// Revision of creation and version by key.
    keys: BTreeMap<u8, (u64, u64)>,
}

impl FakeEtcd {
    /// A transaction that writes these keys, or deletes those that are there.
    fn write(&mut self, keys: &BTreeMap<u8, bool>) {
        self.revision += 1;
        for (key, is_deleted) in keys {
            let (created, version) = self.keys.get(key).copied().unwrap_or((self.revision, 0));
            let mut event = WatchedEvent {
                revision: self.revision,
                key: vec![*key],
                value: Some(self.revision.to_string().into_bytes()),
                lease: (*key % 2 == 1).then_some(u64::from(*key)),
                created,
                version: version + 1,
            };
            self.keys.insert(*key, (created, version + 1));
            if *is_deleted && version > 0 {
                self.keys.remove(key);
                (event.value, event.lease) = (None, None);
                (event.created, event.version) = (0, 0);
            }
            self.events.push(event);
        }
    }

    fn events_between(&self, after: u64, until: u64) -> Vec<WatchedEvent> {
        let events = self.events.iter();
        let between = events.filter(|event| event.revision > after && event.revision <= until);
        between.cloned().collect()
    }
}

/// The member on one instance.
#[derive(Clone, Debug)]
struct FakeSource {
    etcd: Arc<Mutex<FakeEtcd>>,
    member: &'static str,
}

#[derive(Debug)]
struct FakeWatch {
    etcd: Arc<Mutex<FakeEtcd>>,
    /// What was sent already.
    sent: u64,
}

impl ChangesSource for FakeSource {
    type Watch = FakeWatch;

    async fn describe(&self) -> anyhow::Result<RunningMember> {
        let leads = self.etcd.lock().unwrap().leaders.contains(self.member);
        let leader = if leads { self.member } else { "another" };
        Ok(RunningMember {
            id: self.member.to_owned(),
            cluster_id: ETCD_ID.to_owned(),
            leader: Some(leader.to_owned()),
            ..RunningMember::default()
        })
    }

    async fn current_revision(&self) -> anyhow::Result<u64> {
        Ok(self.etcd.lock().unwrap().revision)
    }

    async fn watch_behind(&self, revision: u64) -> anyhow::Result<FakeWatch> {
        if revision < self.etcd.lock().unwrap().compacted {
            return Err(Compacted { behind: revision }.into());
        }
        Ok(FakeWatch {
            etcd: Arc::clone(&self.etcd),
            sent: revision,
        })
    }

    async fn lease_seconds(&self, id: u64) -> anyhow::Result<Option<u64>> {
        Ok((id != 3).then_some(15))
    }
}

impl ChangesWatch for FakeWatch {
    /// Two revisions at once, so that a turn has several answers.
    async fn next(&mut self) -> anyhow::Result<Watched> {
        let events = {
            let etcd = self.etcd.lock().unwrap();
            if self.sent < etcd.compacted {
                return Err(Compacted { behind: self.sent }.into());
            }
            etcd.events_between(self.sent, self.sent + 2)
        };
        let Some(last) = events.last().map(|event| event.revision) else {
            return std::future::pending().await;
        };
        self.sent = last;
        let is_whole = true;
        Ok(Watched::Events { events, is_whole })
    }
}

/// The stores, an etcd, and two instances with the role.
struct World {
    folder: TempDir,
    store: Store,
    backups: Store,
    etcd: Arc<Mutex<FakeEtcd>>,
    /// Names and revisions, the newest last.
    snapshots: Vec<(String, u64)>,
    roles: [ChangesRole<FakeSource>; 2],
    kept: [Option<Following<FakeWatch>>; 2],
}

impl World {
    async fn new(changes_seconds: Option<u64>) -> Self {
        let folder = TempDir::new().unwrap();
        let store = store_in(&folder.path().join("store")).await;
        let url = format!("file://{}", folder.path().join("backups").display());
        let settings = EtcdBackupSettings {
            store: url.clone(),
            interval_seconds: 900,
            hourly_retention_seconds: 0,
            daily_retention_seconds: 0,
            recipients: Vec::new(),
            changes_seconds,
            unknown: UnknownFields::new(),
        };
        let settings = BackupSettings::new([("main".to_owned(), settings)].into());
        put_signed(&store, CLUSTER, BACKUP_SETTINGS_KEY, &settings.to_json()).await;
        let etcd = FakeEtcd {
            revision: 1,
            leaders: INSTANCES.into(),
            ..FakeEtcd::default()
        };
        let etcd = Arc::new(Mutex::new(etcd));
        Self {
            backups: store.open_other(&url).unwrap(),
            roles: INSTANCES.map(|instance| new_role(&store, &etcd, instance)),
            kept: [None, None],
            snapshots: Vec::new(),
            folder,
            store,
            etcd,
        }
    }

    fn state_object(&self) -> BackupStateObject {
        BackupStateObject::new(&self.store, "main")
    }

    async fn state(&self) -> BackupState {
        self.state_object().read().await.unwrap().state
    }

    /// Stores a verified snapshot of this revision.
    async fn snapshot(&mut self, revision: u64) {
        let name = format!("s{}", self.snapshots.len());
        let sha256 = format!("{:064x}", self.snapshots.len());
        let text = format!(
            r#"{{"format":1,"name":"{name}","cluster":"{CLUSTER}","etcd":"main","reason":"schedule","takenAt":"2026-11-26T15:00:00Z",
            "clusterId":"{ETCD_ID}","bytes":1,"sha256":"{sha256}","compressedBytes":1,"compressedSha256":"","kctlVersion":"0.1.0",
            "verified":{{"at":"","revision":{revision},"compacted":0,"hash":0,"keys":0,"seconds":9}}}}"#
        );
        let (key, text) = (manifest_key(&name), text.into_bytes());
        let put = self.backups.put(&key, text, Expect::Any).await;
        put.unwrap();
        let last = LastSnapshot {
            name: name.clone(),
            store: self.backups.url().to_owned(),
            instance: "i-0".to_owned(),
            cluster_id: Some(ETCD_ID.to_owned()),
            revision,
            compressed_bytes: 1,
            taken_at: "2026-11-26T15:00:00Z".to_owned(),
            cluster_state_problem: None,
        };
        let change = |state: &BackupState| {
            Some(BackupState {
                last: Some(last.clone()),
                ..state.clone()
            })
        };
        self.state_object().change(change).await.unwrap();
        self.snapshots.push((name, revision));
    }

    fn write(&self, keys: &[u8]) {
        let keys: BTreeMap<u8, bool> = keys.iter().map(|key| (*key, false)).collect();
        self.etcd.lock().unwrap().write(&keys);
    }

    fn compact(&self, revision: u64) {
        let mut etcd = self.etcd.lock().unwrap();
        etcd.compacted = etcd.compacted.max(revision.min(etcd.revision));
    }

    async fn turn(&mut self, who: usize) -> anyhow::Result<Turn> {
        self.roles[who].take_turn(&mut self.kept[who]).await
    }

    fn restart(&mut self, who: usize) {
        self.kept[who] = None;
        self.roles[who] = new_role(&self.store, &self.etcd, INSTANCES[who]);
    }

    /// The lock of a store: nothing can be written while a folder is in its place.
    fn lock_of(&self, store: &str) -> PathBuf {
        self.folder.path().join(store).join(".kctl-lock")
    }

    async fn turn_with_broken(&mut self, who: usize, store: &str) {
        let lock = self.lock_of(store);
        let _ = fs::remove_file(&lock);
        fs::create_dir_all(&lock).unwrap();
        let _ = self.turn(who).await;
        fs::remove_dir(&lock).unwrap();
    }

    /// Follows the chain of a snapshot as a restore does. Returns how far it is stored, and how many parts it has.
    async fn follow(&self, name: &str) -> (ChainEnd, u32) {
        let manifest = self.backups.get(&manifest_key(name)).await.unwrap();
        let manifest = SnapshotManifest::parse(name, &manifest.unwrap().bytes).unwrap();
        let begin = ChainEnd::of_manifest(&manifest).unwrap();
        let (mut end, mut events) = (begin.clone(), Vec::new());
        for part in list_parts(&self.backups, name).await.unwrap() {
            let read = require_part(&self.backups, name, part.sequence).await;
            let read = read.unwrap();
            end = check_follows(&end, &read).unwrap();
            events.extend(read.into_events());
        }
        let etcd = self.etcd.lock().unwrap();
        assert_eq!(events, etcd.events_between(begin.revision, end.revision));
        (end.clone(), end.sequence)
    }

    /// All that is stored can be replayed, and has every change up to its end. Unless etcd was compacted, no moment between two snapshots is
    /// lost: a chain goes on until it reaches the snapshot with which another begins.
    async fn check(&self, is_compacted: bool) {
        let mut reached = None;
        for (name, revision) in &self.snapshots {
            let (end, parts) = self.follow(name).await;
            if parts > 0 && !is_compacted {
                let reached = reached.unwrap_or(*revision);
                assert!(reached >= *revision, "{name}: {reached} of {revision}");
            }
            if parts > 0 {
                reached = Some(reached.unwrap_or_default().max(end.revision));
            }
        }
    }
}

fn new_role(
    store: &Store,
    etcd: &Arc<Mutex<FakeEtcd>>,
    instance: &'static str,
) -> ChangesRole<FakeSource> {
    ChangesRole {
        cluster: CLUSTER.to_owned(),
        incarnation: "7".to_owned(),
        etcd: "main".to_owned(),
        instance: instance.to_owned(),
        source: FakeSource {
            etcd: Arc::clone(etcd),
            member: instance,
        },
        store: store.clone(),
        signed: SignedObjects::new(store, CLUSTER),
        role_log: RoleLog::with_log(Log::from_fn(|_| ()), "changes-main"),
        clock: OffsetDateTime::now_utc,
        pace: ChangesPace {
            look: Duration::ZERO,
            rest: Duration::ZERO,
            sleep: |_| std::future::ready(()).boxed(),
        },
        memory: ChangesMemory::default(),
    }
}

/// Ends a future after so many polls, as that of a process that is killed.
async fn kill_after<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[derive(Clone, Debug)]
enum Step {
    Write(BTreeMap<u8, bool>),
    Turn(usize),
    /// Both at the same time.
    Turns,
    Killed(usize, u32),
    Restart(usize),
    Leaders(bool, bool),
    /// So many revisions before the newest one.
    Compact(u64),
    /// It was taken so many revisions ago.
    Snapshot(u64),
    /// The store cannot be written.
    Broken(usize, &'static str),
}

fn any_step() -> impl Strategy<Value = Step> {
    let keys = proptest::collection::btree_map(1..6_u8, any::<bool>(), 1..4);
    prop_oneof![
        6 => keys.prop_map(Step::Write),
        4 => (0..2_usize).prop_map(Step::Turn),
        2 => Just(Step::Turns),
        2 => (0..2_usize, 1..8_u32).prop_map(|(who, polls)| Step::Killed(who, polls)),
        1 => (0..2_usize).prop_map(Step::Restart),
        1 => any::<(bool, bool)>().prop_map(|(one, other)| Step::Leaders(one, other)),
        1 => (0..8_u64).prop_map(Step::Compact),
        2 => (0..6_u64).prop_map(Step::Snapshot),
        2 => (0..2_usize, prop_oneof![Just("store"), Just("backups")])
            .prop_map(|(who, store)| Step::Broken(who, store)),
    ]
}

async fn play(world: &mut World, step: &Step) {
    match step {
        Step::Write(keys) => world.etcd.lock().unwrap().write(keys),
        Step::Turn(who) => drop(world.turn(*who).await),
        Step::Turns => {
            let World { roles, kept, .. } = world;
            let ([one, other], [first, second]) = (roles, kept);
            let _ = tokio::join!(one.take_turn(first), other.take_turn(second));
        }
        Step::Killed(who, polls) => {
            let _ = kill_after(*polls, world.turn(*who)).await;
            world.restart(*who);
        }
        Step::Restart(who) => world.restart(*who),
        Step::Leaders(one, other) => {
            let leads = INSTANCES.into_iter().zip([*one, *other]);
            let leads = leads.filter(|(_, leads)| *leads);
            world.etcd.lock().unwrap().leaders = leads.map(|(instance, _)| instance).collect();
        }
        Step::Compact(before) => {
            let revision = world.etcd.lock().unwrap().revision;
            world.compact(revision.saturating_sub(*before));
        }
        Step::Snapshot(before) => {
            let revision = world.etcd.lock().unwrap().revision;
            let last = world.snapshots.last().map_or(1, |(_, revision)| *revision);
            world
                .snapshot(revision.saturating_sub(*before).max(last))
                .await;
        }
        Step::Broken(who, store) => world.turn_with_broken(*who, store).await,
    }
}

/// The first instance alone leads, and nothing else happens for more than a minute.
async fn settle(world: &mut World) {
    world.etcd.lock().unwrap().leaders = [INSTANCES[0]].into();
    for _ in 0..16 {
        let _ = world.turn(0).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Two instances may both believe to lead, are killed and restarted at any time, and each write may fail; clients write and compact;
    /// snapshots are stored some time after they were taken.
    #[test]
    fn what_is_stored_can_always_be_replayed_and_has_every_change(
        steps in proptest::collection::vec(any_step(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(Some(5)).await;
            for step in &steps {
                play(&mut world, step).await;
            }
            let is_compacted = steps.iter().any(|step| matches!(step, Step::Compact(_)));
            world.check(is_compacted).await;
            if is_compacted {
                // What is lost is lost, and the next snapshot begins anew.
                let revision = world.etcd.lock().unwrap().revision;
                world.snapshot(revision).await;
                world.write(&[1]);
            }
            settle(&mut world).await;
            world.check(is_compacted).await;
            if let Some((name, _)) = world.snapshots.last() {
                let revision = world.etcd.lock().unwrap().revision;
                assert_eq!(world.follow(name).await.0.revision, revision, "{steps:?}");
                let changes = world.state().await.changes.unwrap();
                assert_eq!((&changes.snapshot, changes.revision), (name, revision));
                assert_eq!(changes.failure, None);
            }
        });
    }
}

/// A snapshot is uploaded for minutes: meanwhile the changes go to the chain before, and clients compact etcd.
#[tokio::test]
async fn a_new_chain_begins_with_what_etcd_has_compacted_since_the_snapshot() {
    let mut world = World::new(Some(5)).await;
    world.snapshot(1).await;
    for key in 1..9 {
        world.write(&[key]);
        world.turn(0).await.unwrap();
    }
    world.compact(9);
    world.snapshot(4).await;
    world.write(&[1, 2]);
    // The instance that followed the chain before may be another one.
    world.restart(0);
    world.turn(1).await.unwrap();
    let (end, _) = world.follow("s1").await;
    assert_eq!(end.revision, 10);
    let leases = require_part(&world.backups, "s1", 1)
        .await
        .unwrap()
        .leases();
    // As the parts before say: etcd was not asked by this instance.
    assert_eq!(leases, BTreeMap::from([(5, 15), (7, 15)]));
}

#[tokio::test]
async fn what_etcd_has_compacted_too_early_is_a_failure_until_the_next_snapshot() {
    let mut world = World::new(Some(5)).await;
    world.snapshot(1).await;
    world.write(&[1]);
    world.turn(0).await.unwrap();
    world.write(&[2]);
    world.write(&[3]);
    world.restart(0);
    world.compact(3);
    let since = {
        let why = format!("{:#}", world.turn(0).await.unwrap_err());
        assert!(
            why.contains("has compacted the changes behind revision 2"),
            "{why}"
        );
        let changes = world.state().await.changes.unwrap();
        assert_eq!((changes.snapshot.as_str(), changes.revision), ("s0", 2));
        changes.failure.unwrap().since
    };
    world.turn(0).await.unwrap_err();
    let failure = world.state().await.changes.unwrap().failure.unwrap();
    assert_eq!(failure.since, since);
    world.snapshot(4).await;
    world.write(&[4]);
    // The first turn finds that the chain before cannot reach the snapshot.
    let _ = world.turn(0).await;
    world.turn(0).await.unwrap();
    let changes = world.state().await.changes.unwrap();
    assert_eq!((changes.snapshot.as_str(), changes.revision), ("s1", 5));
    assert_eq!(changes.failure, None);
}

/// A part without changes shows that everything is stored: at once, and then every minute.
#[tokio::test]
async fn an_etcd_in_which_nothing_changes_gives_a_sign_of_life_each_minute() {
    let mut world = World::new(Some(5)).await;
    world.snapshot(1).await;
    let mut parts = Vec::new();
    for _ in 0..25 {
        world.turn(0).await.unwrap();
        parts.push(world.follow("s0").await.1);
    }
    assert_eq!((parts[0], parts[11], parts[12], parts[24]), (1, 1, 2, 3));
    let (end, _) = world.follow("s0").await;
    assert_eq!(end.revision, 1);
}

#[tokio::test]
async fn nothing_is_stored_unless_the_member_leads_and_the_settings_say_so() {
    for (seconds, leads, is_stored) in [
        (None, true, false),
        (Some(0), true, false),
        (Some(5), false, false),
        (Some(5), true, true),
    ] {
        let mut world = World::new(seconds).await;
        if !leads {
            world.etcd.lock().unwrap().leaders.clear();
        }
        world.snapshot(1).await;
        world.write(&[1]);
        let turn = world.turn(0).await.unwrap();
        assert_eq!(turn == Turn::Followed, is_stored, "{seconds:?}, {leads}");
        let listed = world.backups.list("", None).await.unwrap();
        assert_eq!(listed.len() > 1, is_stored, "{listed:?}");
        let changes = world.state().await.changes;
        assert_eq!(changes.is_some(), is_stored);
    }
}

/// A part that somebody has damaged cannot be continued, and is never written over.
#[tokio::test]
async fn a_chain_whose_last_part_is_damaged_ends_there() {
    for content in ["", "no part"] {
        let mut world = World::new(Some(5)).await;
        world.snapshot(1).await;
        world.write(&[1]);
        world.turn(0).await.unwrap();
        let part = world.folder.path().join("backups/s0/changes/00000001");
        fs::write(&part, content).unwrap();
        world.restart(0);
        world.write(&[2]);
        let why = format!("{:#}", world.turn(0).await.unwrap_err());
        assert!(
            why.contains("is no part of changes that can be used"),
            "{why}"
        );
        assert_eq!(fs::read_to_string(&part).unwrap(), content);
        let failure = world.state().await.changes.unwrap().failure.unwrap();
        assert!(failure.reason.contains("00000001"), "{failure:?}");
        world.snapshot(3).await;
        settle(&mut world).await;
        assert_eq!(world.follow("s1").await.0.revision, 3);
    }
}

/// Stores parts of changes after a snapshot of revision 2701. Returns how far they are stored.
async fn store_parts(backups: &Store, begin: ChainEnd, parts: u64) -> ChainEnd {
    let mut end = begin;
    for after in end.revision..end.revision + parts {
        let put = |revision: u64| WatchedEvent {
            revision,
            key: b"/a".to_vec(),
            value: Some(b"b".to_vec()),
            lease: Some(9),
            created: 2702,
            version: revision - 2701,
        };
        let changes = CollectedChanges {
            after,
            until: after + 1,
            events: vec![put(after + 1)],
        };
        let part = end.next_part("i-1", "2026-11-26T15:00:00Z", changes);
        let part = part.with_leases(&BTreeMap::from([(9, 15)]));
        let prepared = PreparedPart::new(&end, &part).unwrap();
        end = store_part(backups, prepared).await.unwrap().unwrap();
    }
    end
}

/// A stored snapshot of revision 2701 with parts of changes after it, on an instance with a scratch etcd.
async fn drilled(parts: u64, scratch: u64) -> Instance {
    let here = Instance::new().await;
    let (backups, taker) = (here.backups(), here.taker("i-1"));
    let taken = taker.take(&backups, ("n", "command"), || async { Ok(true) });
    let begin = ChainEnd::of_manifest(&taken.await.unwrap()).unwrap();
    store_parts(&backups, begin, parts).await;
    here.host.kubelet.lock().unwrap().scratch_revision = scratch;
    here
}

/// A snapshot has hardly any changes when it is drilled: those after the one before are replayed instead.
#[tokio::test]
async fn the_daily_drill_replays_the_changes_before_the_newest_snapshot() {
    let here = Instance::new().await;
    here.role("i-1").take_step().await.unwrap();
    let first = here.state().await.drill.unwrap();
    assert!(!first.found.contains("replayed"), "{first:?}");
    let backups = here.backups();
    let manifest = backups.get(&manifest_key(&first.name)).await.unwrap();
    let manifest = SnapshotManifest::parse("m", &manifest.unwrap().bytes).unwrap();
    let begin = ChainEnd::of_manifest(&manifest).unwrap();
    let end = store_parts(&backups, begin, 2).await;
    let changes = ChangesState::new(&end, "i-1", OffsetDateTime::now_utc());
    let change = |state: &BackupState| state.with_stored_changes(&changes);
    let state = BackupStateObject::new(&here.host.store, "main");
    state.change(change).await.unwrap();
    here.host.kubelet.lock().unwrap().scratch_revision = 2701;
    here.pass(Duration::from_mins(16));
    let later = SnapshotTaker {
        clock: || OffsetDateTime::now_utc() + Duration::from_hours(25),
        ..here.taker("i-1")
    };
    let later = BackupRole {
        taker: Arc::new(later),
        ..here.role("i-1")
    };
    later.take_step().await.unwrap();
    let state = here.state().await;
    assert_ne!(state.last.unwrap().name, first.name);
    let drill = state.drill.unwrap();
    assert!(!drill.failed && drill.name == first.name, "{drill:?}");
    let says = "2 parts of its changes, up to revision 2703, were replayed";
    assert!(drill.found.contains(says), "{drill:?}");
}

#[tokio::test]
async fn a_drill_replays_all_changes_after_its_snapshot() {
    let here = drilled(3, 2701).await;
    let found = here.taker("i-1").drill("n").await.unwrap();
    let says = "3 parts of its changes, up to revision 2704, were replayed";
    assert!(found.contains(says), "{found}");
    let calls = fs::read_to_string(here.host.path("gateway-calls")).unwrap();
    assert_eq!(calls.matches("POST /v3/kv/txn").count(), 3, "{calls}");
    let granted = r#"POST /v3/lease/grant {"ID":"9","TTL":"15"}"#;
    assert_eq!(calls.matches(granted).count(), 1, "{calls}");
}

#[tokio::test]
async fn a_drill_tells_changes_that_do_not_fit_from_ones_that_could_not_be_replayed() {
    type Change = fn(&Instance);
    let changes: [(&str, u64, bool, Change); 4] = [
        ("does not exist", 2701, true, |here| {
            let part = here.host.path("backups/n/changes/00000002");
            fs::remove_file(part).unwrap();
        }),
        ("is no part of changes", 2701, true, |here| {
            fs::write(here.host.path("backups/n/changes/00000003"), "x").unwrap();
        }),
        ("do not fit", 2700, true, |_| ()),
        ("leases have ended", 2702, false, |_| ()),
    ];
    for (says, scratch, is_verdict, change) in changes {
        let here = drilled(3, scratch).await;
        change(&here);
        let why = format!("{:#}", here.taker("i-1").drill("n").await.unwrap_err());
        assert!(why.contains(says), "{says}: {why}");
        let state = BackupStateObject::new(&here.host.store, "main");
        let state = state.read().await.unwrap().state;
        let failed = state.drill.is_some_and(|drill| drill.failed);
        assert_eq!(failed, is_verdict, "{why}");
    }
}
