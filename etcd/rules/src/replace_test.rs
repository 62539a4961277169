//! Laws of the replacement of members and of recoveries, by simulating a formed etcd cluster whose members lose their logs and
//! volumes, and whose instances die at any time.

use super::*;
use node::components::EtcdStart;
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const CLUSTER: &str = "c1";
const TOKEN: &str = "t1";

/// A loss that a member suffers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// Its log is removed.
    Log,
    /// Its log is cut off.
    End,
    /// Its volume is wiped.
    Content,
    /// Its volume is deleted, and another one made in its place.
    Volume,
    /// Its instance dies, and another takes over the volume.
    Instance,
}

const LOSSES: [Loss; 5] = [
    Loss::Log,
    Loss::End,
    Loss::Content,
    Loss::Volume,
    Loss::Instance,
];

/// An etcd cluster with the volumes of its members.
struct World {
    record: FormationRecord,
    /// Members of the spec.
    members: Vec<String>,
    volumes: BTreeMap<String, (String, VolumeContent)>,
    /// Members whose etcd runs, with the id in their log.
    running: BTreeMap<String, String>,
    /// Members whose manifest kubelet sees.
    shown: BTreeSet<String>,
    /// The cluster that serves: its id, and its members.
    cluster: String,
    live: Vec<LiveMember>,
    /// The last entry of each member's log.
    logs: BTreeMap<String, LastEntry>,
    /// The newest entry that was acknowledged to a client.
    acknowledged: LastEntry,
    /// Raft term.
    term: u64,
    /// Members whose volume is attached to nothing.
    free: BTreeSet<String>,
    /// Logs that were restored for a new cluster, by token.
    restored: BTreeMap<String, LogIdentity>,
    gone: BTreeSet<String>,
    /// How often a log began under an id.
    lives: BTreeMap<String, usize>,
    /// Members that the spec has.
    wanted: BTreeSet<String>,
    /// etcd's id of the leader.
    leader: Option<String>,
    /// Ids of the logs that were moved aside.
    aside: BTreeSet<String>,
    /// Every version that the record has had.
    versions: Vec<FormationRecord>,
    count: usize,
}

fn marker_of(member: &str, volume: &str, id: Option<&str>) -> Marker {
    Marker {
        format: FORMAT,
        cluster: "x.example.com".into(),
        etcd: "main".into(),
        member: member.into(),
        volume: volume.into(),
        token: TOKEN.into(),
        cluster_id: id.map(|_| CLUSTER.into()),
        member_id: id.map(str::to_owned),
        joins: None,
        etcd_version: None,
        stopped: None,
        last_seen: None,
        unknown: UnknownFields::new(),
    }
}

fn log_of(cluster: &str, id: &str) -> EtcdLog {
    EtcdLog::Of(LogIdentity {
        cluster_id: cluster.into(),
        member_id: id.into(),
    })
}

fn marked_content(marker: Marker, log: EtcdLog) -> VolumeContent {
    VolumeContent::FileSystem(FileSystemContent::Marked { marker, log })
}

fn peer_url(member: &str) -> String {
    format!("https://etcd-{member}.internal.x.example.com:2380")
}

impl World {
    /// A formed cluster of the first `formed` members, and blank volumes of the others of `all`.
    fn new(formed: usize, all: usize) -> Self {
        let mut world = Self {
            record: FormationRecord::new(Generation::formed(CLUSTER, TOKEN), BTreeMap::new()),
            members: NAMES.iter().take(all).map(ToString::to_string).collect(),
            volumes: BTreeMap::new(),
            running: BTreeMap::new(),
            shown: BTreeSet::new(),
            cluster: CLUSTER.to_owned(),
            live: Vec::new(),
            logs: BTreeMap::new(),
            acknowledged: LastEntry { term: 1, index: 1 },
            term: 1,
            free: BTreeSet::new(),
            restored: BTreeMap::new(),
            gone: BTreeSet::new(),
            lives: BTreeMap::new(),
            wanted: NAMES.iter().take(all).map(ToString::to_string).collect(),
            leader: None,
            aside: BTreeSet::new(),
            versions: Vec::new(),
            count: 0,
        };
        for (index, member) in world.members.clone().into_iter().enumerate() {
            let volume = format!("vol-{member}");
            let content = if index < formed {
                let id = format!("id-{member}");
                let recorded = RecordedMember {
                    member_id: Some(id.clone()),
                    ..RecordedMember::on_volume(&volume, true)
                };
                world.record.members.insert(member.clone(), recorded);
                world.live.push(LiveMember {
                    id: id.clone(),
                    name: format!("etcd-{member}"),
                    peer_urls: vec![peer_url(&member)],
                    learner: false,
                });
                world.running.insert(member.clone(), id.clone());
                world.shown.insert(member.clone());
                world.lives.insert(id.clone(), 1);
                world.logs.insert(member.clone(), world.acknowledged);
                marked_content(marker_of(&member, &volume, Some(&id)), log_of(CLUSTER, &id))
            } else {
                VolumeContent::Blank
            };
            world.volumes.insert(member, (volume, content));
        }
        world
    }

    fn new_name(&mut self, of: &str) -> String {
        self.count += 1;
        format!("{of}-{}", self.count)
    }

    fn is_running(&self, id: &str) -> bool {
        self.running.values().any(|running| running == id)
    }

    fn has_quorum(&self) -> bool {
        let voters = || self.live.iter().filter(|one| !one.learner);
        let up = voters().filter(|one| self.is_running(&one.id)).count();
        up > voters().count() / 2
    }

    /// What an update does with the spec's members.
    fn update(&mut self, wanted: &[&str]) {
        self.wanted = wanted.iter().map(ToString::to_string).collect();
        if let Some(next) = set_leaving(&self.record, &self.wanted).unwrap() {
            self.write_record(next);
        }
    }

    fn write_record(&mut self, record: FormationRecord) {
        let before = std::mem::replace(&mut self.record, record);
        self.versions.push(before);
    }

    /// The members elect a leader, if they can.
    fn elect(&mut self) {
        let voters = self.live.iter().filter(|one| !one.learner);
        let up = voters.filter(|one| self.is_running(&one.id));
        let up: Vec<String> = up.map(|one| one.id.clone()).collect();
        let leads = self
            .leader
            .as_ref()
            .is_some_and(|leader| up.contains(leader));
        if !self.has_quorum() {
            self.leader = None;
        } else if !leads {
            self.leader = up.last().cloned();
        }
    }

    fn peers(&mut self) -> Peers {
        self.elect();
        let running = self.live.iter().filter(|one| self.is_running(&one.id));
        let says = |one: &LiveMember| RunningMember {
            id: one.id.clone(),
            cluster_id: self.cluster.clone(),
            leader: self.leader.clone(),
            term: 1,
            revision: one.id.len() as u64,
            ..RunningMember::default()
        };
        let name = |one: &LiveMember| one.name.trim_start_matches("etcd-").to_owned();
        running.map(|one| (name(one), Ok(says(one)))).collect()
    }

    fn stop(&mut self, member: &str) {
        self.running.remove(member);
        self.shown.remove(member);
    }

    fn suffer(&mut self, member: &str, loss: Loss) {
        self.stop(member);
        let fresh = self.new_name(&format!("vol-{member}"));
        let (volume, content) = self.volumes.get_mut(member).unwrap();
        match loss {
            Loss::Log => {
                if let VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) = content {
                    *log = EtcdLog::Missing;
                }
            }
            Loss::End => {
                if let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) =
                    content
                    && marker.member_id.is_some()
                    && let EtcdLog::Of(identity) = log
                {
                    let at = |index| LogPosition { term: 2, index };
                    *log = EtcdLog::Shorter {
                        log: identity.clone(),
                        seen: at(9),
                        found: at(8),
                    };
                }
            }
            Loss::Content => *content = VolumeContent::Blank,
            Loss::Volume => {
                self.gone.insert(std::mem::replace(volume, fresh));
                *content = VolumeContent::Blank;
            }
            Loss::Instance => {}
        }
    }

    /// The members that run and vote append an entry, all but one of them if they can, and the client hears of it.
    fn write(&mut self, slow: &str) {
        let runs = |one: &&LiveMember| !one.learner && self.is_running(&one.id);
        let up: Vec<String> = self
            .live
            .iter()
            .filter(runs)
            .map(|one| one.id.clone())
            .collect();
        let voters = self.live.iter().filter(|one| !one.learner).count();
        let all: Vec<String> = self.running.keys().cloned().collect();
        let takers = all
            .into_iter()
            .filter(|member| up.contains(&self.running[member]));
        let takers: Vec<String> = takers.collect();
        let quick: Vec<String> = takers.iter().filter(|one| *one != slow).cloned().collect();
        let takers = if quick.len() > voters / 2 {
            quick
        } else {
            takers
        };
        if takers.len() <= voters / 2 {
            return;
        }
        self.acknowledged = LastEntry {
            term: self.term,
            index: self.acknowledged.index + 1,
        };
        for member in takers {
            self.logs.insert(member, self.acknowledged);
        }
    }

    /// A leader without followers appends entries that nobody else gets, and another one is elected.
    fn write_alone(&mut self, member: &str) {
        if self.running.contains_key(member) {
            let last = self.logs.entry(member.to_owned()).or_default();
            last.index += 7;
            self.term += 1;
        }
    }

    /// The last entry of the log on a member's volume.
    fn last_entry(&self, member: &str) -> LastEntry {
        let VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) =
            &self.volumes[member].1
        else {
            return LastEntry::default();
        };
        match log {
            EtcdLog::Of(_) | EtcdLog::Shorter { .. } => {
                self.logs.get(member).copied().unwrap_or_default()
            }
            _ => LastEntry::default(),
        }
    }

    /// One look and one step of a member's instance. `half`: it dies in the middle.
    fn take_turn(&mut self, member: &str, half: bool) {
        if self.free.contains(member) {
            return;
        }
        let (volume, content) = self.volumes[member].clone();
        if has_lost_log(&content) || must_stay_stopped(member, Some(&self.record), &content) {
            self.stop(member);
        }
        let seen = self.volumes.iter().map(|(member, (id, _))| SeenVolume {
            id: id.clone(),
            zone: "z".into(),
            state: "in-use".into(),
            tag: format!("{member}/{}", self.members.join(",")),
            holder: (!self.free.contains(member)).then(|| Holder {
                instance: format!("i-{member}"),
                state: "attached".into(),
                device: "/dev/xvdu".into(),
            }),
        });
        let seen: Vec<SeenVolume> = seen.collect();
        let free = self
            .free
            .iter()
            .map(|member| self.volumes[member].0.clone());
        let free: BTreeSet<String> = free.collect();
        let live = if self.has_quorum() {
            Ok(LiveCluster {
                cluster_id: self.cluster.clone(),
                members: self.live.clone(),
            })
        } else {
            Err("no quorum".to_owned())
        };
        let peers = self.peers();
        let members = all_members(&self.members, &seen, Some(&self.record));
        let own = OwnMember {
            cluster: "x.example.com",
            etcd: "main",
            members: &members,
            version: "3.6.12",
            member,
            volume: &volume,
            seen: &seen,
            gone: &self.gone,
            gone_twice: &self.gone,
            free_twice: &free,
            live: live.as_ref().map_err(String::as_str),
            peers: &peers,
            manifest_version: None,
            shown: self.shown.contains(member),
            token: "new",
            trace: None,
            formed: None,
        };
        let step = decide_step(&own, Some(&self.record), &content);
        self.carry_out(member, step, half);
    }

    fn carry_out(&mut self, member: &str, step: FormationStep, half: bool) {
        let (_, content) = &self.volumes[member];
        let next = match step {
            FormationStep::Record(record) | FormationStep::PrepareRestore(record) => {
                if !half {
                    self.write_record(record);
                }
                return;
            }
            FormationStep::Change(change) => return self.change_members(member, change, half),
            FormationStep::Start(EtcdStart::Existing) | FormationStep::Continue { .. } => {
                return self.continue_member(member, half);
            }
            FormationStep::Start(start) => panic!("{start:?}"),
            FormationStep::Join { marker, joins } => {
                return self.join(member, marker, &joins.initial_cluster, half);
            }
            FormationStep::Withdraw(_) | FormationStep::Refuse(_) => return self.stop(member),
            FormationStep::Stop { marker, .. } => return self.stop_for_good(member, marker, half),
            FormationStep::Restore(next) => return self.restore(member, next.token, half),
            FormationStep::UseRestored {
                marker, restored, ..
            } => {
                return self.use_restored(member, marker, restored, half);
            }
            FormationStep::Wait(_) | FormationStep::Ask(_) => return,
            FormationStep::Upgrade { .. } => panic!("no version is known"),
            FormationStep::Format if half => VolumeContent::Unrecognized,
            FormationStep::Format => VolumeContent::FileSystem(FileSystemContent::Nothing),
            _ if half => return,
            FormationStep::SetAside { marker } => {
                if let VolumeContent::FileSystem(FileSystemContent::Marked {
                    log: EtcdLog::Of(log),
                    ..
                }) = content
                {
                    self.aside.insert(log.member_id.clone());
                }
                self.running.remove(member);
                self.shown.remove(member);
                marked_content(marker, EtcdLog::Missing)
            }
            FormationStep::Mark { marker, new } => match content {
                VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) if !new => {
                    marked_content(marker, log.clone())
                }
                _ => marked_content(marker, EtcdLog::Missing),
            },
        };
        self.volumes.get_mut(member).unwrap().1 = next;
    }

    /// Stops a member for a recovery. `half`: its instance dies before the record is written.
    fn stop_for_good(&mut self, member: &str, marker: Option<Marker>, half: bool) {
        self.stop(member);
        if let (Some(new), VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. })) =
            (marker, &mut self.volumes.get_mut(member).unwrap().1)
        {
            *marker = new;
        }
        if !half {
            let last = self.last_entry(member);
            self.record = mark_stopped(&self.record, member, Some(last));
        }
    }

    /// Checks that no copy that is still there has an acknowledged write which the source lacks, unless the operator gave it up.
    fn expect_nothing_lost(&self, source: &str) {
        let Some(recovering) = &self.record.next else {
            panic!("it recovers");
        };
        let kept = self.last_entry(source);
        for member in self.record.members.keys() {
            let holds = self.last_entry(member) >= self.acknowledged;
            assert!(
                recovering.is_forced() || !holds || kept >= self.acknowledged,
                "{member} has {:?}, {source} only {kept:?}",
                self.acknowledged
            );
        }
    }

    /// Restores the member's data. `half`: its instance dies before the record is written.
    fn restore(&mut self, member: &str, token: String, half: bool) {
        self.stop(member);
        assert!(self.running.is_empty(), "two clusters: {:?}", self.running);
        let last = self.last_entry(member);
        if find_newer("main", &self.record, Some(last)).is_some() {
            return;
        }
        self.expect_nothing_lost(member);
        let fresh = LogIdentity {
            cluster_id: format!("cluster-of-{token}"),
            member_id: self.new_name("id-restored"),
        };
        let restored = self.restored.entry(token).or_insert(fresh);
        if !half {
            self.record = end_recovery(&self.record, restored).unwrap();
        }
    }

    /// Puts the restored log in place. `half`: the instance dies before, or after that and before the marker is written.
    fn use_restored(&mut self, member: &str, marker: Marker, restored: LogIdentity, half: bool) {
        self.stop(member);
        assert_eq!(self.restored[&marker.token], restored);
        self.count += 1;
        let (_, content) = self.volumes.get_mut(member).unwrap();
        let VolumeContent::FileSystem(FileSystemContent::Marked { marker: old, log }) = content
        else {
            panic!("{content:?}");
        };
        if *log != EtcdLog::Of(restored.clone()) {
            *log = EtcdLog::Missing;
            if half && self.count.is_multiple_of(2) {
                return;
            }
            *log = EtcdLog::Of(restored.clone());
            self.lives.insert(restored.member_id.clone(), 1);
            self.cluster = restored.cluster_id;
            self.live = vec![LiveMember {
                id: restored.member_id,
                name: String::new(),
                peer_urls: vec![peer_url(member)],
                learner: false,
            }];
        }
        if !half {
            *old = marker;
        }
    }

    /// Changes the list as etcd does. `half`: the instance dies before it records the new id.
    fn change_members(&mut self, member: &str, change: MemberChange, half: bool) {
        assert!(self.has_quorum(), "{change:?}");
        match change {
            MemberChange::MoveLeader { from, to } => {
                let leader = self
                    .live
                    .iter()
                    .find(|one| Some(&one.id) == self.leader.as_ref());
                assert!(leader.unwrap().peer_urls.contains(&peer_url(&from)));
                let target = self.live.iter().find(|one| one.id == to).unwrap();
                assert!(!target.learner && self.is_running(&to));
                self.leader = Some(to);
            }
            MemberChange::Remove { id, member: of } => {
                if of != member {
                    assert_ne!(self.leader.as_ref(), Some(&id), "it still leads");
                    assert!(self.record.leaving[&of].begun, "it might be withdrawn");
                }
                let voters = self.live.iter().filter(|one| !one.learner && one.id != id);
                let up = voters
                    .clone()
                    .filter(|one| self.is_running(&one.id))
                    .count();
                // etcd: "not enough started members".
                if up > voters.count() / 2 {
                    self.live.retain(|one| one.id != id);
                    self.running.retain(|_, running| *running != id);
                }
                assert!(self.has_quorum(), "{of} was needed");
            }
            MemberChange::EndJoin { id, peer_url } => {
                let own = self.live.iter().find(|one| one.id == id).unwrap();
                assert!(!own.learner, "older releases of etcd would forget that");
                if !half {
                    let mut of = self.live.iter_mut();
                    of.find(|one| one.id == id).unwrap().peer_urls = vec![peer_url];
                }
            }
            MemberChange::AddLearner { peer_urls } => {
                let mut others = self.live.iter().flat_map(|one| &one.peer_urls);
                assert!(others.all(|url| !peer_urls.contains(url)));
                // etcd: "too many learner members in cluster", "unhealthy cluster".
                let refuses = |one: &LiveMember| one.learner || !self.is_running(&one.id);
                if self.live.iter().any(refuses) {
                    return;
                }
                let id = self.new_name(&format!("id-{member}"));
                self.live.push(LiveMember {
                    id: id.clone(),
                    name: String::new(),
                    peer_urls,
                    learner: true,
                });
                if !half {
                    self.record.members.get_mut(member).unwrap().member_id = Some(id);
                }
            }
            MemberChange::Promote { id } => {
                self.continue_member(member, half);
                if self.is_running(&id) {
                    let mut of = self.live.iter_mut();
                    of.find(|one| one.id == id).unwrap().learner = false;
                }
            }
        }
    }

    /// Starts from the member's own log.
    fn continue_member(&mut self, member: &str, half: bool) {
        let VolumeContent::FileSystem(FileSystemContent::Marked {
            log: EtcdLog::Of(identity),
            ..
        }) = &self.volumes[member].1
        else {
            panic!("started from {:?}", self.volumes[member]);
        };
        let id = identity.member_id.clone();
        // Until somebody has stopped for another one, it serves.
        let next = self.record.next.as_ref();
        assert!(
            self.record.cluster_id() == Some(identity.cluster_id.as_str())
                && next.is_none_or(NextGeneration::has_stopped_nobody),
            "{identity:?} of a cluster that was given up runs"
        );
        // etcd ends if its id was removed.
        if let Some(own) = self.live.iter_mut().find(|one| one.id == id)
            && !half
        {
            own.name = format!("etcd-{member}");
            self.running.insert(member.to_owned(), id);
            self.shown.insert(member.to_owned());
        }
    }

    /// Begins a log as etcd does. `half`: the instance dies before etcd begins it, or before it publishes its name.
    fn join(&mut self, member: &str, marker: Marker, initial_cluster: &str, half: bool) {
        self.count += 1;
        let (_, content) = self.volumes.get_mut(member).unwrap();
        *content = marked_content(marker.clone(), EtcdLog::Missing);
        if half && self.count.is_multiple_of(2) {
            return;
        }
        let entry = |url: &String| {
            let host = url.trim_start_matches("https://").to_lowercase();
            format!("{}={url}", host.split('.').next().unwrap())
        };
        let urls = self.live.iter().flat_map(|one| &one.peer_urls);
        let mut live: Vec<String> = urls.map(entry).collect();
        live.sort();
        assert_eq!(initial_cluster, live.join(","), "etcd refuses another list");
        let url = peer_url(member);
        let own = self.live.iter().find(|one| one.peer_urls.contains(&url));
        let id = own.expect("it was added").id.clone();
        *self.lives.entry(id.clone()).or_default() += 1;
        *content = marked_content(marker, log_of(&self.cluster, &id));
        self.continue_member(member, half);
    }

    /// True if every member of the spec runs and votes, nobody else is in the list, and kubelet sees no other.
    fn is_settled(&self) -> bool {
        let votes = |member: &String| {
            self.live.iter().any(|one| {
                !one.learner
                    && one.peer_urls.contains(&peer_url(member))
                    && self.running.get(member) == Some(&one.id)
            })
        };
        self.record.replacing.is_none()
            && self.record.is_formed()
            && self.record.pending_removals().next().is_none()
            && self.record.members.keys().eq(&self.wanted)
            && self.live.len() == self.wanted.len()
            && self.live.iter().all(|one| one.peer_urls.len() == 1)
            && self.wanted.iter().all(votes)
            && self.shown.iter().all(|one| self.wanted.contains(one))
    }

    /// A recovery was asked for without force, and the cluster has its quorum again.
    fn waits_for_call_off(&self) -> bool {
        let next = self.record.next.as_ref();
        next.is_some_and(|next| !next.is_forced() && !next.ready) && self.has_quorum()
    }

    fn run_until_settled(&mut self) {
        for _ in 0..80 {
            if self.is_settled() || self.waits_for_call_off() {
                return;
            }
            for member in self.members.clone() {
                self.take_turn(&member, false);
            }
        }
        panic!(
            "{:?} {:?} {:?} {:?}",
            self.record, self.volumes, self.running, self.live
        );
    }

    fn expect_one_life_per_id(&self) {
        assert!(
            self.lives.values().all(|lives| *lives == 1),
            "{:?}",
            self.lives
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(2000))]

    /// Whatever is lost, as often as one likes, also while the loss before is being mended, and of two members of five: each gets a new
    /// life.
    #[test]
    fn a_member_that_lost_its_data_is_replaced_whatever_dies_and_whenever(
        five in proptest::bool::ANY,
        rounds in proptest::collection::vec((0_usize..5, 0_usize..4, proptest::collection::vec((0_usize..5, 0_usize..4), 0..30)), 1..4),
    ) {
        let count = if five { 5 } else { 3 };
        let mut world = World::new(count, count);
        for (who, loss, turns) in rounds {
            let unlucky = NAMES[who % count];
            world.suffer(unlucky, LOSSES[loss]);
            for (turn, how) in turns {
                // The others keep their quorum.
                let other = NAMES[(who + 1) % count];
                match how {
                    3 => world.suffer(unlucky, LOSSES[turn % LOSSES.len()]),
                    2 if five && turn == 0 => world.suffer(other, LOSSES[who % LOSSES.len()]),
                    _ => {}
                }
                world.take_turn(NAMES[turn % count], how == 0);
                world.expect_one_life_per_id();
            }
            world.run_until_settled();
            world.expect_one_life_per_id();
        }
    }

    /// Without a quorum nothing begins that could not be undone, and no id lives twice.
    #[test]
    fn whatever_is_lost_no_id_lives_twice_and_nothing_changes_without_a_quorum(
        turns in proptest::collection::vec((0_usize..3, 0_usize..7), 0..60),
    ) {
        let mut world = World::new(3, 3);
        for (who, what) in turns {
            match LOSSES.get(what) {
                Some(loss) => world.suffer(NAMES[who], *loss),
                None => {
                    let before = (world.has_quorum(), world.live.clone());
                    world.take_turn(NAMES[who], what == LOSSES.len());
                    let started = |live: &[LiveMember]| -> Vec<(String, bool)> {
                        live.iter().map(|one| (one.id.clone(), one.learner)).collect()
                    };
                    assert!(before.0 || started(&before.1) == started(&world.live));
                }
            }
            world.expect_one_life_per_id();
        }
    }

    #[test]
    fn a_cluster_grows_by_one_member_at_a_time(
        five in proptest::bool::ANY,
        turns in proptest::collection::vec((0_usize..5, proptest::bool::ANY), 0..60),
    ) {
        let (formed, all) = if five { (3, 5) } else { (1, 3) };
        let mut world = World::new(formed, all);
        for (who, half) in turns {
            world.take_turn(NAMES[who % all], half);
            assert!(world.live.iter().filter(|one| one.learner).count() <= 1);
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
    }

    /// An added member and a lost one need each other's turn: etcd adds none while a voter is away.
    #[test]
    fn a_loss_during_an_addition_is_mended_and_the_addition_goes_on(
        turns in proptest::collection::vec((0_usize..5, proptest::bool::ANY), 0..40),
        loss in 0_usize..5,
        more in proptest::collection::vec((0_usize..5, proptest::bool::ANY), 0..40),
    ) {
        let mut world = World::new(3, 5);
        for (who, half) in turns {
            world.take_turn(NAMES[who], half);
        }
        world.suffer("b", LOSSES[loss]);
        for (who, half) in more {
            world.take_turn(NAMES[who], half);
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
    }

    /// Two of three members are lost, or only their instances, in any order of dying and coming back.
    #[test]
    fn a_cluster_without_a_quorum_begins_anew_with_the_data_of_one_member(
        lost in (0_usize..5, 0_usize..5),
        before in proptest::collection::vec((0_usize..3, proptest::bool::ANY), 0..10),
        turns in proptest::collection::vec((0_usize..3, 0_usize..8), 0..60),
        other in proptest::option::of(0_usize..60),
    ) {
        let mut world = World::new(3, 3);
        world.suffer("b", LOSSES[lost.0]);
        world.suffer("c", LOSSES[lost.1]);
        for (who, half) in before {
            world.take_turn(NAMES[who], half);
        }
        world.record = begin_recovery(&world.record, "a", "t2", RecoveryTerms::default()).unwrap();
        for (turn, (who, what)) in turns.into_iter().enumerate() {
            // The operator chooses the other member that has its data, until the first one is restored.
            let has_data = LOSSES[lost.1] == Loss::Instance;
            let is_recovering = world.record.next.is_some();
            if has_data
                && is_recovering
                && other == Some(turn)
                && let Ok(record) = begin_recovery(&world.record, "c", "t3", RecoveryTerms::default())
            {
                world.record = record;
            }
            let unlucky = if what == 7 { "b" } else { "c" };
            match what {
                // Later it would be another loss of the quorum.
                6 | 7 if world.cluster == CLUSTER && other.is_none() => {
                    world.suffer(unlucky, LOSSES[who]);
                }
                _ => world.take_turn(NAMES[who], what == 0),
            }
            world.expect_one_life_per_id();
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
        if world.waits_for_call_off() {
            // Nobody has stopped, and the cluster goes on as it is.
            world.record = call_off_restore(&world.record, "its quorum is back").unwrap();
            world.run_until_settled();
            world.expect_one_life_per_id();
            assert_eq!(world.cluster, CLUSTER);
            return Ok(());
        }
        assert!(["cluster-of-t2", "cluster-of-t3"].contains(&world.cluster.as_str()));
        let given_up = world.record.retired.iter().filter(|(_, retired)| retired.given_up);
        let given_up: Vec<&String> = given_up.map(|(cluster, _)| cluster).collect();
        assert_eq!(given_up, [CLUSTER]);
    }
    /// Members write before the recovery and also after kctl has looked, volumes are lost or attached to nothing, and the operator chose
    /// any member: the new cluster has every acknowledged write that a copy still holds. The member that holds the most can be chosen
    /// afterwards, without force.
    #[test]
    fn no_acknowledged_write_that_a_copy_holds_is_lost_without_force(
        five in proptest::bool::ANY,
        before in proptest::collection::vec((0_usize..5, 0_usize..8), 0..20),
        from in 0_usize..5,
        after in proptest::collection::vec((0_usize..5, 0_usize..12), 0..60),
        force in proptest::bool::ANY,
    ) {
        let count = if five { 5 } else { 3 };
        let terms = RecoveryTerms { revision: None, force };
        let mut world = World::new(count, count);
        let act = |world: &mut World, who: usize, what: usize| {
            let member = NAMES[who % count];
            let is_old = world.cluster == CLUSTER;
            match what {
                0 if is_old => world.suffer(member, LOSSES[who]),
                1 if is_old => {
                    world.stop(member);
                    world.free.insert(member.to_owned());
                }
                2 => drop(world.free.remove(member)),
                3 if is_old => world.write_alone(member),
                4 | 5 if is_old => world.write(member),
                _ => world.take_turn(member, what == 6),
            }
        };
        for (who, what) in before {
            act(&mut world, who, what);
        }
        if let Ok(record) = begin_recovery(&world.record, NAMES[from % count], "t2", terms) {
            world.record = record;
        } else {
            return Ok(());
        }
        for (who, what) in after {
            act(&mut world, who, what);
        }
        if world.record.next.is_none() {
            return Ok(());
        }
        world.free.clear();
        let replaced = world.record.replacing.as_ref().map(|of| of.member.clone());
        let all = world.record.members.keys();
        let usable = all.filter(|member| Some(*member) != replaced.as_ref());
        let best = usable.max_by_key(|member| world.last_entry(member)).unwrap().clone();
        if world.last_entry(&best) < world.acknowledged {
            return Ok(());
        }
        // What was known of a log that is lost by now is given up by force only, and so is what only a member that is being
        // replaced holds.
        let Some(recovering) = &world.record.next else {
            panic!("it recovers");
        };
        let held = replaced.map(|member| world.last_entry(&member));
        let mut known = recovering.stopped.values().flatten().copied().chain(held);
        let terms = RecoveryTerms {
            revision: None,
            force: known.any(|known| known > world.last_entry(&best)),
        };
        if let Ok(record) = begin_recovery(&world.record, &best, "t3", terms) {
            world.record = record;
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(500))]

    /// From five to three, or to one, with losses of members that stay and of members that leave. The instances of those that left go
    /// on, with the spec that they were launched with. Afterwards the spec has all again.
    #[test]
    fn members_leave_one_at_a_time_whatever_dies_and_may_come_back_on_the_volumes_that_they_had(
        one in proptest::bool::ANY,
        keeps in 0_usize..5,
        turns in proptest::collection::vec((0_usize..5, 0_usize..8, 0_usize..4), 0..80),
        back in proptest::collection::vec((0_usize..5, proptest::bool::ANY), 0..40),
        older in proptest::option::of(proptest::prelude::any::<proptest::sample::Index>()),
    ) {
        let mut world = World::new(5, 5);
        let first = world.record.clone();
        let stays: Vec<&str> = (0..if one { 1 } else { 3 }).map(|place| NAMES[(keeps + place) % 5]).collect();
        world.update(&stays);
        let mut lost = 0;
        for (who, what, loss) in turns {
            // Two of five may be away at first, and nobody of the last one.
            let voters = world.live.iter().filter(|one| !one.learner);
            let up = voters.clone().filter(|one| world.is_running(&one.id)).count();
            match what {
                6 if up > voters.count() / 2 + 1 && lost < 3 => {
                    lost += 1;
                    // The record of before names the volume of before, which an operator would have to restore too.
                    let loss = if older.is_some() && LOSSES[loss] == Loss::Volume { Loss::Content } else { LOSSES[loss] };
                    world.suffer(NAMES[who], loss);
                }
                _ => world.take_turn(NAMES[who], what == 0),
            }
            world.expect_one_life_per_id();
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
        // An older version of the record is restored, in which they still belong to it.
        if let Some(older) = older {
            world.write_record(older.get(&world.versions.clone()).clone());
            world.update(&stays);
            world.run_until_settled();
        }
        let gone: Vec<String> = first.members.iter()
            .filter(|(member, _)| !stays.contains(&member.as_str()))
            .filter(|(member, _)| matches!(&world.volumes[*member].1,
                VolumeContent::FileSystem(FileSystemContent::Marked { log: EtcdLog::Of(_), .. })))
            .map(|(member, _)| member.clone()).collect();
        let old: Vec<String> = gone.iter().map(|member| match &world.volumes[member].1 {
            VolumeContent::FileSystem(FileSystemContent::Marked { log: EtcdLog::Of(log), .. }) => log.member_id.clone(),
            other => panic!("{other:?}"),
        }).collect();
        world.update(&NAMES);
        for (who, half) in back {
            world.take_turn(NAMES[who], half);
            world.expect_one_life_per_id();
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
        for id in old {
            assert!(world.aside.contains(&id), "{id}: {:?}", world.aside);
            assert!(!world.live.iter().any(|one| one.id == id));
        }
    }

    /// An operator changes their mind: what has not begun is withdrawn, and what has begun ends before the member comes back.
    #[test]
    fn a_spec_that_changes_at_any_time_is_what_remains(
        updates in proptest::collection::vec((1_usize..=3, proptest::collection::vec((0_usize..5, proptest::bool::ANY), 0..20)), 1..6),
    ) {
        let mut world = World::new(3, 5);
        world.update(&["a", "b", "c"]);
        for (size, turns) in updates {
            let specs: [&[&str]; 4] = [&["a"], &["a"], &["a", "b", "c"], &["a", "b", "c", "d", "e"]];
            world.update(specs[size]);
            for (who, half) in turns {
                world.take_turn(NAMES[who], half);
                world.expect_one_life_per_id();
            }
        }
        for _ in 0..80 {
            let wanted: Vec<String> = world.wanted.iter().cloned().collect();
            world.update(&wanted.iter().map(String::as_str).collect::<Vec<_>>());
            for member in NAMES {
                world.take_turn(member, false);
            }
        }
        world.run_until_settled();
        world.expect_one_life_per_id();
    }
}
