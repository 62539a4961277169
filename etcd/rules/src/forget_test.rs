//! Laws of what an operator may have forgotten, by simulating a cluster that is founded, members whose machines never come, and clusters
//! that are founded anew, with instances that die at any time.

use super::laws_test::own_member;
use super::*;
use node::components::EtcdStart;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn marked_content(marker: Marker, log: EtcdLog) -> VolumeContent {
    VolumeContent::FileSystem(FileSystemContent::Marked { marker, log })
}

/// Machines with their volumes, and the etcd that runs on them.
struct World {
    record: FormationRecord,
    content: BTreeMap<String, VolumeContent>,
    /// The cluster of each etcd that runs.
    running: BTreeMap<String, String>,
    /// With which founders each token was started.
    founders: BTreeMap<String, BTreeSet<Vec<String>>>,
    /// Ids of all logs that began, and of those that were moved aside.
    begun: BTreeSet<String>,
    aside: BTreeSet<String>,
    tokens: usize,
}

impl World {
    /// The record is written, and nobody has begun.
    fn new() -> Self {
        let member = |name: &str| {
            let volume = format!("vol-{name}");
            (name.to_owned(), RecordedMember::on_volume(&volume, false))
        };
        Self {
            record: FormationRecord::new(Generation::forming("t0"), NAMES.map(member).into()),
            content: NAMES
                .map(|name| (name.to_owned(), VolumeContent::Blank))
                .into(),
            running: BTreeMap::new(),
            founders: BTreeMap::new(),
            begun: BTreeSet::new(),
            aside: BTreeSet::new(),
            tokens: 0,
        }
    }

    /// One look and one step of a member's instance. `half`: it dies in the middle.
    fn take_turn(&mut self, member: &str, half: bool) {
        let (all, volume) = (NAMES.map(str::to_owned), format!("vol-{member}"));
        let content = self.content[member].clone();
        let own = OwnMember {
            etcd: "events",
            member,
            volume: &volume,
            live: Err("nobody answers"),
            shown: self.running.contains_key(member),
            ..own_member(&all, &[])
        };
        let next = match decide_step(&own, Some(&self.record), &content) {
            FormationStep::Record(record) => {
                if !half {
                    self.record = record;
                }
                return;
            }
            FormationStep::Start(start) => return self.start(member, &start, half),
            FormationStep::Refuse(_) | FormationStep::Withdraw(_) => {
                drop(self.running.remove(member));
                return;
            }
            FormationStep::Wait(_) | FormationStep::Continue { .. } => return,
            FormationStep::Format if half => VolumeContent::Unrecognized,
            FormationStep::Format => VolumeContent::FileSystem(FileSystemContent::Nothing),
            FormationStep::SetAside { marker } => self.set_aside(member, marker, half),
            FormationStep::Mark { marker, new } => match &content {
                _ if half => return,
                VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) if !new => {
                    marked_content(marker, log.clone())
                }
                _ => marked_content(marker, EtcdLog::Missing),
            },
            step => panic!("{step:?}"),
        };
        self.content.insert(member.to_owned(), next);
    }

    /// Stops etcd and moves its data. `half`: the instance dies before it writes the marker.
    fn set_aside(&mut self, member: &str, marker: Marker, half: bool) -> VolumeContent {
        self.running.remove(member);
        let VolumeContent::FileSystem(FileSystemContent::Marked { marker: old, log }) =
            &self.content[member]
        else {
            panic!("{:?}", self.content[member]);
        };
        if let EtcdLog::Of(log) = log {
            self.aside.insert(log.member_id.clone());
        }
        marked_content(if half { old.clone() } else { marker }, EtcdLog::Missing)
    }

    /// Starts like etcd, and records the cluster as formed once all founders run.
    fn start(&mut self, member: &str, start: &EtcdStart, half: bool) {
        let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) =
            self.content[member].clone()
        else {
            panic!("{:?}", self.content[member]);
        };
        let cluster_id = match (start, &log) {
            (EtcdStart::New { token, members }, EtcdLog::Missing) => {
                let founders = self.founders.entry(token.clone()).or_default();
                founders.insert(members.clone());
                assert!(members.iter().any(|one| one == member));
                format!("{token}-{}", members.concat())
            }
            (_, EtcdLog::Of(log)) => log.cluster_id.clone(),
            other => panic!("{other:?}"),
        };
        if log == EtcdLog::Missing {
            let member_id = format!("{cluster_id}-{member}");
            assert!(
                self.begun.insert(member_id.clone()),
                "two logs of {member_id}"
            );
            let log = LogIdentity {
                cluster_id: cluster_id.clone(),
                member_id,
            };
            self.content
                .insert(member.to_owned(), marked_content(marker, EtcdLog::Of(log)));
        }
        self.running.insert(member.to_owned(), cluster_id.clone());
        let all = self.record.members.keys();
        if !half
            && all
                .clone()
                .all(|one| self.running.get(one) == Some(&cluster_id))
            && let Some(formed) = mark_formed(&self.record, &cluster_id)
        {
            self.record = formed;
        }
    }

    fn forget(&mut self, member: &str) {
        let holder = self.running.get(member).map(|_| "i-1");
        if let Ok(next) = forget_member(&self.record, member, holder) {
            self.record = next;
        }
    }

    fn found_anew(&mut self) {
        self.tokens += 1;
        if let Ok(next) = found_anew(&self.record, &format!("t{}", self.tokens)) {
            self.record = next;
        }
    }

    fn expect_one_cluster(&self) {
        let clusters: BTreeSet<&String> = self.running.values().collect();
        assert!(clusters.len() <= 1, "{:?}", self.running);
        let once = |founders: &BTreeSet<Vec<String>>| founders.len() == 1;
        assert!(self.founders.values().all(once), "{:?}", self.founders);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(1000))]

    /// Some machines never come. Operators forget members and give the cluster up whenever they like: there is never a second cluster
    /// beside the first, all that found it agree on who does, and those that are there form it in the end.
    #[test]
    fn whoever_is_forgotten_and_whenever_one_cluster_is_founded_by_those_that_are_there(
        present in proptest::sample::subsequence(NAMES.to_vec(), 1..=3),
        turns in proptest::collection::vec((0_usize..3, 0_usize..12), 0..120),
    ) {
        let mut world = World::new();
        for (who, what) in turns {
            match what {
                10 => world.forget(NAMES[who]),
                11 => world.found_anew(),
                9 => drop(world.running.remove(NAMES[who])),
                _ => world.take_turn(present[who % present.len()], what == 0),
            }
            world.expect_one_cluster();
        }
        for name in NAMES.iter().filter(|name| !present.contains(name)) {
            world.forget(name);
        }
        // Only those that nobody had forgotten found it; the others would be added.
        let founders: Vec<String> = world.record.members.keys().cloned().collect();
        if !founders.iter().all(|one| present.contains(&one.as_str())) {
            return Ok(());
        }
        for _ in 0..20 {
            present.iter().for_each(|member| world.take_turn(member, false));
            world.expect_one_cluster();
        }
        assert!(world.record.is_formed(), "{:?} {:?}", world.record, world.content);
        assert!(founders.iter().all(|one| world.running.contains_key(one)), "{:?}", world.running);
        // No data is gone: what does not run is aside.
        let logs = world.content.values().filter_map(|content| match content {
            VolumeContent::FileSystem(FileSystemContent::Marked { log: EtcdLog::Of(log), .. }) => Some(&log.member_id),
            _ => None,
        });
        let kept: BTreeSet<&String> = logs.chain(&world.aside).collect();
        assert_eq!(kept, world.begun.iter().collect());
    }
}

#[test]
fn a_member_whose_volume_was_seen_is_not_forgotten_and_neither_is_the_last() {
    let mut world = World::new();
    world.take_turn("a", false);
    let why = forget_member(&world.record, "a", None).unwrap_err();
    assert!(why.contains("vol-a"), "{why}");
    let why = forget_member(&world.record, "b", Some("i-b")).unwrap_err();
    assert!(why.contains("i-b has vol-b"), "{why}");
    world.record = forget_member(&world.record, "b", None).unwrap();
    world.record = forget_member(&world.record, "c", None).unwrap();
    assert!(
        forget_member(&world.record, "c", None)
            .unwrap_err()
            .contains("no member c")
    );
    let alone = World::new();
    let mut lone = alone.record;
    lone.members.retain(|name, _| name == "a");
    assert!(
        forget_member(&lone, "a", None)
            .unwrap_err()
            .contains("the last one")
    );
    assert!(found_anew(&lone, "t").is_ok(), "it may have begun");
}
