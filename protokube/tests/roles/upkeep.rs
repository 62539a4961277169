//! protokube keeps etcd's databases small and ends `NOSPACE` by itself: one member at a time, the leader last, also if it is killed at
//! any change. Three instances share an etcd cluster and a state store.

use crate::test_host::{INSTANCE, TestHost, ZONE, node_config};
use anyhow::bail;
use aws_client::store::{Expect, Store};
use etcd_member::{
    DataHash, EtcdMaintenance, MemberSettings, MemberVolume, UpkeepMemory, UpkeepRole,
};
use etcd_rules::{
    ListedMember, NO_SPACE, OtherMember, RunningMember, UpkeepClaim, record_key, upkeep_claim_key,
};
use etcd_store::{FormationStore, UpkeepClaims};
use futures::FutureExt;
use futures::future::BoxFuture;
use protokube::roles::MEMBER_PACE;
use protokube_role::log::{Log, RoleLog};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

const MIB: u64 = 1 << 20;
const QUOTA: u64 = 64 * MIB;

/// An etcd cluster. A member that is being defragmented answers nothing.
#[derive(Clone, Debug, Default)]
struct Cluster {
    sizes: Vec<u64>,
    /// Size of the live keys, bytes.
    used: u64,
    /// Size of keys that a compaction deletes, bytes.
    old: u64,
    leader: usize,
    alarm: bool,
    busy: Option<usize>,
    defragmented: Vec<usize>,
    done: Vec<String>,
    /// Number of the change at which the process that asks for it dies, and whether the change is made.
    dies_at: Option<(usize, bool)>,
    changes: usize,
}

#[derive(Clone, Debug)]
struct Member {
    cluster: Arc<Mutex<Cluster>>,
    index: usize,
}

fn id(index: usize) -> String {
    format!("{:x}", index + 10)
}

fn name(index: usize) -> String {
    format!("etcd-{}", id(index))
}

impl Cluster {
    fn describe(&self, index: usize) -> anyhow::Result<RunningMember> {
        if self.busy == Some(index) {
            bail!("timeout");
        }
        let listed = |index: usize| ListedMember {
            id: id(index),
            name: name(index),
            learner: false,
        };
        Ok(RunningMember {
            name: name(index),
            id: id(index),
            leader: Some(id(self.leader)),
            revision: 100,
            database_bytes: self.sizes[index],
            database_used_bytes: self.used + self.old,
            quota_bytes: Some(QUOTA),
            alarms: self
                .alarm
                .then(|| NO_SPACE.to_owned())
                .into_iter()
                .collect(),
            members: (0..self.sizes.len()).map(listed).collect(),
            ..RunningMember::default()
        })
    }
}

impl Member {
    /// A change. The process may die before it, or after it.
    async fn change(&self, what: &str, change: impl FnOnce(&mut Cluster)) {
        let dies = {
            let mut cluster = self.cluster.lock().unwrap();
            cluster.changes += 1;
            let dies = cluster.dies_at.filter(|(at, _)| *at == cluster.changes);
            if dies.is_none_or(|(_, made)| made) {
                cluster.done.push(format!("{what} by {}", self.index));
                change(&mut cluster);
            }
            dies.is_some()
        };
        if dies {
            std::future::pending::<()>().await;
        }
    }
}

impl EtcdMaintenance for Member {
    async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        self.cluster.lock().unwrap().describe(self.index)
    }

    async fn describe_others(&self, own: &RunningMember) -> Vec<OtherMember> {
        let cluster = self.cluster.lock().unwrap();
        let others = own.members.iter().enumerate();
        let others = others.filter(|(index, _)| *index != self.index);
        let other = |(index, listed): (usize, &ListedMember)| OtherMember {
            listed: listed.clone(),
            says: cluster.describe(index).map_err(|error| error.to_string()),
        };
        others.map(other).collect()
    }

    async fn move_leader(&self, to: &str) -> anyhow::Result<()> {
        let to = to.to_owned();
        self.change("move", |cluster| {
            assert_eq!(cluster.busy, None);
            cluster.leader = (0..cluster.sizes.len())
                .find(|index| id(*index) == to)
                .unwrap();
        })
        .await;
        Ok(())
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        let index = self.index;
        self.change("defragment", |cluster| {
            assert_eq!(cluster.busy, None, "two at once");
            assert!(
                cluster.sizes.len() == 1 || cluster.leader != index,
                "the leader"
            );
            cluster.busy = Some(index);
            cluster.defragmented.push(index);
        })
        .await;
        tokio::time::sleep(Duration::from_millis(3)).await;
        self.cluster.lock().unwrap().end_defragmentation();
        Ok(())
    }

    async fn compact(&self, _: u64) -> anyhow::Result<()> {
        self.change("compact", |cluster| cluster.old = 0).await;
        Ok(())
    }

    async fn disarm(&self, alarm: &str) -> anyhow::Result<()> {
        assert_eq!(alarm, NO_SPACE);
        self.change("disarm", |cluster| {
            // One that answers nothing, here because it is being defragmented, would raise the alarm again.
            let sizes = cluster.sizes.iter().enumerate();
            let mut answering = sizes.filter(|(index, _)| Some(*index) != cluster.busy);
            assert!(answering.all(|(_, size)| *size < QUOTA / 100 * 80));
            cluster.alarm = false;
        })
        .await;
        Ok(())
    }

    async fn hash_data(&self, _: &RunningMember, _: u64) -> anyhow::Result<Vec<DataHash>> {
        bail!("nobody asks for it here")
    }
}

impl Cluster {
    fn end_defragmentation(&mut self) {
        if let Some(index) = self.busy.take() {
            self.sizes[index] = self.used + self.old;
        }
    }
}

fn sleep_briefly(_: Duration) -> BoxFuture<'static, ()> {
    tokio::time::sleep(Duration::from_millis(2)).boxed()
}

struct Instances {
    host: TestHost,
    cluster: Arc<Mutex<Cluster>>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Instances {
    async fn new(cluster: Cluster) -> Self {
        let instances = Self {
            host: TestHost::new().await,
            cluster: Arc::new(Mutex::new(cluster)),
            lines: Arc::default(),
        };
        let formed = r#"{"format":1,"generation": {"clusterId": "c", "token": "t"},"members":{}}"#;
        instances.write(&record_key("main"), formed).await;
        instances
    }

    fn store(&self) -> &Store {
        &self.host.store
    }

    async fn write(&self, key: &str, text: &str) {
        let put = self
            .store()
            .put(key, text.as_bytes().to_vec(), Expect::Any)
            .await;
        put.unwrap();
    }

    fn role(&self, index: usize) -> UpkeepRole<Member> {
        let config = node_config();
        let etcd = config.control_plane.clone().unwrap().etcd.remove(0);
        let lines = Arc::clone(&self.lines);
        let log = Log::from_fn(move |line| lines.lock().unwrap().push(line.to_owned()));
        UpkeepRole {
            volume: MemberVolume {
                settings: MemberSettings {
                    config: Arc::new(config),
                    etcd,
                    first_device: 0,
                    instance: INSTANCE.to_owned(),
                    zone: ZONE.to_owned(),
                    pace: MEMBER_PACE,
                    confirm_after: Duration::ZERO,
                    token: || Ok("token".to_owned()),
                },
                host: self.host.host.clone(),
            },
            member: Member {
                cluster: Arc::clone(&self.cluster),
                index,
            },
            formation: FormationStore::new(self.store(), "main"),
            claims: UpkeepClaims {
                store: self.store().clone(),
                etcd: "main".to_owned(),
                instance: format!("i-{index}"),
                clock: OffsetDateTime::now_utc,
            },
            role_log: RoleLog::with_log(log, "upkeep-main"),
            sleep: sleep_briefly,
            memory: UpkeepMemory::default(),
        }
    }

    /// Runs a new protokube on every instance until nothing is left to do, or for a while.
    async fn run(&self) {
        let count = self.cluster.lock().unwrap().sizes.len();
        let roles: Vec<_> = (0..count).map(|index| self.role(index)).collect();
        let run = futures::future::join_all(roles.iter().map(UpkeepRole::keep_up));
        let settled = async {
            for _ in 0..150 {
                tokio::time::sleep(Duration::from_millis(4)).await;
                if self.is_well() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = run => panic!("a role has ended"),
            () = settled => {}
        }
        // etcd goes on with what it was asked for.
        self.cluster.lock().unwrap().end_defragmentation();
    }

    fn is_well(&self) -> bool {
        let cluster = self.cluster.lock().unwrap();
        let small = cluster.sizes.iter().all(|size| *size < QUOTA / 100 * 80);
        small && !cluster.alarm && cluster.busy.is_none()
    }

    fn done(&self) -> Vec<String> {
        self.cluster.lock().unwrap().done.clone()
    }
}

/// A database at its quota, of which most is old.
fn full(members: usize) -> Cluster {
    Cluster {
        sizes: vec![QUOTA; members],
        used: 20 * MIB,
        old: 44 * MIB,
        alarm: true,
        ..Cluster::default()
    }
}

#[tokio::test]
async fn a_full_database_is_compacted_defragmented_and_disarmed_the_leader_last() {
    let instances = Instances::new(full(3)).await;
    instances.run().await;
    let done = instances.done();
    assert_eq!(
        done.first().map(String::as_str),
        Some("compact by 0"),
        "{done:?}"
    );
    assert!(done.last().unwrap().starts_with("disarm"), "{done:?}");
    let cluster = instances.cluster.lock().unwrap().clone();
    assert_eq!(cluster.defragmented, [1, 2, 0]);
    assert_ne!(cluster.leader, 0);
    let claim = instances
        .store()
        .get(&upkeep_claim_key("main"))
        .await
        .unwrap();
    assert_eq!(claim, None, "given back");
}

#[tokio::test]
async fn killed_at_every_change_it_is_done_all_the_same() {
    for members in [1, 3] {
        for at in 1.. {
            let before = Instances::new(full(members)).await;
            before.run().await;
            let changes = before.cluster.lock().unwrap().changes;
            if at > changes {
                break;
            }
            for made in [false, true] {
                let dies_at = Some((at, made));
                let instances = Instances::new(Cluster {
                    dies_at,
                    ..full(members)
                })
                .await;
                instances.run().await;
                // The instances begin again, and one member at a time is away.
                instances.run().await;
                assert!(instances.is_well(), "{at} {made}: {:?}", instances.done());
            }
        }
    }
}

#[tokio::test]
async fn data_that_needs_the_quota_is_reported_and_left_alone() {
    let cluster = Cluster {
        used: 60 * MIB,
        old: 4 * MIB,
        ..full(3)
    };
    let instances = Instances::new(cluster).await;
    instances.run().await;
    let done = instances.done();
    assert!(
        done.iter().all(|one| one.starts_with("compact")),
        "{done:?}"
    );
    let lines = instances.lines.lock().unwrap().join("\n");
    for told in [
        "NOSPACE",
        "delete objects",
        "ETCD_QUOTA_BACKEND_BYTES",
        "60 MiB in use",
    ] {
        assert!(lines.contains(told), "{told}: {lines}");
    }
    // Objects were deleted meanwhile.
    {
        let mut cluster = instances.cluster.lock().unwrap();
        cluster.used = 10 * MIB;
        cluster.old = 50 * MIB;
    }
    instances.run().await;
    assert!(instances.is_well(), "{:?}", instances.done());
}

#[tokio::test]
async fn nothing_is_defragmented_while_another_instance_has_the_claim_or_a_member_is_replaced() {
    let full = Cluster {
        alarm: false,
        old: 0,
        ..full(3)
    };
    let instances = Instances::new(full.clone()).await;
    let other = UpkeepClaim::new("i-9", OffsetDateTime::now_utc());
    instances
        .write(&upkeep_claim_key("main"), &other.to_json())
        .await;
    instances.run().await;
    assert!(instances.done().is_empty(), "{:?}", instances.done());
    // The instance is gone.
    let store = instances
        .store()
        .url()
        .strip_prefix("file://")
        .unwrap()
        .to_owned();
    let path = format!("{store}/{}", upkeep_claim_key("main"));
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_mins(10))
        .unwrap();
    instances.run().await;
    assert!(instances.is_well(), "{:?}", instances.done());

    let instances = Instances::new(full).await;
    let replacing = r#"{"format":1,"generation": {"clusterId": "c", "token": "t"},"members":{},"replacing":{"member":"b"}}"#;
    instances.write(&record_key("main"), replacing).await;
    instances.run().await;
    assert!(instances.done().is_empty(), "{:?}", instances.done());
}

#[tokio::test]
async fn a_claim_from_before_a_restart_is_given_back_by_its_instance_only() {
    let instances = Instances::new(full(2)).await;
    let (own, other) = (instances.role(0).claims, instances.role(1).claims);
    own.take().await.unwrap().unwrap();
    other.release_left().await.unwrap();
    assert_eq!(other.take().await.unwrap(), None);
    own.release_left().await.unwrap();
    assert!(other.take().await.unwrap().is_some());
}
