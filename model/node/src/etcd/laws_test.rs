//! Laws of formation: checked over every combination of what a record can say and a volume can hold, and by letting
//! machines die anywhere.

use super::*;
use crate::components::EtcdStart;
use std::collections::{BTreeMap, BTreeSet};

/// No volume.
static NONE: BTreeSet<String> = BTreeSet::new();

const MEMBERS: [&str; 3] = ["a", "b", "c"];

fn members(count: usize) -> Vec<String> {
    MEMBERS
        .iter()
        .take(count)
        .map(ToString::to_string)
        .collect()
}

fn volume(member: &str) -> String {
    format!("vol-{member}")
}

fn seen(count: usize) -> Vec<SeenVolume> {
    let all = members(count).join(",");
    let volume = |member: &String| SeenVolume {
        id: volume(member),
        zone: "z".into(),
        state: "in-use".into(),
        tag: format!("{member}/{all}"),
        holder: None,
    };
    members(count).iter().map(volume).collect()
}

fn marker(volume: &str, token: &str, cluster_id: Option<&str>, member_id: Option<&str>) -> Marker {
    Marker {
        format: FORMAT,
        cluster: "x.example.com".into(),
        etcd: "main".into(),
        member: "a".into(),
        volume: volume.into(),
        token: token.into(),
        cluster_id: cluster_id.map(str::to_owned),
        member_id: member_id.map(str::to_owned),
        unknown: Unknown::new(),
    }
}

fn log_of(cluster_id: &str, member_id: &str) -> Log {
    Log::Of(LogIdentity {
        cluster_id: cluster_id.into(),
        member_id: member_id.into(),
    })
}

fn marked(marker: Marker, log: Log) -> Content {
    Content::FileSystem(Inside::Marked { marker, log })
}

fn record(state: State, count: usize, blank: bool) -> Record {
    let one = |member: String| {
        let volume = volume(&member);
        (member, RecordedMember::on(&volume, blank))
    };
    Record {
        format: FORMAT,
        state,
        members: members(count).into_iter().map(one).collect(),
        unknown: Unknown::new(),
    }
}

/// What records can say.
fn records(count: usize) -> Vec<Option<Record>> {
    let states = [State::forming("t1"), State::formed("c1", "t1")];
    let mut all = vec![None];
    for state in states {
        for blank in [true, false] {
            let whole = record(state.clone(), count, blank);
            let mut other_volume = whole.clone();
            other_volume.members.get_mut("a").unwrap().volume = "vol-lost".into();
            let mut without = whole.clone();
            without.members.remove("a");
            let mut partly = whole.clone();
            partly.members.get_mut("a").unwrap().blank = !blank;
            let mut known = whole.clone();
            known.members.get_mut("a").unwrap().member_id = Some("m1".into());
            all.extend([whole, other_volume, without, partly, known].map(Some));
        }
    }
    all
}

/// What member a's volume can hold.
fn contents() -> Vec<Content> {
    let mut all = vec![
        Content::Blank,
        Content::Unrecognized,
        Content::Other("an xfs file system".into()),
        Content::Damaged("fsck says so".into()),
        Content::FileSystem(Inside::Nothing),
        Content::FileSystem(Inside::Unmarked(vec!["var".into()])),
    ];
    let logs = [
        Log::Missing,
        Log::Unreadable("it is cut off".into()),
        log_of("c1", "m1"),
        log_of("c1", "m2"),
        log_of("c2", "m1"),
    ];
    for on in ["vol-a", "vol-copied"] {
        for token in ["t1", "t2"] {
            for cluster in [None, Some("c1"), Some("c2")] {
                for member in [None, Some("m1")] {
                    let marker = || marker(on, token, cluster, member);
                    all.extend(logs.iter().map(|log| marked(marker(), log.clone())));
                }
            }
        }
    }
    let foreign = Marker {
        cluster: "other.example.com".into(),
        ..marker("vol-a", "t1", Some("c1"), Some("m1"))
    };
    all.push(marked(foreign, log_of("c1", "m1")));
    all
}

fn own<'a>(all: &'a [String], volumes: &'a [SeenVolume]) -> Own<'a> {
    Own {
        cluster: "x.example.com",
        etcd: "main",
        members: all,
        member: "a",
        volume: "vol-a",
        seen: volumes,
        gone: &NONE,
        token: "new",
        trace: None,
    }
}

fn every(mut check: impl FnMut(usize, Option<&Record>, &Content, Step)) {
    for gone in ["", "vol-lost", "vol-copied"] {
        every_known(&[gone.to_owned()].into(), &mut check);
    }
}

/// The same where EC2 says that those volumes are gone.
fn every_known(
    gone: &BTreeSet<String>,
    mut check: impl FnMut(usize, Option<&Record>, &Content, Step),
) {
    for count in [1, 3] {
        let (all, volumes) = (members(count), seen(count));
        let own = Own {
            gone,
            ..own(&all, &volumes)
        };
        for record in records(count) {
            for content in contents() {
                let step = decide(&own, record.as_ref(), &content);
                check(count, record.as_ref(), &content, step);
            }
        }
    }
}

/// The marker and the log of what a member is started from.
fn started(content: &Content) -> (&Marker, &Log) {
    let Content::FileSystem(Inside::Marked { marker, log }) = content else {
        panic!("started from {content:?}");
    };
    (marker, log)
}

fn agrees(known: Option<&String>, found: &str) -> bool {
    known.is_none_or(|known| known == found)
}

#[test]
fn a_member_that_has_run_is_never_started_without_its_log_or_from_anothers() {
    let mut starts = 0;
    every(|_, record, content, step| {
        let Step::Start(start) = &step else {
            return;
        };
        starts += 1;
        let (marker, log) = started(content);
        let record = record.expect("a record");
        let recorded = &record.members["a"];
        match log {
            Log::Missing => {
                assert!(matches!(start, EtcdStart::New { .. }));
                assert_eq!((&marker.member_id, &marker.cluster_id), (&None, &None));
            }
            Log::Unreadable(why) => panic!("started from a log that cannot be read: {why}"),
            Log::Of(identity) => {
                assert_eq!(marker.member_id.as_ref(), Some(&identity.member_id));
                assert!(agrees(marker.cluster_id.as_ref(), &identity.cluster_id));
                assert!(agrees(recorded.member_id.as_ref(), &identity.member_id));
            }
        }
        if let State::Formed { cluster_id, .. } = &record.state {
            assert_eq!(*log, log_of(cluster_id, "m1"), "of the recorded cluster");
            assert!(recorded.member_id.is_some(), "whose ids are recorded");
        }
    });
    assert!(starts > 0);
}

/// Without the record, a machine that starts again resumes nothing that a look would not go on with, or has at least written.
#[test]
fn what_is_resumed_is_the_members_own_log_as_its_marker_tells_of_it() {
    let mut resumed = 0;
    for content in contents() {
        let runs = resumes("x.example.com", "main", "vol-a", &content);
        let Ok(runs) = runs else { continue };
        let (marker, log) = started(&content);
        assert_eq!(
            (marker.cluster.as_str(), marker.volume.as_str()),
            ("x.example.com", "vol-a")
        );
        if !runs {
            assert_eq!((log, &marker.member_id), (&Log::Missing, &None));
            continue;
        }
        resumed += 1;
        let Log::Of(identity) = log else {
            panic!("resumed from {log:?}");
        };
        assert!(agrees(marker.member_id.as_ref(), &identity.member_id));
        assert!(agrees(marker.cluster_id.as_ref(), &identity.cluster_id));
    }
    assert!(resumed > 0);
}

#[test]
fn a_cluster_is_founded_only_under_forming_on_volumes_that_all_were_blank() {
    let mut founded = 0;
    every(|_, record, content, step| {
        let Step::Start(EtcdStart::New { token }) = &step else {
            return;
        };
        founded += 1;
        let record = record.expect("a record");
        assert!(matches!(&record.state, State::Forming { token: of, .. } if of == token));
        assert!(record.members.values().all(|member| member.blank));
        assert_eq!(record.members["a"].volume, "vol-a");
        let Content::FileSystem(Inside::Marked { marker, .. }) = content else {
            panic!("{content:?}");
        };
        assert_eq!((&marker.token, marker.volume.as_str()), (token, "vol-a"));
    });
    assert!(founded > 0);
}

#[test]
fn a_file_system_is_made_only_where_nothing_was_and_the_record_says_so() {
    let mut made = 0;
    every(|_, record, content, step| {
        if step != Step::Format {
            return;
        }
        made += 1;
        let record = record.expect("a record");
        assert!(matches!(record.state, State::Forming { .. }));
        assert!(record.members["a"].blank && record.members["a"].volume == "vol-a");
        assert!(matches!(content, Content::Blank | Content::Unrecognized));
    });
    assert!(made > 0);
}

#[test]
fn a_formed_cluster_stays_the_one_it_is() {
    every(|_, before, content, step| {
        let Some(State::Formed { cluster_id, .. }) = before.map(|record| &record.state) else {
            return;
        };
        match step {
            Step::Format | Step::Start(EtcdStart::New { .. }) | Step::Mark { new: true, .. } => {
                panic!("{before:?} {content:?}")
            }
            Step::Record(after) => assert!(
                matches!(&after.state, State::Formed { cluster_id: id, .. } if id == cluster_id)
            ),
            Step::Start(EtcdStart::Existing) | Step::Mark { .. } => {
                let (marker, log) = started(content);
                assert!(agrees(marker.cluster_id.as_ref(), cluster_id), "{marker:?}");
                assert!(matches!(log, Log::Of(of) if of.cluster_id == *cluster_id));
            }
            Step::Wait(_) | Step::Refuse(_) | Step::Ask(_) => {}
        }
    });
}

#[test]
fn without_a_record_only_what_is_blank_begins_one_and_data_is_never_forgotten() {
    every(|_, before, content, step| {
        let (None, Step::Record(record)) = (before, step) else {
            return;
        };
        match (&record.state, content) {
            (State::Forming { token, .. }, Content::Blank) => {
                assert_eq!(token, "new");
                let blank = record.members.iter().filter(|(_, one)| one.blank);
                let blank: Vec<&str> = blank.map(|(name, _)| name.as_str()).collect();
                assert_eq!(blank, ["a"], "only what was looked at is known to be blank");
            }
            (
                State::Formed { cluster_id, .. },
                Content::FileSystem(Inside::Marked { marker, log }),
            ) => {
                assert_eq!(marker.cluster_id.as_ref(), Some(cluster_id));
                let id = record.members["a"].member_id.clone().unwrap();
                assert_eq!(*log, log_of(cluster_id, &id));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_record_is_made_only_of_all_members_and_where_nothing_says_that_there_was_one() {
    let (mut made, mut blank) = (0, 0);
    for count in [1, 3] {
        let (all, volumes) = (members(count), seen(count));
        let one_less = &volumes[..count - 1];
        let twice = [volumes.clone(), volumes[count - 1..].to_vec()].concat();
        for content in contents() {
            for seen in [one_less, &twice] {
                let step = decide(&own(&all, seen), None, &content);
                assert!(!matches!(step, Step::Record(_)), "{seen:?}: {step:?}");
            }
            let trace = Some("backups/etcd/main/2026");
            let own = Own {
                trace,
                ..own(&all, &volumes)
            };
            match decide(&own, None, &content) {
                Step::Record(record) => {
                    made += 1;
                    assert!(record.is_formed(), "the cluster that its volume tells of");
                    assert_eq!(record.members.len(), count);
                }
                Step::Refuse(why) if content == Content::Blank => {
                    blank += 1;
                    assert!(why.contains("backups/etcd/main/2026"), "{why}");
                }
                step => assert_ne!(content, Content::Blank, "{step:?}"),
            }
        }
    }
    assert!(made > 0 && blank == 2);
}

/// An answer that lacks a volume moves nothing.
#[test]
fn a_record_names_another_volume_only_where_ec2_says_that_the_first_is_gone() {
    let (mut moved, mut adopted) = (0, 0);
    for volume in ["", "vol-lost", "vol-copied"] {
        let gone = BTreeSet::from([volume.to_owned()]);
        every_known(&gone, |count, before, content, step| {
            let Step::Record(after) = step else { return };
            let now = &after.members["a"].volume;
            let first = match before {
                Some(before) => &before.members["a"].volume,
                None if after.is_formed() => &started(content).0.volume,
                None => now,
            };
            if first != now {
                assert!(count == 1 && gone.contains(first), "{first}: {content:?}");
                *(if before.is_some() {
                    &mut moved
                } else {
                    &mut adopted
                }) += 1;
            }
        });
    }
    assert!(moved > 0 && adopted > 0);
}

#[test]
fn among_several_nothing_begins_from_a_copy_whatever_the_record_says() {
    let mut copies = 0;
    every(|count, record, content, step| {
        if let Content::FileSystem(Inside::Marked { marker, .. }) = content
            && count > 1
            && marker.volume != "vol-a"
        {
            copies += 1;
            let left = matches!(step, Step::Refuse(_) | Step::Ask(_));
            assert!(left, "{record:?} {content:?} {step:?}");
        }
    });
    assert!(copies > 0);
}

#[test]
fn a_refusal_says_what_to_look_at() {
    every(|_, _, _, step| {
        if let Step::Refuse(why) | Step::Ask(why) = step {
            assert!(why.contains("vol-") || why.contains("etcd main"), "{why}");
        }
    });
}

#[test]
fn a_copy_of_a_lone_members_volume_is_the_cluster_and_among_others_it_is_not() {
    let gone = BTreeSet::from(["vol-a".to_owned()]);
    for (count, gone, started) in [(1, &gone, true), (1, &NONE, false), (3, &gone, false)] {
        let all = members(count);
        let mut volumes = seen(count);
        volumes[0].id = "vol-new".into();
        let own = Own {
            volume: "vol-new",
            gone,
            ..own(&all, &volumes)
        };
        let record = record(State::formed("c1", "t1"), count, true);
        let marker = marker("vol-a", "t1", Some("c1"), Some("m1"));
        let content = marked(marker.clone(), log_of("c1", "m1"));
        let forgot = decide(&own, Some(&record), &marked(marker, Log::Missing));
        assert!(matches!(forgot, Step::Refuse(_)), "{forgot:?}");
        let step = decide(&own, Some(&record), &content);
        assert_eq!(matches!(step, Step::Record(_)), started, "{step:?}");
        assert_eq!(matches!(step, Step::Refuse(_)), !started, "{step:?}");
    }
}

/// Members whose machines take turns in any order, and may die before a step or in the middle of one.
struct World {
    count: usize,
    record: Option<Record>,
    /// Every version that the record has had.
    versions: Vec<Record>,
    content: BTreeMap<String, Content>,
    running: BTreeMap<String, EtcdStart>,
    /// Tokens under which an empty data folder was started.
    founded: Vec<String>,
    /// How often each member began a log.
    lives: BTreeMap<String, usize>,
    tokens: usize,
}

impl World {
    fn new(count: usize) -> Self {
        Self {
            count,
            record: None,
            versions: Vec::new(),
            content: members(count)
                .into_iter()
                .map(|one| (one, Content::Blank))
                .collect(),
            running: BTreeMap::new(),
            founded: Vec::new(),
            lives: BTreeMap::new(),
            tokens: 0,
        }
    }

    /// One look and one step of a member's machine. `half`: it dies in the middle.
    fn turn(&mut self, member: &str, half: bool) {
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        let (all, volumes) = (members(self.count), seen(self.count));
        let id = volume(member);
        let own = Own {
            member,
            volume: &id,
            token: &token,
            ..own(&all, &volumes)
        };
        let content = self.content[member].clone();
        match decide(&own, self.record.as_ref(), &content) {
            Step::Record(record) if !half => self.write(record),
            Step::Format if half => self.put(member, Content::Unrecognized),
            Step::Format => self.put(member, Content::FileSystem(Inside::Nothing)),
            Step::Mark { marker, new } if !half => {
                let log = match started_or_new(&content) {
                    Some(log) if !new => log,
                    _ => Log::Missing,
                };
                self.put(member, marked(marker, log));
            }
            Step::Start(start) => self.start(member, start, half),
            Step::Refuse(_) => drop(self.running.remove(member)),
            Step::Ask(why) => panic!("{why}"),
            Step::Record(_) | Step::Mark { .. } | Step::Wait(_) => {}
        }
    }

    /// As etcd starts: without a log it begins one under the id that it had, whether it founds or asks its peers.
    fn start(&mut self, member: &str, start: EtcdStart, half: bool) {
        let (marker, log) = started(&self.content[member]);
        let marker = marker.clone();
        if *log == Log::Missing {
            if let EtcdStart::New { token } = &start {
                self.founded.push(token.clone());
            }
            *self.lives.entry(member.to_owned()).or_default() += 1;
        }
        self.put(member, marked(marker, log_of("c1", &format!("m-{member}"))));
        self.running.insert(member.to_owned(), start);
        if self.running.len() == self.count && !half {
            let record = self.record.clone().unwrap();
            if let Some(formed) = formed(&record, "c1") {
                self.write(formed);
            }
        }
    }

    fn write(&mut self, record: Record) {
        self.versions.push(record.clone());
        self.record = Some(record);
    }

    /// Whoever looks: until every member runs as one of what exists.
    fn settle(&mut self) {
        let mut rounds = 0;
        while !self.settled() {
            rounds += 1;
            assert!(rounds < 20, "{:?}", self.record);
            members(self.count)
                .iter()
                .for_each(|member| self.turn(member, false));
        }
    }

    /// Somebody removes a member's log under it.
    fn lose_log(&mut self, member: &str) {
        let marker = started(&self.content[member]).0.clone();
        self.put(member, marked(marker, Log::Missing));
    }

    fn put(&mut self, member: &str, content: Content) {
        self.content.insert(member.to_owned(), content);
    }

    fn settled(&self) -> bool {
        self.running.len() == self.count
            && self
                .running
                .values()
                .all(|start| *start == EtcdStart::Existing)
    }
}

fn started_or_new(content: &Content) -> Option<Log> {
    match content {
        Content::FileSystem(Inside::Marked { log, .. }) => Some(log.clone()),
        _ => None,
    }
}

proptest::proptest! {
    #[test]
    fn whatever_dies_whenever_one_cluster_is_formed(
        turns in proptest::collection::vec((0_usize..3, proptest::bool::ANY), 0..60),
        three in proptest::bool::ANY,
        older in proptest::prelude::any::<proptest::sample::Index>(),
    ) {
        let count = if three { 3 } else { 1 };
        let mut world = World::new(count);
        for (who, half) in turns {
            world.turn(MEMBERS[who % count], half);
        }
        world.settle();
        // Somebody brings an older version of the record back, and every machine is replaced.
        world.record = Some(older.get(&world.versions).clone());
        world.running.clear();
        world.settle();
        world.founded.dedup();
        assert_eq!(world.founded.len(), 1, "one token, whoever died");
        // And from then on neither a lost log nor a lost volume begins anything.
        world.lose_log("a");
        for again in [false, true] {
            if again {
                world.put("a", Content::Blank);
            }
            world.running.insert("a".to_owned(), EtcdStart::Existing);
            world.turn("a", false);
            world.turn("a", false);
            assert!(!world.running.contains_key("a"), "{:?}", world.content["a"]);
        }
        assert!(world.lives.values().all(|lives| *lives == 1), "{:?}", world.lives);
        assert_eq!(world.founded.len(), 1);
    }
}
