//! Laws of the upkeep: whatever the sizes, one member at a time is defragmented, the leader last and never while it leads others, only
//! while all members are well; and it ends.

use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A cluster of which each member is asked for its step, as its instance would be.
#[derive(Clone, Debug)]
struct Cluster {
    members: Vec<RunningMember>,
    /// The member that is being defragmented, which answers nothing, and the rounds that are left.
    busy: Option<(usize, u32)>,
    /// Rounds since the last defragmentation of each member.
    since: Vec<Option<u32>>,
    /// The member that does not answer anyway.
    down: Option<usize>,
    /// Data that was deleted and not compacted yet, bytes.
    uncompacted: u64,
    defragmented: Vec<usize>,
}

/// A round, in minutes.
const ROUND: u32 = 10;

fn id(index: usize) -> String {
    format!("{index:x}")
}

fn member(index: usize, of: usize, size: u64, used: u64, quota: u64) -> RunningMember {
    let listed = |index: usize| ListedMember {
        id: id(index),
        name: format!("etcd-{index}"),
        learner: false,
    };
    RunningMember {
        name: format!("etcd-{index}"),
        id: id(index),
        cluster_id: "c".to_owned(),
        leader: Some(id(0)),
        revision: 100,
        database_bytes: size,
        database_used_bytes: used,
        quota_bytes: Some(quota),
        members: (0..of).map(listed).collect(),
        ..RunningMember::default()
    }
}

impl Cluster {
    fn answers(&self, index: usize) -> Result<RunningMember, String> {
        let busy = self.busy.is_some_and(|(busy, _)| busy == index);
        match busy || self.down == Some(index) {
            true => Err("timeout".to_owned()),
            false => Ok(self.members[index].clone()),
        }
    }

    fn others(&self, own: usize) -> Vec<OtherMember> {
        let others = (0..self.members.len()).filter(|other| *other != own);
        let other = |index: usize| OtherMember {
            listed: self.members[own].members[index].clone(),
            says: self.answers(index),
        };
        others.map(other).collect()
    }

    fn decide(&self, own: usize, change: Option<&str>) -> UpkeepStep {
        let rounds = self.since[own];
        decide_upkeep(&UpkeepView {
            own: &self.members[own],
            free_bytes: None,
            since_defragmented: rounds.map(|rounds| Duration::from_mins(u64::from(rounds * ROUND))),
            compactable: (self.uncompacted > 0).then_some(100),
            others: &self.others(own),
            change,
        })
    }

    fn leader(&self) -> usize {
        let leader = self.members[0].leader.clone();
        let found = self
            .members
            .iter()
            .position(|one| Some(&one.id) == leader.as_ref());
        found.unwrap()
    }

    /// The instance of a member takes its step.
    fn act(&mut self, own: usize) -> UpkeepStep {
        let step = match self.answers(own) {
            Ok(_) => self.decide(own, None),
            Err(_) => UpkeepStep::Rest,
        };
        match &step {
            UpkeepStep::Rest | UpkeepStep::Wait(_) => {}
            UpkeepStep::Compact(_) => {
                assert_eq!(own, self.leader());
                for one in &mut self.members {
                    one.database_used_bytes -= self.uncompacted.min(one.database_used_bytes);
                }
                self.uncompacted = 0;
            }
            UpkeepStep::Defragment => {
                assert_eq!(self.busy, None, "two at once");
                assert_eq!(self.down, None, "without all voters");
                assert!(
                    self.members.len() == 1 || own != self.leader(),
                    "the leader"
                );
                self.busy = Some((own, 2));
                self.defragmented.push(own);
            }
            UpkeepStep::MoveLeader(to) => {
                assert_eq!((self.busy, self.down), (None, None));
                assert_eq!(own, self.leader());
                let wasteful = |one: &RunningMember| is_wasteful(one) && one.id != id(own);
                assert!(!self.members.iter().any(wasteful), "the leader is the last");
                for one in &mut self.members {
                    one.leader = Some(to.id.clone());
                }
            }
            UpkeepStep::Disarm => {
                assert_eq!(own, self.leader());
                let mut answering =
                    (0..self.members.len()).filter_map(|one| self.answers(one).ok());
                assert!(answering.all(|one| is_below(&one, FULL)));
                self.members.iter_mut().for_each(|one| one.alarms.clear());
            }
        }
        step
    }

    fn pass_round(&mut self) {
        for rounds in self.since.iter_mut().flatten() {
            *rounds += 1;
        }
        self.busy = match self.busy.take() {
            Some((own, 0)) => {
                let one = &mut self.members[own];
                one.database_bytes = one.database_used_bytes;
                self.since[own] = Some(0);
                None
            }
            other => other.map(|(own, rounds)| (own, rounds - 1)),
        };
    }
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let sizes = (
        100..2500_u64,
        0..=100_u64,
        prop_oneof![Just(64), Just(2048), Just(8192)],
    );
    let members = prop::collection::vec(sizes, 1..=5);
    (
        members,
        any::<bool>(),
        0..500_u64,
        prop::option::weighted(0.2, 0..5_usize),
    )
        .prop_map(|(sizes, no_space, uncompacted, down)| {
            let of = sizes.len();
            let quota = sizes[0].2 * MIB;
            let build = |(index, (size, percent, _)): (usize, &(u64, u64, u64))| {
                let size = (size * MIB).min(quota);
                let alarms = if no_space {
                    vec![NO_SPACE.to_owned()]
                } else {
                    vec![]
                };
                RunningMember {
                    alarms,
                    ..member(index, of, size, size / 100 * percent, quota)
                }
            };
            Cluster {
                members: sizes.iter().enumerate().map(build).collect(),
                busy: None,
                since: vec![None; of],
                down: down.filter(|down| *down < of),
                uncompacted: if no_space { uncompacted * MIB } else { 0 },
                defragmented: Vec::new(),
            }
        })
}

proptest! {
    #[test]
    fn one_at_a_time_the_leader_last_while_all_are_well_and_it_ends(
        mut cluster in cluster(),
        order in prop::collection::vec(0..5_usize, 200),
    ) {
        let of = cluster.members.len();
        for own in order {
            cluster.act(own % of);
            cluster.pass_round();
        }
        // Now each instance in turn, and nothing is left to do.
        for own in (0..of).cycle().take(of * 12) {
            cluster.act(own);
            cluster.pass_round();
        }
        // Each once, and once more after the compaction.
        prop_assert!(cluster.defragmented.len() <= of * 2, "{:?}", cluster.defragmented);
        for own in (0..of).filter(|own| cluster.answers(*own).is_ok()) {
            let step = cluster.decide(own, None);
            let ended = matches!(step, UpkeepStep::Rest | UpkeepStep::Wait(_));
            prop_assert!(ended, "{step:?}");
            if cluster.down.is_none() {
                prop_assert!(!is_wasteful(&cluster.members[own]));
            }
        }
        // An alarm stays only if the data needs the space, or nothing may be done; the leader's instance says so.
        let mut answering = (0..of).filter_map(|one| cluster.answers(one).ok());
        let leads = cluster.answers(cluster.leader()).is_ok();
        if has_alarm(&cluster.members[0], NO_SPACE) && leads {
            prop_assert!(!answering.all(|one| is_below(&one, FULL)));
        }
        if has_alarm(&cluster.members[0], NO_SPACE) && cluster.down.is_none() {
            let step = cluster.decide(cluster.leader(), None);
            prop_assert!(matches!(&step, UpkeepStep::Wait(why) if why.contains("delete objects")), "{step:?}");
        }
    }

    #[test]
    fn nothing_happens_while_data_differ_or_a_member_is_away_or_being_changed(
        cluster in cluster(),
        ill in 0..5_usize,
        how in 0..6_u8,
    ) {
        let of = cluster.members.len();
        let mut cluster = Cluster { down: None, ..cluster };
        let ill = ill % of;
        let mut change = None;
        match how {
            0 => cluster.members[ill].alarms.push(CORRUPT.to_owned()),
            1 => cluster.down = Some(ill),
            2 => change = Some("member b is being replaced"),
            3 => cluster.members[ill].learner = true,
            4 => cluster.members[ill].revision += MOST_BEHIND + 1,
            _ => cluster.members[ill].leader = None,
        }
        for own in (0..of).filter(|own| cluster.answers(*own).is_ok()) {
            let step = cluster.decide(own, change);
            // A healthy rest of the cluster, as the ill member sees it, is not enough; a lone member is never behind itself.
            let alone = of == 1 && how == 4;
            prop_assert!(!step.is_exclusive() || alone, "{step:?}");
            if how == 0 {
                prop_assert_eq!(step, UpkeepStep::Rest);
            }
        }
    }
}

#[test]
fn a_database_is_defragmented_for_much_unused_space_or_near_its_quota() {
    let gib = 1024;
    for (size, used, alarm, wasteful) in [
        (300, 100, false, true),
        (300, 160, false, false),
        (150, 60, false, false),
        (7 * gib, 4 * gib, false, true),
        (7 * gib, 5 * gib, false, false),
        (7 * gib, 5 * gib, true, true),
        (8 * gib, 6 * gib - 100, true, true),
        (8 * gib, 6 * gib, true, false),
        (8 * gib, 6451, true, false),
        (6 * gib, 4 * gib, false, false),
    ] {
        let mut one = member(0, 1, size * MIB, used * MIB, 8 * gib * MIB);
        one.alarms.extend(alarm.then(|| NO_SPACE.to_owned()));
        assert_eq!(is_wasteful(&one), wasteful, "{size} {used} {alarm}");
        one.quota_bytes = None;
        let unused = size - used;
        assert_eq!(is_wasteful(&one), unused > 100 && unused > size / 2);
    }
}

/// It was defragmented just after the first objects were deleted: what was deleted since ends the alarm without a wait.
#[test]
fn a_full_database_is_defragmented_again_once_it_is_half_empty() {
    for (used, alarm, minutes, due) in [
        (10, true, 0, true),
        (40, true, 4, false),
        (40, true, 5, true),
        (10, false, 59, false),
        (10, false, 60, true),
    ] {
        let mut one = member(0, 3, 52 * MIB, used * MIB, 64 * MIB);
        one.alarms.extend(alarm.then(|| NO_SPACE.to_owned()));
        let since = Some(Duration::from_mins(minutes));
        assert_eq!(is_due(&one, since), due, "{used} {alarm} {minutes}");
    }
}

#[test]
fn a_volume_without_room_for_the_copy_is_told_only_near_the_quota() {
    let mut one = member(0, 1, 1900 * MIB, 300 * MIB, 2048 * MIB);
    let decide = |own: &RunningMember, free: u64| {
        decide_upkeep(&UpkeepView {
            own,
            free_bytes: Some(free * MIB),
            since_defragmented: None,
            compactable: None,
            others: &[],
            change: None,
        })
    };
    assert_eq!(decide(&one, 364), UpkeepStep::Defragment);
    let UpkeepStep::Wait(why) = decide(&one, 363) else {
        panic!("{:?}", decide(&one, 363));
    };
    assert!(
        why.contains("364 MiB") && why.contains("volumeSize"),
        "{why}"
    );
    one.database_bytes = 1000 * MIB;
    assert_eq!(decide(&one, 363), UpkeepStep::Rest);
}
