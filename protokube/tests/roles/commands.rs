//! Commands of `kctl etcd` are executed at most once, by their instance only, and never after they have expired; also if protokube
//! ends or the state store fails at any moment.

use crate::store::store_in;
use crate::test_host::INSTANCE;
use anyhow::bail;
use aws_client::store::{Expect, Store};
use etcd_member::backup::{KeyHash, KeysAt, SnapshotSource};
use etcd_member::{CommandMemory, CommandRole, DataHash, EtcdMaintenance};
use etcd_rules::{
    COMMAND_KEPT, COMMANDS_PREFIX, CORRUPT, CommandState, EtcdCommand, LOST_CLAIM, ListedMember,
    NO_SPACE, OtherMember, RunningMember, Verb, command_key,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use protokube_role::log::{Log, RoleLog};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use time::OffsetDateTime;

const LIFE: Duration = Duration::from_mins(2);

/// The leader of two members.
#[derive(Clone, Debug, Default)]
struct FakeEtcd(Arc<Mutex<FakeMember>>);

#[derive(Debug, Default)]
struct FakeMember {
    /// How often it was asked to disarm the alarm. The alarm stays, so that a command that is executed again counts again.
    disarmed: usize,
    refuses: bool,
    /// The process dies while etcd works.
    hangs: bool,
    alarm: Option<&'static str>,
    hashes: [u64; 2],
    /// The lock of the state store, which cannot be written from the next request to disarm on.
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
            learner: false,
        };
        Ok(RunningMember {
            name: "etcd-a".to_owned(),
            id: "a".to_owned(),
            leader: Some("a".to_owned()),
            alarms: member.alarm.iter().map(|one| (*one).to_owned()).collect(),
            members: ["a", "b"].map(listed).into(),
            ..RunningMember::default()
        })
    }

    async fn describe_others(&self, own: &RunningMember) -> Vec<OtherMember> {
        let says = RunningMember {
            name: "etcd-b".to_owned(),
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
        let hangs = {
            let mut member = self.0.lock().unwrap();
            assert_eq!(member.alarm, Some(alarm));
            member.disarmed += 1;
            if let Some(lock) = member.breaks.take() {
                fs::remove_file(&lock).unwrap();
                fs::create_dir(lock).unwrap();
            }
            if member.refuses {
                bail!("etcdserver: no leader");
            }
            member.hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn hash_data(&self, own: &RunningMember, _: u64) -> anyhow::Result<Vec<DataHash>> {
        let hashes = own.members.iter().zip(self.0.lock().unwrap().hashes);
        let hash = |(listed, hash): (&ListedMember, u64)| DataHash {
            member: listed.name.clone(),
            hash: KeyHash { hash, compacted: 5 },
        };
        Ok(hashes.map(hash).collect())
    }

    async fn move_leader(&self, _: &str) -> anyhow::Result<()> {
        bail!("no command asks for it")
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        bail!("no command asks for it")
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
        etcd.0.lock().unwrap().alarm = Some(CORRUPT);
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

    async fn ask_disarm(&self, id: &str) {
        self.ask(id, "main", INSTANCE, disarm(CORRUPT)).await;
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

    fn disarmed(&self) -> usize {
        self.etcd.0.lock().unwrap().disarmed
    }
}

fn disarm(alarm: &str) -> Verb {
    let alarm = alarm.to_owned();
    Verb::Disarm { alarm }
}

#[tokio::test]
async fn a_command_is_executed_once_and_answered() {
    let commands = Commands::new().await;
    commands.ask_disarm("1").await;
    commands.run_protokube().await;
    commands.run_protokube().await;
    let CommandState::Done { message, .. } = commands.state("1").await else {
        panic!("{:?}", commands.state("1").await);
    };
    assert_eq!(message, "disarmed the alarm CORRUPT");
    assert_eq!(commands.disarmed(), 1);
}

#[tokio::test]
async fn what_etcd_refuses_is_the_answer() {
    let commands = Commands::new().await;
    commands.etcd.0.lock().unwrap().refuses = true;
    commands.ask_disarm("1").await;
    commands.run_protokube().await;
    assert_eq!(commands.reason("1").await, "etcdserver: no leader");
    assert_eq!(commands.disarmed(), 1);
}

#[tokio::test]
async fn corrupt_is_disarmed_once_the_data_are_the_same_and_no_other_alarm_is() {
    let commands = Commands::new().await;
    let ask = async |id: &str, alarm: &str| {
        commands.ask(id, "main", INSTANCE, disarm(alarm)).await;
        commands.run_protokube().await;
    };
    let set = |alarm: Option<&'static str>, hashes: [u64; 2]| {
        let mut member = commands.etcd.0.lock().unwrap();
        member.alarm = alarm;
        member.hashes = hashes;
    };
    // kctl of an earlier release asks for it.
    set(Some(NO_SPACE), [1, 1]);
    ask("1", NO_SPACE).await;
    let reason = commands.reason("1").await;
    for told in ["protokube ends the alarm NOSPACE by itself", "full-disk.md"] {
        assert!(reason.contains(told), "{told}: {reason}");
    }
    ask("2", "SOMETHING").await;
    let reason = commands.reason("2").await;
    assert!(reason.contains("not SOMETHING"), "{reason}");
    set(Some(CORRUPT), [1, 2]);
    ask("3", CORRUPT).await;
    let reason = commands.reason("3").await;
    for told in [
        "etcd-a 00000001, etcd-b 00000002",
        "docs/operations/etcd.md#a-corrupt-member",
    ] {
        assert!(reason.contains(told), "{told}: {reason}");
    }
    assert_eq!(commands.disarmed(), 0);
    set(Some(CORRUPT), [2, 2]);
    ask("4", CORRUPT).await;
    assert_eq!(commands.disarmed(), 1);
    for alarm in [None, Some(NO_SPACE)] {
        set(alarm, [2, 2]);
        ask("5", CORRUPT).await;
        let done = commands.state("5").await;
        assert!(
            matches!(&done, CommandState::Done { message, .. } if message.contains("no alarm")),
            "{done:?}"
        );
        assert_eq!(commands.disarmed(), 1);
    }
}

#[tokio::test]
async fn commands_to_others_and_expired_ones_stay_as_they_are() {
    let commands = Commands::new().await;
    let other = disarm(CORRUPT);
    commands.ask("1", "main", "i-other", other).await;
    commands.ask_disarm("2").await;
    commands.set_age("2", LIFE);
    commands.run_protokube().await;
    for id in ["1", "2"] {
        assert_eq!(commands.state(id).await, CommandState::Waiting);
    }
    assert_eq!(commands.disarmed(), 0);
}

#[tokio::test]
async fn a_protokube_that_ends_during_a_command_does_not_repeat_it_and_says_so() {
    let commands = Commands::new().await;
    commands.etcd.0.lock().unwrap().hangs = true;
    commands.ask_disarm("1").await;
    commands.run_protokube().await;
    let claimed = commands.state("1").await;
    assert!(
        matches!(claimed, CommandState::Claimed { .. }),
        "{claimed:?}"
    );
    commands.etcd.0.lock().unwrap().hangs = false;
    commands.run_protokube().await;
    assert_eq!(commands.reason("1").await, LOST_CLAIM);
    assert_eq!(commands.disarmed(), 1);
}

#[tokio::test]
async fn an_unknown_verb_or_etcd_cluster_is_answered_and_other_objects_keep_none_waiting() {
    let commands = Commands::new().await;
    commands.write("0", "{").await;
    commands.write("1", &"x".repeat(20_000)).await;
    // Of a newer and of an earlier release.
    for (id, verb) in [
        ("2", json!({"compact": {"revision": 4}})),
        ("5", json!({"defragment": {}})),
    ] {
        let verb = Verb::Unknown(verb);
        commands.ask(id, "main", INSTANCE, verb).await;
    }
    let other = disarm(CORRUPT);
    commands.ask("3", "other", INSTANCE, other).await;
    commands.ask_disarm("4").await;
    commands.run_protokube().await;
    for id in ["2", "5"] {
        let reason = commands.reason(id).await;
        assert!(reason.contains("does not know"), "{reason}");
    }
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
    commands.ask_disarm("1").await;
    commands.run_protokube().await;
    commands.ask("2", "main", "i-other", disarm(CORRUPT)).await;
    commands.write("3", "{").await;
    commands.ask_disarm("4").await;
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
    commands.ask("1", "main", "i-other", disarm(CORRUPT)).await;
    commands.ask_disarm("2").await;
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
    commands.ask_disarm("1").await;
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
    assert_eq!(commands.disarmed(), 1);
}
