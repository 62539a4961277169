//! Laws of formation: checked over every combination of what a record can say and a volume can hold, and by letting
//! machines die anywhere.

use super::*;
use crate::components::EtcdStart;
use std::collections::BTreeMap;

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

fn marker(volume: &str, token: &str, cluster_id: Option<&str>) -> Marker {
    Marker {
        format: FORMAT,
        cluster: "x.example.com".into(),
        etcd: "main".into(),
        member: "a".into(),
        volume: volume.into(),
        token: token.into(),
        cluster_id: cluster_id.map(str::to_owned),
    }
}

fn record(state: State, count: usize, blank: bool) -> Record {
    let one = |member: String| {
        let volume = volume(&member);
        (member, RecordedMember { volume, blank })
    };
    Record {
        format: FORMAT,
        state,
        members: members(count).into_iter().map(one).collect(),
    }
}

/// What records can say.
fn records(count: usize) -> Vec<Option<Record>> {
    let states = [
        State::Forming { token: "t1".into() },
        State::Formed {
            cluster_id: "c1".into(),
            token: "t1".into(),
        },
        State::Restoring {
            snapshot: "s".into(),
            token: "t2".into(),
        },
    ];
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
            all.extend([whole, other_volume, without, partly].map(Some));
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
        Content::FileSystem(Inside::Nothing),
        Content::FileSystem(Inside::Unmarked(vec!["var".into()])),
    ];
    for on in ["vol-a", "vol-copied"] {
        for token in ["t1", "t2"] {
            for id in [None, Some("c1"), Some("c2")] {
                for data in [true, false] {
                    let marker = marker(on, token, id);
                    all.push(Content::FileSystem(Inside::Marked { marker, data }));
                }
            }
        }
    }
    let foreign = Marker {
        cluster: "other.example.com".into(),
        ..marker("vol-a", "t1", Some("c1"))
    };
    all.push(Content::FileSystem(Inside::Marked {
        marker: foreign,
        data: true,
    }));
    all
}

fn every(mut check: impl FnMut(usize, Option<&Record>, &Content, Step)) {
    for count in [1, 3] {
        let (all, volumes) = (members(count), seen(count));
        let own = Own {
            cluster: "x.example.com",
            etcd: "main",
            members: &all,
            member: "a",
            volume: "vol-a",
            seen: &volumes,
            token: "new",
        };
        for record in records(count) {
            for content in contents() {
                let step = decide(&own, record.as_ref(), &content);
                check(count, record.as_ref(), &content, step);
            }
        }
    }
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
        assert!(matches!(&record.state, State::Forming { token: of } if of == token));
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
                let Content::FileSystem(Inside::Marked { marker, data: true }) = content else {
                    panic!("{content:?} has no data to start from");
                };
                let id = marker.cluster_id.as_ref();
                assert!(id.is_none_or(|id| id == cluster_id), "{marker:?}");
            }
            Step::Wait(_) | Step::Refuse(_) => {}
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
            (State::Forming { token }, Content::Blank) => {
                assert_eq!(token, "new");
                let blank = record.members.iter().filter(|(_, one)| one.blank);
                let blank: Vec<&str> = blank.map(|(name, _)| name.as_str()).collect();
                assert_eq!(blank, ["a"], "only what was looked at is known to be blank");
            }
            (
                State::Formed { cluster_id, .. },
                Content::FileSystem(Inside::Marked { marker, data: true }),
            ) => assert_eq!(marker.cluster_id.as_ref(), Some(cluster_id)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_refusal_says_what_to_look_at() {
    every(|_, _, _, step| {
        if let Step::Refuse(why) = step {
            assert!(why.contains("vol-") || why.contains("etcd main"), "{why}");
        }
    });
}

#[test]
fn a_copy_of_a_lone_members_volume_is_the_cluster_and_among_others_it_is_not() {
    for (count, started) in [(1, true), (3, false)] {
        let all = members(count);
        let mut volumes = seen(count);
        volumes[0].id = "vol-new".into();
        let own = Own {
            cluster: "x.example.com",
            etcd: "main",
            members: &all,
            member: "a",
            volume: "vol-new",
            seen: &volumes,
            token: "new",
        };
        let state = State::Formed {
            cluster_id: "c1".into(),
            token: "t1".into(),
        };
        let record = record(state, count, true);
        let content = Content::FileSystem(Inside::Marked {
            marker: marker("vol-a", "t1", Some("c1")),
            data: true,
        });
        let step = decide(&own, Some(&record), &content);
        assert_eq!(matches!(step, Step::Record(_)), started, "{step:?}");
        let still_there = [volumes.clone(), seen(count)].concat();
        let own = Own {
            seen: &still_there,
            ..own
        };
        let step = decide(&own, Some(&record), &content);
        assert!(matches!(step, Step::Refuse(_)), "two of them: {step:?}");
    }
}

/// Members whose machines take turns in any order, and may die before a step or in the middle of one.
struct World {
    count: usize,
    record: Option<Record>,
    content: BTreeMap<String, Content>,
    running: BTreeMap<String, EtcdStart>,
    /// Tokens under which an empty data folder was started.
    founded: Vec<String>,
    tokens: usize,
}

impl World {
    fn new(count: usize) -> Self {
        Self {
            count,
            record: None,
            content: members(count)
                .into_iter()
                .map(|one| (one, Content::Blank))
                .collect(),
            running: BTreeMap::new(),
            founded: Vec::new(),
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
            cluster: "x.example.com",
            etcd: "main",
            members: &all,
            member,
            volume: &id,
            seen: &volumes,
            token: &token,
        };
        let content = self.content[member].clone();
        match decide(&own, self.record.as_ref(), &content) {
            Step::Record(record) if !half => self.record = Some(record),
            Step::Format if half => self.put(member, Content::Unrecognized),
            Step::Format => self.put(member, Content::FileSystem(Inside::Nothing)),
            Step::Mark { marker, new } if !half => {
                let data = !new;
                self.put(member, Content::FileSystem(Inside::Marked { marker, data }));
            }
            Step::Start(start) => self.start(member, start, half),
            Step::Refuse(why) => panic!("{why}"),
            Step::Record(_) | Step::Mark { .. } | Step::Wait(_) => {}
        }
    }

    fn start(&mut self, member: &str, start: EtcdStart, half: bool) {
        let Content::FileSystem(Inside::Marked { marker, data }) = self.content[member].clone()
        else {
            panic!("started on {:?}", self.content[member]);
        };
        if let (EtcdStart::New { token }, false) = (&start, data) {
            self.founded.push(token.clone());
        }
        self.put(
            member,
            Content::FileSystem(Inside::Marked { marker, data: true }),
        );
        self.running.insert(member.to_owned(), start);
        if self.running.len() == self.count && !half {
            let record = self.record.clone().unwrap();
            self.record = formed(&record, "c1").or(Some(record));
        }
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

proptest::proptest! {
    #[test]
    fn whatever_dies_whenever_one_cluster_is_formed(
        turns in proptest::collection::vec((0_usize..3, proptest::bool::ANY), 0..60),
        three in proptest::bool::ANY,
    ) {
        let count = if three { 3 } else { 1 };
        let mut world = World::new(count);
        for (who, half) in turns {
            world.turn(MEMBERS[who % count], half);
        }
        let mut rounds = 0;
        while !world.settled() {
            rounds += 1;
            assert!(rounds < 20, "{:?}", world.record);
            members(count).iter().for_each(|member| world.turn(member, false));
        }
        world.founded.dedup();
        assert_eq!(world.founded.len(), 1, "one token, whoever died");
        // And from then on a lost volume founds nothing.
        let before = world.record.clone();
        world.put("a", Content::Blank);
        let (all, volumes) = (members(count), seen(count));
        let own = Own { cluster: "x.example.com", etcd: "main", members: &all, member: "a", volume: "vol-a",
            seen: &volumes, token: "late" };
        assert!(matches!(decide(&own, before.as_ref(), &Content::Blank), Step::Refuse(_)));
    }
}
