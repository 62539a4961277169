//! Laws of a restore: whatever the volume of the member holds, it ends with the snapshot or changes nothing.

use super::laws_test::own_member;
use super::recover_test::{data_of, formed_record, names, seen};
use super::*;
use std::collections::BTreeSet;

fn snapshot() -> RestoredSnapshot {
    RestoredSnapshot {
        store: "s3://backups/x".into(),
        name: "2026-11-25T05:40:00Z-000123".into(),
        sha256: "0a".into(),
        bytes: 4096,
        revision: Some(700),
        keys: Some(12),
        bump: REVISION_BUMP,
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
}

/// Takes the step of the member a, as protokube does. False: nothing was changed.
fn take_step(place: &mut Place, record: &mut FormationRecord, gone: &BTreeSet<String>) -> bool {
    let all = names();
    let mut volumes = vec![seen("a", Some("i-a"))];
    volumes[0].id = place.volume.into();
    let own = OwnMember {
        volume: place.volume,
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
        FormationStep::Restore {
            snapshot: restores, ..
        } => {
            assert_eq!(restores, Some(snapshot()));
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
            assert_eq!(*log, EtcdLog::Of(restored_log()), "old data is started");
            return false;
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
        let mut place = Place { volume, content };
        let mut record = begin_restore(&formed_record(), "a", "t2", snapshot()).unwrap();
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
        assert!(record.given_up.contains_key("c1"), "{what}");
        // The old volume, should it come back, stays stopped.
        assert!(must_stay_stopped("a", Some(&record), &data_of("a", None)));
    }
}

/// The record after the restore was called off, but for why.
fn without_reason(record: &FormationRecord) -> FormationRecord {
    let mut next = call_off_restore(record, "why").unwrap();
    if let FormationState::Formed { refused, .. } = &mut next.state {
        *refused = None;
    }
    next
}

/// Until somebody is stopped, a restore can be called off, and the cluster is as it was.
#[test]
fn a_restore_is_called_off_until_the_first_member_stops() {
    let before = formed_record();
    let begun = begin_restore(&before, "a", "t2", snapshot()).unwrap();
    assert_eq!(without_reason(&begun), before);
    let other = begin_restore(&begun, "b", "t3", snapshot()).unwrap();
    assert_eq!(without_reason(&other), before);
    let mut ready = begun.clone();
    let FormationState::Recovering(recovering) = &mut ready.state else {
        panic!("it is restored");
    };
    recovering.ready = true;
    let stopped = mark_stopped(&begun, "b", None);
    let recovery = begin_recovery(&before, "a", "t2", RecoveryTerms::default()).unwrap();
    for late in [&before, &ready, &stopped, &recovery] {
        assert!(call_off_restore(late, "").is_err(), "{late:?}");
    }
    // Another snapshot after members were stopped: they stay stopped, and it cannot be called off.
    let second = begin_restore(&stopped, "a", "t3", snapshot()).unwrap();
    let FormationState::Recovering(recovering) = &second.state else {
        panic!("it is restored");
    };
    assert!(recovering.stopped.contains("b"));
    assert!(call_off_restore(&second, "").is_err());
    // Only the member itself had stopped, or everything was ready to stop.
    let mut prepared = begin_restore(&ready, "a", "t3", snapshot()).unwrap();
    assert!(call_off_restore(&prepared, "").is_err());
    prepared = begin_restore(&mark_stopped(&begun, "a", None), "a", "t4", snapshot()).unwrap();
    assert!(call_off_restore(&prepared, "").is_err());
    assert!(begin_restore(&before, "d", "t2", snapshot()).is_err());
}

/// What the cluster had begun with is known again, so that an old command restores nothing once more.
#[test]
fn a_restore_that_is_called_off_or_refused_leaves_the_record_as_it_was() {
    let mut before = formed_record();
    if let FormationState::Formed { restored, .. } = &mut before.state {
        *restored = Some(snapshot());
    }
    let begun = begin_restore(&before, "a", "t2", snapshot()).unwrap();
    let again = begin_restore(&begun, "a", "t3", snapshot()).unwrap();
    for begun in [begun, again] {
        assert_eq!(without_reason(&begun), before);
        let ended = call_off_restore(&begun, "it is damaged").unwrap();
        // A write whose answer was lost, and that arrives later, finds another record.
        assert_ne!(ended, before);
        let FormationState::Formed { refused, .. } = ended.state else {
            panic!("{ended:?}");
        };
        let refused = refused.unwrap();
        assert_eq!(
            (refused.token.as_str(), refused.why.as_str()),
            (begun.token(), "it is damaged")
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
        let raised = snapshot + revision_bump(snapshot, newest);
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
    let mut record = begin_restore(&formed_record(), "a", "t2", snapshot()).unwrap();
    if let FormationState::Recovering(recovering) = &mut record.state {
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
