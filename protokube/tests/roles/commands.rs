//! Commands of `kctl etcd` are executed at most once, by their instance only, and never after they have expired; also if protokube
//! ends or the state store fails at any moment.

use crate::store::store_in;
use crate::test_host::INSTANCE;
use anyhow::bail;
use aws_client::store::{Expect, Store};
use etcd_member::backup::{KeysAt, SnapshotSource};
use etcd_member::{CommandMemory, CommandRole, DataHash, EtcdMaintenance};
use etcd_rules::{
    COMMAND_KEPT, COMMANDS_PREFIX, CORRUPT, CommandState, EtcdCommand, LOST_CLAIM, ListedMember,
    NO_SPACE, OtherMember, RunningMember, UpkeepClaim, Verb, command_key, upkeep_claim_key,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use protokube_role::log::{Log, RoleLog};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use time::OffsetDateTime;

const LIFE: Duration = Duration::from_mins(2);

/// A member of three; `b` may be given the leadership.
#[derive(Clone, Debug, Default)]
struct FakeEtcd(Arc<Mutex<FakeMember>>);

#[derive(Debug, Default)]
struct FakeMember {
    leader: String,
    defragmented: usize,
    moved: usize,
    refuses: bool,
    /// The process dies while etcd works.
    hangs: bool,
    /// Size of the database of b, bytes; the quota is 4096.
    other_bytes: u64,
    alarm: Option<&'static str>,
    hashes: [u64; 2],
    /// The lock of the state store, which cannot be written from the next defragmentation on.
    breaks: Option<PathBuf>,
}

impl SnapshotSource for FakeEtcd {
    async fn save_snapshot(&self, _: &str) -> anyhow::Result<()> {
        bail!("no command asks for it")
    }

    async fn describe_keys(&self, _: u64) -> anyhow::Result<KeysAt> {
        bail!("no command asks for it")
    }
}

impl EtcdMaintenance for FakeEtcd {
    async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        let member = self.0.lock().unwrap();
        let listed = |id: &str| ListedMember {
            id: id.to_owned(),
            name: format!("etcd-{id}"),
            learner: id == "c",
        };
        Ok(RunningMember {
            name: "etcd-a".to_owned(),
            id: "a".to_owned(),
            leader: Some(member.leader.clone()),
            database_bytes: 4096 >> member.defragmented,
            quota_bytes: Some(4096),
            alarms: member.alarm.iter().map(|one| (*one).to_owned()).collect(),
            members: ["a", "b", "c"].map(listed).into(),
            ..RunningMember::default()
        })
    }

    async fn describe_others(&self, own: &RunningMember) -> Vec<OtherMember> {
        let says = RunningMember {
            name: "etcd-b".to_owned(),
            database_bytes: self.0.lock().unwrap().other_bytes,
            ..own.clone()
        };
        vec![OtherMember {
            listed: own.members[1].clone(),
            says: Ok(says),
        }]
    }

    async fn compact(&self, _: u64) -> anyhow::Result<()> {
        bail!("no command asks for it")
    }

    async fn disarm(&self, alarm: &str) -> anyhow::Result<()> {
        let disarmed = self.0.lock().unwrap().alarm.take();
        assert_eq!(disarmed, Some(alarm));
        Ok(())
    }

    async fn hash_data(&self, own: &RunningMember, _: u64) -> anyhow::Result<Vec<DataHash>> {
        let hashes = own.members.iter().zip(self.0.lock().unwrap().hashes);
        let hash = |(listed, hash): (&ListedMember, u64)| DataHash {
            member: listed.name.clone(),
            hash,
            compacted: 5,
        };
        Ok(hashes.map(hash).collect())
    }

    async fn move_leader(&self, id: &str) -> anyhow::Result<()> {
        let mut member = self.0.lock().unwrap();
        member.moved += 1;
        id.clone_into(&mut member.leader);
        Ok(())
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        let hangs = {
            let mut member = self.0.lock().unwrap();
            member.defragmented += 1;
            if let Some(lock) = member.breaks.take() {
                fs::remove_file(&lock).unwrap();
                fs::create_dir(lock).unwrap();
            }
            if member.refuses {
                bail!("etcdserver: no space");
            }
            member.hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

fn sleep_briefly(_: Duration) -> BoxFuture<'static, ()> {
    tokio::time::sleep(Duration::from_millis(2)).boxed()
}

/// A state store in a folder, and the member of main.
struct Commands {
    folder: TempDir,
    store: Store,
    etcd: FakeEtcd,
}

impl Commands {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let etcd = FakeEtcd::default();
        etcd.0.lock().unwrap().leader = "a".to_owned();
        Self {
            store: store_in(folder.path()).await,
            folder,
            etcd,
        }
    }

    /// A protokube that has just started.
    fn start_role(&self) -> CommandRole<FakeEtcd> {
        CommandRole {
            store: self.store.clone(),
            instance: INSTANCE.to_owned(),
            members: [("main".to_owned(), self.etcd.clone())].into(),
            snapshots: BTreeMap::new(),
            role_log: RoleLog::with_log(Log::from_fn(|_| ()), "commands"),
            clock: OffsetDateTime::now_utc,
            sleep: sleep_briefly,
            memory: CommandMemory::default(),
            records: Arc::default(),
        }
    }

    /// Runs a protokube for some of its rounds.
    async fn run_protokube(&self) {
        self.run_role(&self.start_role()).await;
    }

    async fn run_role(&self, role: &CommandRole<FakeEtcd>) {
        let time = tokio::time::sleep(Duration::from_millis(60));
        tokio::select! {
            ended = role.execute_commands() => panic!("{ended:?}"),
            () = time => {}
        }
    }

    async fn ask(&self, id: &str, etcd: &str, instance: &str, verb: Verb) {
        let now = OffsetDateTime::now_utc();
        let command = EtcdCommand::new(etcd, instance, verb, "me@host", now, LIFE);
        self.write(id, &command.to_json()).await;
    }

    async fn ask_defragment(&self, id: &str) {
        self.ask(id, "main", INSTANCE, Verb::Defragment {}).await;
    }

    async fn write(&self, id: &str, text: &str) {
        let bytes = text.as_bytes().to_vec();
        let put = self.store.put(&command_key(id), bytes, Expect::Any).await;
        put.unwrap();
    }

    /// Makes the object this old by the store's clock.
    fn set_age(&self, id: &str, age: Duration) {
        let path = self.folder.path().join(command_key(id));
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    async fn state(&self, id: &str) -> CommandState {
        let object = self.store.get(&command_key(id)).await.unwrap().unwrap();
        EtcdCommand::parse(id, &object.bytes).unwrap().state
    }

    async fn reason(&self, id: &str) -> String {
        match self.state(id).await {
            CommandState::Failed { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    fn defragmented(&self) -> usize {
        self.etcd.0.lock().unwrap().defragmented
    }
}

#[tokio::test]
async fn a_command_is_executed_once_and_answered() {
    let commands = Commands::new().await;
    commands.ask_defragment("1").await;
    commands.run_protokube().await;
    commands.run_protokube().await;
    let CommandState::Done { database, .. } = commands.state("1").await else {
        panic!("{:?}", commands.state("1").await);
    };
    let database = database.unwrap();
    assert_eq!((database.before_bytes, database.after_bytes), (4096, 2048));
    assert_eq!(commands.defragmented(), 1);
}

#[tokio::test]
async fn what_etcd_refuses_is_the_answer() {
    let commands = Commands::new().await;
    commands.etcd.0.lock().unwrap().refuses = true;
    commands.ask_defragment("1").await;
    commands.run_protokube().await;
    assert_eq!(commands.reason("1").await, "etcdserver: no space");
    assert_eq!(commands.defragmented(), 1);
}

#[tokio::test]
async fn the_leader_moves_to_a_voting_member_and_only_from_the_leader() {
    let commands = Commands::new().await;
    let ask = async |id: &str, to: &str| {
        let to = to.to_owned();
        let verb = Verb::MoveLeader { to };
        commands.ask(id, "main", INSTANCE, verb).await;
        commands.run_protokube().await;
    };
    ask("1", "etcd-c").await;
    assert_eq!(
        commands.reason("1").await,
        "etcd-c is a learner: it cannot lead"
    );
    ask("2", "etcd-x").await;
    assert!(commands.reason("2").await.contains("etcd-a, etcd-b"));
    ask("3", "etcd-b").await;
    let done = commands.state("3").await;
    assert!(matches!(done, CommandState::Done { .. }), "{done:?}");
    ask("4", "etcd-a").await;
    assert!(
        commands
            .reason("4")
            .await
            .contains("does not lead any more")
    );
    assert_eq!(commands.etcd.0.lock().unwrap().moved, 1);
}

#[tokio::test]
async fn a_full_database_keeps_its_alarm_and_data_that_differ_keep_theirs() {
    let commands = Commands::new().await;
    let ask = async |id: &str, alarm: &str| {
        let verb = Verb::Disarm {
            alarm: alarm.to_owned(),
        };
        commands.ask(id, "main", INSTANCE, verb).await;
        commands.run_protokube().await;
    };
    let set = |alarm: &'static str, defragmented: usize, other_bytes: u64, hashes: [u64; 2]| {
        let mut member = commands.etcd.0.lock().unwrap();
        member.alarm = Some(alarm);
        member.defragmented = defragmented;
        member.other_bytes = other_bytes;
        member.hashes = hashes;
    };
    set(NO_SPACE, 1, 4000, [1, 1]);
    ask("1", NO_SPACE).await;
    let reason = commands.reason("1").await;
    assert!(
        reason.contains("etcd-b") && reason.contains("delete objects"),
        "{reason}"
    );
    set(NO_SPACE, 1, 2048, [1, 1]);
    ask("2", NO_SPACE).await;
    let done = commands.state("2").await;
    assert!(matches!(done, CommandState::Done { .. }), "{done:?}");
    set(CORRUPT, 1, 2048, [1, 2]);
    ask("3", CORRUPT).await;
    let reason = commands.reason("3").await;
    assert!(
        reason.contains("etcd-a 00000001, etcd-b 00000002"),
        "{reason}"
    );
    set(CORRUPT, 1, 2048, [2, 2]);
    ask("4", CORRUPT).await;
    assert_eq!(commands.etcd.0.lock().unwrap().alarm, None);
    ask("5", CORRUPT).await;
    let done = commands.state("5").await;
    assert!(
        matches!(&done, CommandState::Done { message, .. } if message.contains("no alarm")),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_member_is_not_defragmented_while_another_one_is() {
    let commands = Commands::new().await;
    let other = UpkeepClaim::new("i-other", "upkeep-main", OffsetDateTime::now_utc());
    let (key, text) = (upkeep_claim_key("main"), other.to_json().into_bytes());
    let claim = commands.store.put(&key, text, Expect::Any).await.unwrap();
    commands.ask_defragment("1").await;
    commands.run_protokube().await;
    assert!(commands.reason("1").await.contains("i-other (upkeep-main)"));
    commands
        .store
        .delete(&key, Expect::Version(claim))
        .await
        .unwrap();
    commands.ask_defragment("2").await;
    commands.run_protokube().await;
    assert_eq!(commands.defragmented(), 1);
    assert_eq!(commands.store.get(&key).await.unwrap(), None);
}

#[tokio::test]
async fn commands_to_others_and_expired_ones_stay_as_they_are() {
    let commands = Commands::new().await;
    let other = Verb::Defragment {};
    commands.ask("1", "main", "i-other", other).await;
    commands.ask_defragment("2").await;
    commands.set_age("2", LIFE);
    commands.run_protokube().await;
    for id in ["1", "2"] {
        assert_eq!(commands.state(id).await, CommandState::Waiting);
    }
    assert_eq!(commands.defragmented(), 0);
}

#[tokio::test]
async fn a_protokube_that_ends_during_a_command_does_not_repeat_it_and_says_so() {
    let commands = Commands::new().await;
    commands.etcd.0.lock().unwrap().hangs = true;
    commands.ask_defragment("1").await;
    commands.run_protokube().await;
    let claimed = commands.state("1").await;
    assert!(
        matches!(claimed, CommandState::Claimed { .. }),
        "{claimed:?}"
    );
    commands.etcd.0.lock().unwrap().hangs = false;
    commands.run_protokube().await;
    assert_eq!(commands.reason("1").await, LOST_CLAIM);
    assert_eq!(commands.defragmented(), 1);
}

#[tokio::test]
async fn an_unknown_verb_or_etcd_cluster_is_answered_and_other_objects_keep_none_waiting() {
    let commands = Commands::new().await;
    commands.write("0", "{").await;
    commands.write("1", &"x".repeat(20_000)).await;
    let newer = serde_json::json!({"compact": {"revision": 4}});
    let newer = Verb::Unknown(newer);
    commands.ask("2", "main", INSTANCE, newer).await;
    let other = Verb::Defragment {};
    commands.ask("3", "other", INSTANCE, other).await;
    commands.ask_defragment("4").await;
    commands.run_protokube().await;
    assert!(commands.reason("2").await.contains("does not know"));
    assert!(
        commands
            .reason("3")
            .await
            .contains("no member of an etcd cluster other")
    );
    let done = commands.state("4").await;
    assert!(matches!(done, CommandState::Done { .. }), "{done:?}");
}

#[tokio::test]
async fn what_is_older_than_a_day_is_deleted_whatever_it_is() {
    let commands = Commands::new().await;
    commands.ask_defragment("1").await;
    commands.run_protokube().await;
    commands
        .ask("2", "main", "i-other", Verb::Defragment {})
        .await;
    commands.write("3", "{").await;
    commands.ask_defragment("4").await;
    for id in ["1", "2", "3"] {
        commands.set_age(id, COMMAND_KEPT + Duration::from_mins(1));
    }
    commands.run_protokube().await;
    let left = commands.store.list(COMMANDS_PREFIX, None).await.unwrap();
    let left: Vec<String> = left.into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, [command_key("4")]);
}

/// A look costs one listing; commands with which there is nothing to do are read once.
#[tokio::test]
async fn commands_with_nothing_to_do_are_read_once() {
    let commands = Commands::new().await;
    commands
        .ask("1", "main", "i-other", Verb::Defragment {})
        .await;
    commands.ask_defragment("2").await;
    let role = commands.start_role();
    let rounds = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let settled = commands.store.reads();
        let before = commands.store.writes();
        tokio::time::sleep(Duration::from_millis(60)).await;
        // Rounds of at least 2 ms with one listing each.
        assert!(commands.store.reads() > settled);
        assert!(commands.store.reads() - settled <= 31);
        assert_eq!(commands.store.writes(), before);
    };
    tokio::select! {
        ended = role.execute_commands() => panic!("{ended:?}"),
        () = rounds => {}
    }
}

#[tokio::test]
async fn an_answer_is_written_once_the_state_store_can_be_written_again() {
    let commands = Commands::new().await;
    commands.ask_defragment("1").await;
    let lock = commands.folder.path().join(".kctl-lock");
    commands.etcd.0.lock().unwrap().breaks = Some(lock.clone());
    let role = commands.start_role();
    commands.run_role(&role).await;
    let claimed = commands.state("1").await;
    assert!(
        matches!(claimed, CommandState::Claimed { .. }),
        "{claimed:?}"
    );
    fs::remove_dir(lock).unwrap();
    // The role was restarted, but not the process.
    commands.run_role(&role).await;
    let done = commands.state("1").await;
    assert!(matches!(done, CommandState::Done { .. }), "{done:?}");
    assert_eq!(commands.defragmented(), 1);
}
