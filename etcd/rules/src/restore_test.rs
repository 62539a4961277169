//! Laws of a restore: whatever the volume of the member holds, it ends with the snapshot or changes nothing.

use super::laws_test::own_member;
use super::recover_test::{data_of, formed_record, names, seen};
use super::*;
use node::components::EtcdStart;
use node::formatted::UnknownFields;
use std::collections::BTreeSet;

pub(super) fn snapshot() -> RestoredSnapshot {
    RestoredSnapshot {
        store: "s3://backups/x".into(),
        name: "2026-11-25T05:40:00Z-000123".into(),
        sha256: "0a".into(),
        bytes: 4096,
        revision: Some(700),
        keys: Some(12),
        bump: REVISION_BUMP,
        unreadable_secrets: false,
        changes: None,
        unknown: UnknownFields::new(),
    }
}

fn restored_log() -> LogIdentity {
    LogIdentity {
        cluster_id: "c2".into(),
        member_id: "m2".into(),
    }
}

/// What the volume of the member holds, and which id it has.
struct Place {
    volume: &'static str,
    content: VolumeContent,
    /// kubelet sees its manifest.
    shown: bool,
}

/// Takes the step of the member a, as protokube does. False: nothing was changed.
fn take_step(place: &mut Place, record: &mut FormationRecord, gone: &BTreeSet<String>) -> bool {
    let all = names();
    let mut volumes = vec![seen("a", Some("i-a"))];
    volumes[0].id = place.volume.into();
    let own = OwnMember {
        volume: place.volume,
        shown: place.shown,
        gone,
        gone_twice: gone,
        ..own_member(&all, &volumes)
    };
    match decide_step(&own, Some(record), &place.content) {
        FormationStep::Record(next) | FormationStep::PrepareRestore(next) => *record = next,
        FormationStep::Format => {
            assert!(!matches!(place.content, VolumeContent::FileSystem(_)));
            place.content = VolumeContent::FileSystem(FileSystemContent::Nothing);
        }
        FormationStep::Mark { marker, .. } => {
            let log = match &place.content {
                VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) => log.clone(),
                _ => EtcdLog::Missing,
            };
            place.content = VolumeContent::FileSystem(FileSystemContent::Marked { marker, log });
        }
        FormationStep::Restore(next) => {
            assert_eq!(next.source, Source::Snapshot(snapshot()));
            *record = end_recovery(record, &restored_log()).unwrap();
        }
        FormationStep::UseRestored {
            marker,
            restored,
            snapshot: restores,
        } => {
            assert_eq!(restores, Some(snapshot()));
            let log = EtcdLog::Of(restored);
            place.content = VolumeContent::FileSystem(FileSystemContent::Marked { marker, log });
        }
        FormationStep::Start(_) => {
            let VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) = &place.content
            else {
                panic!("{:?}", place.content);
            };
            let is_restored = *log == EtcdLog::Of(restored_log());
            // Until the snapshot is ready, nobody has stopped for it.
            let next = record.next.as_ref();
            let serves_meanwhile = next.is_some_and(NextGeneration::has_stopped_nobody);
            assert!(is_restored || serves_meanwhile, "old data is started");
            assert!(is_restored || !place.shown, "it is shown already");
            place.shown = true;
            return !is_restored;
        }
        FormationStep::Refuse(_) | FormationStep::Ask(_) | FormationStep::Wait(_) => return false,
        step => panic!("{step:?}"),
    }
    true
}

fn without_log(content: VolumeContent) -> VolumeContent {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content else {
        panic!("{content:?}");
    };
    let log = EtcdLog::Missing;
    VolumeContent::FileSystem(FileSystemContent::Marked { marker, log })
}

/// The other two volumes are gone. Each place where the member a may be.
#[test]
fn a_member_ends_with_the_snapshot_or_changes_nothing_and_never_starts_its_old_data() {
    let nothing = VolumeContent::FileSystem(FileSystemContent::Nothing);
    let foreign = VolumeContent::FileSystem(FileSystemContent::Unmarked(vec!["x".into()]));
    let others = ["vol-b", "vol-c"];
    for (volume, content, gone, restores) in [
        ("vol-a", data_of("a", None), false, true),
        ("vol-a", data_of("a", Some("t1")), false, true),
        ("vol-a", without_log(data_of("a", None)), false, true),
        ("vol-a", VolumeContent::Blank, false, true),
        ("vol-a", VolumeContent::Unrecognized, false, false),
        ("vol-a", nothing.clone(), false, false),
        ("vol-a", foreign.clone(), false, false),
        ("vol-a", data_of("b", None), false, false),
        ("vol-new", VolumeContent::Blank, true, true),
        ("vol-new", VolumeContent::Blank, false, false),
        ("vol-new", data_of("a", None), true, false),
        ("vol-new", nothing, true, false),
        ("vol-new", foreign, true, false),
    ] {
        let what = format!("{volume} {content:?}");
        let before = content.clone();
        let mut gone: BTreeSet<String> = gone.then(|| "vol-a".to_owned()).into_iter().collect();
        gone.extend(others.map(str::to_owned));
        let mut place = Place {
            volume,
            content,
            shown: false,
        };
        let mut record = begin_restore(&formed_record(), "a", None, "t2", snapshot()).unwrap();
        let steps = (0..20).take_while(|_| take_step(&mut place, &mut record, &gone));
        assert!(steps.count() < 20, "{what}");
        assert_eq!(record.is_formed(), restores, "{what}");
        if !restores {
            assert_eq!(place.content, before, "{what}");
            continue;
        }
        let members: Vec<&String> = record.members.keys().collect();
        assert_eq!(members, ["a"], "{what}");
        assert_eq!(record.members["a"].volume, volume, "{what}");
        assert_eq!(record.members["a"].member_id.as_deref(), Some("m2"));
        assert!(record.has_given_up("c1"), "{what}");
        // The old volume, should it come back, stays stopped.
        assert!(must_stay_stopped("a", Some(&record), &data_of("a", None)));
    }
}

/// The record after the restore was called off, but for why.
fn without_reason(record: &FormationRecord) -> FormationRecord {
    let mut next = call_off_restore(record, "why").unwrap();
    next.generation.refused = None;
    next
}

/// Until somebody is stopped, a restore can be called off, and the cluster is as it was.
#[test]
fn a_restore_is_called_off_until_the_first_member_stops() {
    let before = formed_record();
    let begun = begin_restore(&before, "a", None, "t2", snapshot()).unwrap();
    assert_eq!(without_reason(&begun), before);
    let other = begin_restore(&begun, "b", None, "t3", snapshot()).unwrap();
    assert_eq!(without_reason(&other), before);
    let mut ready = begun.clone();
    let Some(recovering) = &mut ready.next else {
        panic!("it is restored");
    };
    recovering.ready = true;
    let stopped = mark_stopped(&begun, "b", None);
    let recovery = begin_recovery(&before, "a", "t2", RecoveryTerms::default()).unwrap();
    assert_eq!(without_reason(&recovery), before);
    for late in [&before, &ready, &stopped] {
        assert!(call_off_restore(late, "").is_err(), "{late:?}");
    }
    // Another snapshot after members were stopped: they stay stopped, and it cannot be called off.
    let second = begin_restore(&stopped, "a", None, "t3", snapshot()).unwrap();
    let Some(recovering) = &second.next else {
        panic!("it is restored");
    };
    assert!(recovering.stopped.contains_key("b"));
    assert!(call_off_restore(&second, "").is_err());
    // Only the member itself had stopped, or everything was ready to stop.
    let mut prepared = begin_restore(&ready, "a", None, "t3", snapshot()).unwrap();
    assert!(call_off_restore(&prepared, "").is_err());
    prepared = begin_restore(
        &mark_stopped(&begun, "a", None),
        "a",
        None,
        "t4",
        snapshot(),
    )
    .unwrap();
    assert!(call_off_restore(&prepared, "").is_err());
    assert!(begin_restore(&before, "d", None, "t2", snapshot()).is_err());
}

/// What the cluster had begun with is known again, so that an old command restores nothing once more.
#[test]
fn a_restore_that_is_called_off_or_refused_leaves_the_record_as_it_was() {
    let mut before = formed_record();
    before.generation.restored = Some(snapshot());
    let begun = begin_restore(&before, "a", None, "t2", snapshot()).unwrap();
    let again = begin_restore(&begun, "a", None, "t3", snapshot()).unwrap();
    for begun in [begun, again] {
        assert_eq!(without_reason(&begun), before);
        let ended = call_off_restore(&begun, "it is damaged").unwrap();
        // A write whose answer was lost, and that arrives later, finds another record.
        assert_ne!(ended, before);
        let refused = ended.generation.refused.unwrap();
        assert_eq!(
            (refused.token.as_str(), refused.why.as_str()),
            (begun.newest_token(), "it is damaged")
        );
    }
}

#[test]
fn the_raised_revision_is_above_every_known_one() {
    for (snapshot, newest) in [
        (700, 800),
        (700, 0),
        (5, 3_000_000_000),
        (u64::from(u32::MAX), 9),
    ] {
        let raised = snapshot + super::revisions::revision_bump(snapshot, newest);
        assert!(raised >= newest + REVISION_BUMP, "{snapshot} {newest}");
    }
}

/// An instance with another volume of a member does not know whether the member runs from the recorded one.
#[test]
fn only_the_holder_of_the_recorded_volume_says_that_a_member_is_stopped() {
    let (all, volumes) = (
        names(),
        vec![seen("a", Some("i-a")), seen("c", Some("i-c"))],
    );
    let mut record = begin_restore(&formed_record(), "a", None, "t2", snapshot()).unwrap();
    if let Some(recovering) = &mut record.next {
        recovering.ready = true;
    }
    for (volume, stops) in [("vol-b", true), ("vol-new", false)] {
        let own = OwnMember {
            member: "b",
            volume,
            ..own_member(&all, &volumes)
        };
        let step = decide_step(&own, Some(&record), &VolumeContent::Blank);
        assert_eq!(
            matches!(step, FormationStep::Stop { .. }),
            stops,
            "{step:?}"
        );
    }
}

/// Every state of a record in which a snapshot can be restored on member a, whatever a is in it.
fn records_with_a_place() -> Vec<(&'static str, FormationRecord)> {
    let whole = formed_record();
    let keep = |members: &[&str]| {
        let mut record = whole.clone();
        record
            .members
            .retain(|name, _| members.contains(&name.as_str()));
        record
    };
    let joining = |record: &FormationRecord, member: &str, lost: bool| {
        let mut record = record.clone();
        let before = record.members.get_mut(member).unwrap();
        let lost = lost.then(|| before.clone());
        before.member_id = before.member_id.take().filter(|_| lost.is_none());
        if let Some(lost) = &lost {
            record.retire_member(member, lost);
        }
        record.replacing = Some(Replacing {
            member: member.to_owned(),
            added: lost.is_none(),
            unknown: UnknownFields::new(),
        });
        record
    };
    let given_up = |mut record: FormationRecord| {
        let retired = record.retired.entry("c0".into()).or_default();
        retired.given_up = true;
        record
    };
    let terms = RecoveryTerms::default();
    let recovery = |from| begin_recovery(&whole, from, "t2", terms).unwrap();
    let ready = |mut record: FormationRecord| {
        if let Some(recovering) = &mut record.next {
            recovering.ready = true;
        }
        record
    };
    vec![
        ("one member", keep(&["a"])),
        ("three members", whole.clone()),
        ("a alone after a restore", given_up(keep(&["a"]))),
        ("b alone after a restore", given_up(keep(&["b"]))),
        (
            "a, while b is added",
            joining(&keep(&["a", "b"]), "b", false),
        ),
        (
            "a, while it is added to b",
            joining(&keep(&["a", "b"]), "a", false),
        ),
        ("a, while it is replaced", joining(&whole, "a", true)),
        ("a, while b is replaced", joining(&whole, "b", true)),
        ("a, which was to be the source", recovery("a")),
        ("a, which was ready to be the source", ready(recovery("a"))),
        (
            "a, which had stopped for b",
            mark_stopped(&ready(recovery("b")), "a", None),
        ),
        (
            "a, in the place of another restore",
            ready(begin_restore(&whole, "b", None, "t9", snapshot()).unwrap()),
        ),
    ]
}

/// All volumes of the record are gone, or that of a is what it was: a snapshot is restored in every state of the record. That is the way out of
/// which every message speaks.
#[test]
fn a_snapshot_is_restored_whatever_the_record_says_of_the_member_and_whatever_is_left() {
    let gone = |own: bool| -> BTreeSet<String> {
        let own = own.then(|| "vol-a".to_owned());
        own.into_iter()
            .chain(["vol-b", "vol-c"].map(str::to_owned))
            .collect()
    };
    for (what, before) in records_with_a_place() {
        for (volume, content) in [
            ("vol-new", VolumeContent::Blank),
            ("vol-a", VolumeContent::Blank),
            ("vol-a", data_of("a", None)),
            ("vol-a", data_of("a", Some("t1"))),
        ] {
            let what = format!("{what}, {volume} {content:?}");
            let begun = begin_restore(&before, "a", Some(volume), "t3", snapshot());
            let begun = begun.unwrap_or_else(|why| panic!("{what}: {why}"));
            if before.is_formed() {
                let called_off = without_reason(&begun);
                let joins = called_off
                    .replacing
                    .as_ref()
                    .is_some_and(|of| of.member == "a");
                assert!(called_off == before || joins, "{what}: {called_off:?}");
            }
            let mut record = begun;
            let mut place = Place {
                volume,
                content,
                shown: false,
            };
            let gone = gone(volume == "vol-new");
            let steps = (0..20).take_while(|_| take_step(&mut place, &mut record, &gone));
            assert!(steps.count() < 20, "{what}");
            let members: Vec<&String> = record.members.keys().collect();
            assert!(record.is_formed() && members == ["a"], "{what}: {record:?}");
            assert_eq!(record.replacing, None, "{what}");
        }
    }
}

/// A member that left the spec, and one that must wait for another to be added, are no places.
#[test]
fn a_member_that_left_or_whose_volume_nobody_knows_takes_no_snapshot() {
    let mut record = formed_record();
    let left = record.members.remove("b").unwrap();
    assert!(begin_restore(&record, "b", None, "t2", snapshot()).is_err());
    record.retire_member("b", &left);
    record.leaving.insert("b".into(), Leaving::default());
    let why = begin_restore(&record, "b", Some("vol-b"), "t2", snapshot()).unwrap_err();
    assert!(why.contains("was removed"), "{why}");
}

/// A volume is gone, and its place is blank. Whatever the record says, and however many members there are: an instance goes on, or says by which
/// command an operator does.
#[test]
fn whoever_lost_its_volume_goes_on_or_names_the_command_that_does() {
    let mut named = 0;
    for etcd in ["main", "events"] {
        for (what, before) in records_with_a_place() {
            let mut records = vec![(what, before.clone())];
            for blank in [true, false] {
                let mut forming = before.clone();
                forming.generation = Generation::forming("t1");
                forming.replacing = None;
                for one in forming.members.values_mut() {
                    (one.blank, one.member_id) = (blank, None);
                }
                records.push(("being founded", forming));
            }
            for (what, record) in records {
                let says = take_steps_of_all(etcd, &record);
                let names_command = |step: &FormationStep| match step {
                    FormationStep::Wait(why)
                    | FormationStep::Refuse(why)
                    | FormationStep::Ask(why) => {
                        ["restore", "recover", "forget"].iter().any(|verb| {
                            why.contains(&format!("kctl etcd {verb} x.example.com --etcd {etcd}"))
                        }) || etcd == "main" && why.contains("`kctl delete cluster`")
                    }
                    _ => true,
                };
                named += 1;
                assert!(says.iter().any(names_command), "{etcd}, {what}: {says:#?}");
            }
        }
    }
    assert!(named > 60, "{named}");
}

/// What the members say once nothing changes any more, each on a blank volume: all volumes of the record are gone, and nobody answers.
fn take_steps_of_all(etcd: &str, record: &FormationRecord) -> Vec<FormationStep> {
    let all = names();
    let gone: BTreeSet<String> = all.iter().map(|member| format!("vol-{member}")).collect();
    let says = all.iter().map(|member| {
        let volume = format!("vol-new-{member}");
        let mut volumes = vec![seen(member, Some("i-1"))];
        volumes[0].id.clone_from(&volume);
        let own = OwnMember {
            etcd,
            member,
            volume: &volume,
            gone: &gone,
            gone_twice: &gone,
            live: Err("nobody answers"),
            ..own_member(&all, &volumes)
        };
        decide_step(&own, Some(record), &VolumeContent::Blank)
    });
    says.collect()
}

/// A snapshot that cannot be had keeps nobody from serving: the restore has changed nothing yet.
#[test]
fn a_member_that_comes_back_before_the_snapshot_is_ready_serves_as_before() {
    let begun = begin_restore(&formed_record(), "a", None, "t2", snapshot()).unwrap();
    let mut ready = begun.clone();
    if let Some(recovering) = &mut ready.next {
        recovering.ready = true;
    }
    for (member, shown, record, starts) in [
        ("a", false, &begun, true),
        ("b", false, &begun, true),
        ("a", true, &begun, false),
        ("b", true, &begun, true),
        ("a", false, &ready, false),
        ("b", false, &ready, false),
        ("b", false, &mark_stopped(&begun, "c", None), false),
    ] {
        let (all, volume) = (names(), format!("vol-{member}"));
        let volumes: Vec<SeenVolume> = all.iter().map(|one| seen(one, Some("i-1"))).collect();
        let own = OwnMember {
            member,
            volume: &volume,
            shown,
            ..own_member(&all, &volumes)
        };
        let step = decide_step(&own, Some(record), &data_of(member, None));
        let is_start = step == FormationStep::Start(EtcdStart::Existing);
        assert_eq!(is_start, starts, "{member} {shown} {step:?}");
    }
    // What it lacks, it does not start with.
    let (all, volumes) = (names(), [seen("a", Some("i-a"))]);
    let own = own_member(&all, &volumes);
    let step = decide_step(&own, Some(&begun), &without_log(data_of("a", None)));
    assert!(!matches!(step, FormationStep::Start(_)), "{step:?}");
}
