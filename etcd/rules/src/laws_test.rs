//! Laws of formation, checked for all combinations of records and volume contents, and by simulating instances that die at any
//! time.

use super::*;
use node::components::EtcdStart;
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};

/// Nobody answers.
static NO_PEERS: Peers = Peers::new();

/// No volume is gone.
static NONE: BTreeSet<String> = BTreeSet::new();

const MEMBERS: [&str; 3] = ["a", "b", "c"];

fn member_names(count: usize) -> Vec<String> {
    MEMBERS
        .iter()
        .take(count)
        .map(ToString::to_string)
        .collect()
}

fn volume_id(member: &str) -> String {
    format!("vol-{member}")
}

fn seen_volumes(count: usize) -> Vec<SeenVolume> {
    let all = member_names(count).join(",");
    let volume = |member: &String| SeenVolume {
        id: volume_id(member),
        zone: "z".into(),
        state: "in-use".into(),
        tag: format!("{member}/{all}"),
        holder: None,
    };
    member_names(count).iter().map(volume).collect()
}

fn marker_of_a(
    volume: &str,
    token: &str,
    cluster_id: Option<&str>,
    member_id: Option<&str>,
) -> Marker {
    Marker {
        format: FORMAT,
        cluster: "x.example.com".into(),
        etcd: "main".into(),
        member: "a".into(),
        volume: volume.into(),
        token: token.into(),
        cluster_id: cluster_id.map(str::to_owned),
        member_id: member_id.map(str::to_owned),
        joins: None,
        etcd_version: None,
        stopped: None,
        last_seen: None,
        unknown: UnknownFields::new(),
    }
}

fn log_of(cluster_id: &str, member_id: &str) -> EtcdLog {
    EtcdLog::Of(LogIdentity {
        cluster_id: cluster_id.into(),
        member_id: member_id.into(),
    })
}

/// A log that reached further before.
fn shorter_log(cluster_id: &str, member_id: &str) -> EtcdLog {
    let at = |index| LogPosition { term: 2, index };
    EtcdLog::Shorter {
        log: LogIdentity {
            cluster_id: cluster_id.into(),
            member_id: member_id.into(),
        },
        seen: at(9),
        found: at(8),
    }
}

fn marked_content(marker: Marker, log: EtcdLog) -> VolumeContent {
    VolumeContent::FileSystem(FileSystemContent::Marked { marker, log })
}

fn record_of(generation: Generation, count: usize, blank: bool) -> FormationRecord {
    let one = |member: String| {
        let volume = volume_id(&member);
        (member, RecordedMember::on_volume(&volume, blank))
    };
    FormationRecord::new(
        generation,
        member_names(count).into_iter().map(one).collect(),
    )
}

/// Records in all their variants, and none.
fn all_records(count: usize) -> Vec<Option<FormationRecord>> {
    let states = [Generation::forming("t1"), Generation::formed("c1", "t1")];
    let mut all = vec![None];
    for state in states {
        for blank in [true, false] {
            let whole = record_of(state.clone(), count, blank);
            let mut other_volume = whole.clone();
            other_volume.members.get_mut("a").unwrap().volume = "vol-lost".into();
            let mut without = whole.clone();
            without.members.remove("a");
            let mut partly = whole.clone();
            partly.members.get_mut("a").unwrap().blank = !blank;
            let mut known = whole.clone();
            known.members.get_mut("a").unwrap().member_id = Some("m1".into());
            if whole.is_formed() {
                for of in [&whole, &known, &other_volume] {
                    all.extend(["a", "b"].map(|member| Some(replacing(member, of))));
                }
            }
            all.extend([whole, other_volume, without, partly, known].map(Some));
        }
    }
    all
}

/// The record while a member is being replaced.
fn replacing(member: &str, record: &FormationRecord) -> FormationRecord {
    FormationRecord {
        replacing: Some(Replacing {
            member: member.into(),
            added: true,
            unknown: UnknownFields::new(),
        }),
        ..record.clone()
    }
}

fn is_replacing_a(record: &FormationRecord) -> bool {
    record.replacing.as_ref().is_some_and(|of| of.member == "a")
}

fn live_member(member: &str, id: &str, started: bool, learner: bool) -> LiveMember {
    LiveMember {
        id: id.into(),
        name: if started {
            format!("etcd-{member}")
        } else {
            String::new()
        },
        peer_urls: vec![format!("https://etcd-{member}.internal.x.example.com:2380")],
        learner,
    }
}

/// Answers of the other members in all their variants.
fn all_lives() -> Vec<Result<LiveCluster, String>> {
    let others = || {
        vec![
            live_member("b", "mb", true, false),
            live_member("c", "mc", true, false),
        ]
    };
    let cluster = |id: &str, members| {
        Ok(LiveCluster {
            cluster_id: id.into(),
            members,
        })
    };
    let mut all = vec![
        Err("nobody answers".into()),
        cluster("c1", others()),
        cluster("c2", others()),
    ];
    for id in ["m1", "m2"] {
        for (started, learner) in [(false, true), (true, true), (true, false)] {
            let own = live_member("a", id, started, learner);
            all.push(cluster("c1", [others(), vec![own]].concat()));
        }
    }
    all
}

/// Contents of member a's volume in all their variants.
fn all_contents() -> Vec<VolumeContent> {
    let mut all = vec![
        VolumeContent::Blank,
        VolumeContent::Unrecognized,
        VolumeContent::Other("an xfs file system".into()),
        VolumeContent::Damaged("fsck says so".into()),
        VolumeContent::FileSystem(FileSystemContent::Nothing),
        VolumeContent::FileSystem(FileSystemContent::Unmarked(vec!["var".into()])),
    ];
    let logs = [
        EtcdLog::Missing,
        EtcdLog::Unreadable("it is cut off".into()),
        shorter_log("c1", "m1"),
        log_of("c1", "m1"),
        log_of("c1", "m2"),
        log_of("c2", "m1"),
    ];
    for on in ["vol-a", "vol-copied"] {
        for token in ["t1", "t2"] {
            for cluster in [None, Some("c1"), Some("c2")] {
                for member in [None, Some("m1")] {
                    let marker = || marker_of_a(on, token, cluster, member);
                    all.extend(logs.iter().map(|log| marked_content(marker(), log.clone())));
                }
            }
        }
    }
    let foreign = Marker {
        cluster: "other.example.com".into(),
        ..marker_of_a("vol-a", "t1", Some("c1"), Some("m1"))
    };
    all.push(marked_content(foreign, log_of("c1", "m1")));
    all
}

/// Member a on vol-a of a cluster in which nothing is known of the others.
pub(super) fn own_member<'a>(all: &'a [String], volumes: &'a [SeenVolume]) -> OwnMember<'a> {
    OwnMember {
        cluster: "x.example.com",
        etcd: "main",
        members: all,
        version: "3.6.12",
        member: "a",
        volume: "vol-a",
        seen: volumes,
        gone: &NONE,
        gone_twice: &NONE,
        free_twice: &NONE,
        live: Err("nobody answers"),
        peers: &NO_PEERS,
        manifest_version: None,
        shown: false,
        token: "new",
        trace: None,
        formed: None,
    }
}

fn check_every(
    mut check: impl FnMut(usize, Option<&FormationRecord>, &VolumeContent, FormationStep),
) {
    for gone in ["", "vol-lost", "vol-copied"] {
        check_every_gone(&[gone.to_owned()].into(), &mut check);
    }
}

/// Checks all combinations when EC2 says that these volumes are gone.
fn check_every_gone(
    gone: &BTreeSet<String>,
    mut check: impl FnMut(usize, Option<&FormationRecord>, &VolumeContent, FormationStep),
) {
    for count in [1, 3] {
        let (all, volumes) = (member_names(count), seen_volumes(count));
        for (live, gone_twice) in all_lives().iter().zip([gone, &NONE].into_iter().cycle()) {
            let own = OwnMember {
                gone,
                gone_twice,
                live: live.as_ref().map_err(String::as_str),
                ..own_member(&all, &volumes)
            };
            for record in all_records(count) {
                for content in all_contents() {
                    let step = decide_step(&own, record.as_ref(), &content);
                    check(count, record.as_ref(), &content, step);
                }
            }
        }
    }
}

/// The marker and the log from which a member is started.
fn marker_and_log(content: &VolumeContent) -> (&Marker, &EtcdLog) {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        panic!("started from {content:?}");
    };
    (marker, log)
}

fn is_same_id(known: Option<&String>, found: &str) -> bool {
    known.is_none_or(|known| known == found)
}

#[test]
fn a_member_that_has_run_is_never_started_without_its_log_or_from_anothers() {
    let mut starts = 0;
    check_every(|_, record, content, step| {
        let FormationStep::Start(start) = &step else {
            return;
        };
        starts += 1;
        let (marker, log) = marker_and_log(content);
        let record = record.expect("a record");
        let recorded = &record.members["a"];
        match log {
            EtcdLog::Missing => {
                assert_eq!((&marker.member_id, &marker.cluster_id), (&None, &None));
                assert!(matches!(start, EtcdStart::New { .. }));
            }
            EtcdLog::Unreadable(_) | EtcdLog::Shorter { .. } => panic!("started from {log:?}"),
            EtcdLog::Of(identity) => {
                assert_eq!(marker.member_id.as_ref(), Some(&identity.member_id));
                assert!(is_same_id(marker.cluster_id.as_ref(), &identity.cluster_id));
                assert!(is_same_id(recorded.member_id.as_ref(), &identity.member_id));
            }
        }
        if let Some(cluster_id) = record.formed_id() {
            assert_eq!(*log, log_of(cluster_id, "m1"), "of the recorded cluster");
            assert!(recorded.member_id.is_some(), "whose ids are recorded");
        }
    });
    assert!(starts > 0);
}

#[test]
fn a_member_joins_under_the_id_that_it_was_given_and_only_once() {
    let mut joins = 0;
    check_every(|_, record, content, step| {
        let FormationStep::Join {
            marker,
            joins: joined,
        } = step
        else {
            return;
        };
        joins += 1;
        let record = record.expect("a record");
        let (before, log) = marker_and_log(content);
        assert_eq!(*log, EtcdLog::Missing);
        assert_eq!((&before.member_id, &before.cluster_id), (&None, &None));
        assert!(is_replacing_a(record));
        assert_eq!(
            Some(&joined.member_id),
            record.members["a"].member_id.as_ref()
        );
        assert!(before.joins != marker.joins && marker.joins.as_ref() == Some(&joined));
        assert_eq!(joined.initial_cluster.split(',').count(), 3);
    });
    assert!(joins > 0);
}

/// Without the record, an instance that reboots resumes only what a full look would continue.
#[test]
fn what_is_resumed_is_the_members_own_log_as_its_marker_tells_of_it() {
    let mut resumed = 0;
    for content in all_contents() {
        let runs = can_resume("x.example.com", "main", "vol-a", &content);
        let Ok(runs) = runs else { continue };
        let (marker, log) = marker_and_log(&content);
        assert_eq!(
            (marker.cluster.as_str(), marker.volume.as_str()),
            ("x.example.com", "vol-a")
        );
        if !runs {
            assert_eq!((log, &marker.member_id), (&EtcdLog::Missing, &None));
            continue;
        }
        resumed += 1;
        let EtcdLog::Of(identity) = log else {
            panic!("resumed from {log:?}");
        };
        assert!(is_same_id(marker.member_id.as_ref(), &identity.member_id));
        assert!(is_same_id(marker.cluster_id.as_ref(), &identity.cluster_id));
    }
    assert!(resumed > 0);
}

#[test]
fn a_cluster_is_founded_only_under_forming_on_volumes_that_all_were_blank() {
    let mut founded = 0;
    check_every(|_, record, content, step| {
        let FormationStep::Start(EtcdStart::New { token, .. }) = &step else {
            return;
        };
        founded += 1;
        let record = record.expect("a record");
        assert!(record.is_forming() && record.generation.token == *token);
        assert!(record.members.values().all(|member| member.blank));
        assert_eq!(record.members["a"].volume, "vol-a");
        let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content else {
            panic!("{content:?}");
        };
        assert_eq!((&marker.token, marker.volume.as_str()), (token, "vol-a"));
    });
    assert!(founded > 0);
}

#[test]
fn a_file_system_is_made_only_where_nothing_was_and_the_record_says_so() {
    let mut made = 0;
    check_every(|_, record, content, step| {
        if step != FormationStep::Format {
            return;
        }
        made += 1;
        let record = record.expect("a record");
        assert!(!record.is_formed() || is_replacing_a(record));
        assert!(record.members["a"].blank && record.members["a"].volume == "vol-a");
        assert!(matches!(
            content,
            VolumeContent::Blank | VolumeContent::Unrecognized
        ));
    });
    assert!(made > 0);
}

#[test]
fn a_formed_cluster_stays_the_one_it_is() {
    check_every(|_, before, content, step| {
        let Some(cluster_id) = before.and_then(FormationRecord::formed_id) else {
            return;
        };
        let replaced = before.is_some_and(is_replacing_a);
        let waits = before.is_some_and(|record| record.replacing.is_some());
        match step {
            // A dead member goes first, whoever waits for whom.
            FormationStep::Change(MemberChange::Remove { .. }) if waits => {}
            FormationStep::Format
            | FormationStep::SetAside { .. }
            | FormationStep::Change(_)
            | FormationStep::Join { .. }
            | FormationStep::Mark { new: true, .. }
                if replaced => {}
            FormationStep::Format
            | FormationStep::SetAside { .. }
            | FormationStep::Change(_)
            | FormationStep::Join { .. }
            | FormationStep::Stop { .. }
            | FormationStep::PrepareRestore(_)
            | FormationStep::Restore(_)
            | FormationStep::UseRestored { .. }
            | FormationStep::Start(EtcdStart::New { .. } | EtcdStart::Join { .. })
            | FormationStep::Mark { new: true, .. } => {
                panic!("{before:?} {content:?}")
            }
            FormationStep::Record(after) => assert_eq!(after.formed_id(), Some(cluster_id)),
            FormationStep::Start(EtcdStart::Existing)
            | FormationStep::Continue { .. }
            | FormationStep::Mark { .. } => {
                let (marker, log) = marker_and_log(content);
                assert!(
                    is_same_id(marker.cluster_id.as_ref(), cluster_id),
                    "{marker:?}"
                );
                assert!(matches!(log, EtcdLog::Of(of) if of.cluster_id == *cluster_id));
            }
            FormationStep::Withdraw(_)
            | FormationStep::Wait(_)
            | FormationStep::Refuse(_)
            | FormationStep::Ask(_) => {}
            FormationStep::Upgrade { .. } => panic!("no version is known"),
        }
    });
}

#[test]
fn without_a_record_only_what_is_blank_begins_one_and_data_is_never_forgotten() {
    check_every(|_, before, content, step| {
        let (None, FormationStep::Record(record)) = (before, step) else {
            return;
        };
        match (record.cluster_id(), content) {
            (None, VolumeContent::Blank) => {
                assert_eq!(record.generation.token, "new");
                let blank = record.members.iter().filter(|(_, one)| one.blank);
                let blank: Vec<&str> = blank.map(|(name, _)| name.as_str()).collect();
                assert_eq!(blank, ["a"], "only what was looked at is known to be blank");
            }
            (
                Some(cluster_id),
                VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }),
            ) => {
                assert_eq!(marker.cluster_id.as_deref(), Some(cluster_id));
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
        let (all, volumes) = (member_names(count), seen_volumes(count));
        let one_less = &volumes[..count - 1];
        let twice = [volumes.clone(), volumes[count - 1..].to_vec()].concat();
        for content in all_contents() {
            for seen in [one_less, &twice] {
                let step = decide_step(&own_member(&all, seen), None, &content);
                assert!(
                    !matches!(step, FormationStep::Record(_)),
                    "{seen:?}: {step:?}"
                );
            }
            let trace = Some("backups/etcd/main/2026");
            let own = OwnMember {
                trace,
                ..own_member(&all, &volumes)
            };
            match decide_step(&own, None, &content) {
                FormationStep::Record(record) => {
                    made += 1;
                    assert!(record.is_formed(), "the cluster that its volume tells of");
                    assert_eq!(record.members.len(), count);
                }
                FormationStep::Refuse(why) if content == VolumeContent::Blank => {
                    blank += 1;
                    assert!(why.contains("backups/etcd/main/2026"), "{why}");
                }
                step => assert_ne!(content, VolumeContent::Blank, "{step:?}"),
            }
        }
    }
    assert!(made > 0 && blank == 2);
}

/// A list that lacks a volume is no reason to move.
#[test]
fn a_record_names_another_volume_only_where_ec2_says_that_the_first_is_gone() {
    let (mut moved, mut adopted) = (0, 0);
    for volume in ["", "vol-lost", "vol-copied"] {
        let gone = BTreeSet::from([volume.to_owned()]);
        check_every_gone(&gone, |count, before, content, step| {
            let FormationStep::Record(after) = step else {
                return;
            };
            let now = &after.members["a"].volume;
            let first = match before {
                Some(before) => before.members.get("a").map_or(now, |of| &of.volume),
                None if after.is_formed() => &marker_and_log(content).0.volume,
                None => now,
            };
            if first != now {
                let is_new = matches!(
                    content,
                    VolumeContent::Blank | VolumeContent::FileSystem(FileSystemContent::Nothing)
                );
                assert!(
                    (count == 1 || is_new) && gone.contains(first),
                    "{first}: {content:?}"
                );
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
    check_every(|count, record, content, step| {
        if let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content
            && count > 1
            && marker.volume != "vol-a"
        {
            copies += 1;
            // What has begun on another volume is moved only to a blank one.
            let left = matches!(step, FormationStep::Refuse(_) | FormationStep::Ask(_));
            assert!(left, "{record:?} {content:?} {step:?}");
        }
    });
    assert!(copies > 0);
}

/// A lone member is not started from a log that lost its end, until an operator recovers what is left.
#[test]
fn a_lone_member_whose_log_lost_its_end_goes_on_only_by_a_recovery() {
    let (all, volumes) = (member_names(1), seen_volumes(1));
    let own = own_member(&all, &volumes);
    let mut record = record_of(Generation::formed("c1", "t1"), 1, true);
    record.members.get_mut("a").unwrap().member_id = Some("m1".into());
    let marker = marker_of_a("vol-a", "t1", Some("c1"), Some("m1"));
    let content = marked_content(marker, shorter_log("c1", "m1"));
    let FormationStep::Refuse(why) = decide_step(&own, Some(&record), &content) else {
        panic!("it is started");
    };
    for part in [
        "index 9",
        "index 8",
        "EBS snapshot",
        "kctl etcd recover x.example.com --etcd main --from a",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let record = begin_recovery(&record, "a", "t2", RecoveryTerms::default()).unwrap();
    let step = decide_step(&own, Some(&record), &content);
    let FormationStep::PrepareRestore(record) = step else {
        panic!("{step:?}");
    };
    let step = decide_step(&own, Some(&record), &content);
    assert!(matches!(step, FormationStep::Restore(_)), "{step:?}");
    // The restored log begins anew.
    let restored = LogIdentity {
        cluster_id: "c2".into(),
        member_id: "m2".into(),
    };
    let record = end_recovery(&record, &restored).unwrap();
    let FormationStep::UseRestored { marker, .. } = decide_step(&own, Some(&record), &content)
    else {
        panic!("it is not used");
    };
    assert_eq!(marker.least_position(&restored), None);
}

/// Every volume that was looked at without a change, with the step that follows from what the look showed.
fn check_every_first_look(
    mut check: impl FnMut(&OwnMember<'_>, Option<&FormationRecord>, &VolumeContent, FormationStep),
) {
    for gone in ["", "vol-lost", "vol-copied"] {
        let gone = BTreeSet::from([gone.to_owned()]);
        for count in [1, 3] {
            let (all, volumes) = (member_names(count), seen_volumes(count));
            let own = OwnMember {
                gone: &gone,
                ..own_member(&all, &volumes)
            };
            for record in all_records(count) {
                for content in all_contents() {
                    let step = decide_step(&own, record.as_ref(), &content);
                    check(&own, record.as_ref(), &content, step);
                }
            }
        }
    }
}

#[test]
fn what_is_refused_by_a_certain_look_is_not_opened_and_what_is_not_opened_is_not_written_to() {
    let mut refused = 0;
    check_every_first_look(|own, record, content, step| {
        for is_certain in [true, false] {
            let first = FirstLook {
                content: content.clone(),
                is_certain,
            };
            let opens = may_open(own, record, &first);
            assert!(opens || !step.writes_to_volume(), "{record:?} {content:?}");
            let VolumeContent::FileSystem(content) = content else {
                continue;
            };
            match content {
                FileSystemContent::Marked { marker, .. } if marker.cluster != own.cluster => {
                    refused += 1;
                    assert!(!opens, "{marker:?}");
                }
                FileSystemContent::Unmarked(_) if is_certain => assert!(!opens, "{record:?}"),
                _ => {}
            }
        }
    });
    assert!(refused > 0);
}

/// A look without the journal may show an older file system, or one that cannot be read.
#[test]
fn what_only_the_journal_has_keeps_no_member_from_its_volume() {
    let mut starts = 0;
    check_every_first_look(|own, record, content, step| {
        if !step.writes_to_volume() {
            return;
        }
        let opens = |content| {
            let first = FirstLook {
                content,
                is_certain: false,
            };
            may_open(own, record, &first)
        };
        if let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content {
            let outdated = marked_content(marker.clone(), EtcdLog::Missing);
            assert!(opens(outdated), "{record:?} {content:?}");
        }
        if let FormationStep::Start(_) = step {
            starts += 1;
            for hidden in [
                VolumeContent::Damaged("it is cut off".into()),
                VolumeContent::FileSystem(FileSystemContent::Nothing),
                VolumeContent::FileSystem(FileSystemContent::Unmarked(vec!["db".into()])),
            ] {
                assert!(opens(hidden), "{record:?} {content:?}");
            }
        }
    });
    assert!(starts > 0);
}

/// What a marker says of one member's log does not bind another's.
#[test]
fn a_position_is_that_of_one_members_log() {
    let mut marker = marker_of_a("vol-a", "t1", Some("c1"), Some("m1"));
    let position = LogPosition { term: 2, index: 9 };
    marker.last_seen = Some(LastSeen {
        member_id: "m1".into(),
        position,
    });
    let marker = Marker::parse("m", marker.to_json().as_bytes()).unwrap();
    for (member_id, least) in [("m1", Some(position)), ("m2", None)] {
        let log = LogIdentity {
            cluster_id: "c1".into(),
            member_id: member_id.into(),
        };
        assert_eq!(marker.least_position(&log), least);
    }
}

#[test]
fn a_refusal_says_what_to_look_at() {
    check_every(|_, _, _, step| {
        if let FormationStep::Refuse(why) | FormationStep::Ask(why) = step {
            assert!(why.contains("vol-") || why.contains("etcd main"), "{why}");
        }
    });
}

#[test]
fn a_copy_of_a_lone_members_volume_is_the_cluster_and_among_others_it_is_not() {
    let gone = BTreeSet::from(["vol-a".to_owned()]);
    let answers = [
        (1, &gone, &gone, true),
        (1, &gone, &NONE, false),
        (1, &NONE, &NONE, false),
        (3, &gone, &gone, false),
    ];
    for (count, gone, gone_twice, started) in answers {
        let all = member_names(count);
        let mut volumes = seen_volumes(count);
        volumes[0].id = "vol-new".into();
        let own = OwnMember {
            volume: "vol-new",
            gone,
            gone_twice,
            ..own_member(&all, &volumes)
        };
        let record = record_of(Generation::formed("c1", "t1"), count, true);
        let marker = marker_of_a("vol-a", "t1", Some("c1"), Some("m1"));
        let content = marked_content(marker.clone(), log_of("c1", "m1"));
        let forgot = decide_step(
            &own,
            Some(&record),
            &marked_content(marker, EtcdLog::Missing),
        );
        assert!(matches!(forgot, FormationStep::Refuse(_)), "{forgot:?}");
        let step = decide_step(&own, Some(&record), &content);
        assert_eq!(
            matches!(step, FormationStep::Record(_)),
            started,
            "{step:?}"
        );
        // What EC2 says once may be old.
        let waits = count == 1 && gone != gone_twice;
        let is_waiting = matches!(step, FormationStep::Wait(_));
        assert_eq!(is_waiting, waits, "{step:?}");
        let is_refused = matches!(step, FormationStep::Refuse(_));
        assert_eq!(is_refused, !started && !waits, "{step:?}");
    }
}

/// Members whose instances take turns in any order, and may die before a step or in the middle of one.
struct World {
    count: usize,
    record: Option<FormationRecord>,
    /// Every version that the record has had.
    versions: Vec<FormationRecord>,
    content: BTreeMap<String, VolumeContent>,
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
            content: member_names(count)
                .into_iter()
                .map(|one| (one, VolumeContent::Blank))
                .collect(),
            running: BTreeMap::new(),
            founded: Vec::new(),
            lives: BTreeMap::new(),
            tokens: 0,
        }
    }

    /// One look and one step of a member's instance. `half`: it dies in the middle.
    fn take_turn(&mut self, member: &str, half: bool) {
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        let (all, volumes) = (member_names(self.count), seen_volumes(self.count));
        let id = volume_id(member);
        let own = OwnMember {
            member,
            volume: &id,
            token: &token,
            ..own_member(&all, &volumes)
        };
        let content = self.content[member].clone();
        if has_lost_log(&content) {
            self.running.remove(member);
        }
        match decide_step(&own, self.record.as_ref(), &content) {
            FormationStep::Record(record) if !half => self.write_record(record),
            FormationStep::Format if half => self.put_content(member, VolumeContent::Unrecognized),
            FormationStep::Format => self.put_content(
                member,
                VolumeContent::FileSystem(FileSystemContent::Nothing),
            ),
            FormationStep::Mark { marker, new } if !half => {
                let log = match log_if_marked(&content) {
                    Some(log) if !new => log,
                    _ => EtcdLog::Missing,
                };
                self.put_content(member, marked_content(marker, log));
            }
            FormationStep::Start(start) => self.start_member(member, start, half),
            // The others do not answer here.
            FormationStep::Refuse(_) => drop(self.running.remove(member)),
            FormationStep::Ask(why) => panic!("{why}"),
            FormationStep::SetAside { .. }
            | FormationStep::Continue { .. }
            | FormationStep::Withdraw(_)
            | FormationStep::Join { .. }
            | FormationStep::Stop { .. }
            | FormationStep::PrepareRestore(_)
            | FormationStep::Restore(_)
            | FormationStep::UseRestored { .. }
            | FormationStep::Change(_) => unreachable!(),
            FormationStep::Record(_) | FormationStep::Mark { .. } | FormationStep::Wait(_) => {}
            FormationStep::Upgrade { .. } => panic!("no version is known"),
        }
    }

    /// Starts like etcd: without a log it begins one under the id that it had, whether it founds or asks its peers.
    fn start_member(&mut self, member: &str, start: EtcdStart, half: bool) {
        let (marker, log) = marker_and_log(&self.content[member]);
        let marker = marker.clone();
        if *log == EtcdLog::Missing {
            if let EtcdStart::New { token, .. } = &start {
                self.founded.push(token.clone());
            }
            *self.lives.entry(member.to_owned()).or_default() += 1;
        }
        self.put_content(
            member,
            marked_content(marker, log_of("c1", &format!("m-{member}"))),
        );
        self.running.insert(member.to_owned(), start);
        if self.running.len() == self.count && !half {
            let record = self.record.clone().unwrap();
            if let Some(formed) = mark_formed(&record, "c1") {
                self.write_record(formed);
            }
        }
    }

    fn write_record(&mut self, record: FormationRecord) {
        self.versions.push(record.clone());
        self.record = Some(record);
    }

    /// Lets all members take turns until each runs as a member of an existing cluster.
    fn run_until_settled(&mut self) {
        let mut rounds = 0;
        while !self.is_settled() {
            rounds += 1;
            assert!(rounds < 20, "{:?}", self.record);
            member_names(self.count)
                .iter()
                .for_each(|member| self.take_turn(member, false));
        }
    }

    /// Removes a member's log.
    fn lose_log(&mut self, member: &str) {
        let marker = marker_and_log(&self.content[member]).0.clone();
        self.put_content(member, marked_content(marker, EtcdLog::Missing));
    }

    fn put_content(&mut self, member: &str, content: VolumeContent) {
        self.content.insert(member.to_owned(), content);
    }

    fn is_settled(&self) -> bool {
        self.running.len() == self.count
            && self
                .running
                .values()
                .all(|start| *start == EtcdStart::Existing)
    }
}

fn log_if_marked(content: &VolumeContent) -> Option<EtcdLog> {
    match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) => Some(log.clone()),
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
            world.take_turn(MEMBERS[who % count], half);
        }
        world.run_until_settled();
        // An older version of the record is restored, and every instance is replaced.
        world.record = Some(older.get(&world.versions).clone());
        world.running.clear();
        world.run_until_settled();
        world.founded.dedup();
        assert_eq!(world.founded.len(), 1, "one token, whoever died");
        // From then on neither a lost log nor a lost volume begins anything.
        world.lose_log("a");
        for replaced in [false, true] {
            if replaced {
                world.put_content("a", VolumeContent::Blank);
            } else {
                world.running.insert("a".to_owned(), EtcdStart::Existing);
            }
            world.take_turn("a", false);
            world.take_turn("a", false);
            assert!(!world.running.contains_key("a"), "{:?}", world.content["a"]);
        }
        assert!(world.lives.values().all(|lives| *lives == 1), "{:?}", world.lives);
        assert_eq!(world.founded.len(), 1);
    }
}
