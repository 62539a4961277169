//! Tests of when a recovery begins, and of what a given-up cluster cannot do.

use super::laws_test::own_member;
use super::*;
use node::components::EtcdStart;
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};

/// A formed cluster of three, each member on `vol-NAME` with the id `id-NAME`.
pub(super) fn formed_record() -> FormationRecord {
    let member = |name: &str| {
        let recorded = RecordedMember {
            member_id: Some(format!("id-{name}")),
            ..RecordedMember::on_volume(&format!("vol-{name}"), true)
        };
        (name.to_owned(), recorded)
    };
    let generation = Generation::formed("c1", "t1");
    FormationRecord::new(generation, ["a", "b", "c"].map(member).into())
}

/// A recovery from a, for which a is ready.
fn recovering_record(force: bool) -> FormationRecord {
    let terms = RecoveryTerms {
        revision: Some(7),
        force,
    };
    let mut record = begin_recovery(&formed_record(), "a", "t2", terms).unwrap();
    if let Some(recovering) = &mut record.next {
        recovering.ready = true;
    }
    record
}

pub(super) fn data_of(member: &str, stopped: Option<&str>) -> VolumeContent {
    let (volume, id) = (format!("vol-{member}"), format!("id-{member}"));
    VolumeContent::FileSystem(FileSystemContent::Marked {
        marker: Marker {
            format: FORMAT,
            cluster: "x.example.com".into(),
            etcd: "main".into(),
            member: member.into(),
            volume,
            token: "t1".into(),
            cluster_id: Some("c1".into()),
            member_id: Some(id.clone()),
            joins: None,
            etcd_version: None,
            stopped: stopped.map(str::to_owned),
            last_seen: None,
            unknown: UnknownFields::new(),
        },
        log: EtcdLog::Of(LogIdentity {
            cluster_id: "c1".into(),
            member_id: id,
        }),
    })
}

pub(super) fn seen(member: &str, holder: Option<&str>) -> SeenVolume {
    SeenVolume {
        id: format!("vol-{member}"),
        zone: "z".into(),
        state: "in-use".into(),
        tag: format!("{member}/a,b,c"),
        holder: holder.map(|instance| Holder {
            instance: instance.into(),
            state: "attached".into(),
            device: "/dev/xvdu".into(),
        }),
    }
}

pub(super) fn all_seen() -> Vec<SeenVolume> {
    ["a", "b", "c"]
        .map(|member| seen(member, Some(&format!("i-{member}"))))
        .into()
}

pub(super) fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).into()
}

/// One answer of EC2 may be old, and a volume that is attached to nothing may be attached in the next minute.
#[test]
fn the_source_waits_until_no_other_volume_can_come_back() {
    let set =
        |is: bool| -> BTreeSet<String> { is.then(|| "vol-b".to_owned()).into_iter().collect() };
    // How vol-b is seen, what EC2 has said of it for a minute, and by what force vol-c is stopped anyway.
    for (holder, gone, twice, force, restores) in [
        (Some("i-b"), false, false, true, false),
        (None, true, false, true, false),
        (None, true, true, false, true),
        (None, false, false, true, false),
        (None, false, true, false, false),
        (None, false, true, true, true),
    ] {
        let all = names();
        let mut volumes = vec![seen("a", Some("i-a")), seen("c", Some("i-c"))];
        volumes.extend((!gone).then(|| seen("b", holder)));
        let (gone, gone_twice, free_twice) = (set(gone), set(gone && twice), set(!gone && twice));
        let own = OwnMember {
            gone: &gone,
            gone_twice: &gone_twice,
            free_twice: &free_twice,
            ..own_member(&all, &volumes)
        };
        let last = Some(LastEntry::default());
        let record = mark_stopped(&recovering_record(force), "c", last);
        let step = decide_step(&own, Some(&record), &data_of("a", None));
        let what = format!("{holder:?} {gone:?} {twice} {force}: {step:?}");
        assert_eq!(
            matches!(step, FormationStep::Restore { .. }),
            restores,
            "{what}"
        );
        assert!(restores || matches!(step, FormationStep::Wait(_)), "{what}");
    }
}

#[test]
fn nobody_stops_before_the_source_is_ready() {
    let (all, volumes) = (names(), all_seen());
    let terms = RecoveryTerms::default();
    let asked = begin_recovery(&formed_record(), "a", "t2", terms).unwrap();
    let of_b = OwnMember {
        member: "b",
        volume: "vol-b",
        ..own_member(&all, &volumes)
    };
    let step = decide_step(&of_b, Some(&asked), &data_of("b", None));
    assert_eq!(step, FormationStep::Start(EtcdStart::Existing));
    for (version, can) in [
        ("3.5.9", false),
        ("3.5.10", true),
        ("3.6.0-rc.1", true),
        ("3.4.30", false),
        ("", false),
    ] {
        let own = OwnMember {
            version,
            shown: true,
            ..own_member(&all, &volumes)
        };
        match decide_step(&own, Some(&asked), &data_of("a", None)) {
            FormationStep::PrepareRestore(ready) if can => {
                let step = decide_step(&of_b, Some(&ready), &data_of("b", None));
                let FormationStep::Stop {
                    marker: Some(marker),
                    damaged: false,
                } = step
                else {
                    panic!("{step:?}");
                };
                assert_eq!(marker.stopped.as_deref(), Some("t2"));
            }
            FormationStep::Ask(why) if !can => assert!(why.contains("3.5.10"), "{why}"),
            step => panic!("{version}: {step:?}"),
        }
    }
}

/// A member that was being replaced may lack data, also for a second choice of the source.
#[test]
fn a_member_that_was_being_replaced_is_no_source_until_the_recovery_is_over() {
    let mut record = formed_record();
    record.replacing = Some(Replacing {
        member: "c".into(),
        added: true,
        unknown: UnknownFields::new(),
    });
    let terms = RecoveryTerms::default();
    let first = begin_recovery(&record, "a", "t2", terms).unwrap();
    for record in [&record, &first] {
        let why = begin_recovery(record, "c", "t3", terms).unwrap_err();
        assert!(why.contains("member c is being replaced"), "{why}");
    }
    let second = begin_recovery(&first, "b", "t3", terms).unwrap();
    let restored = LogIdentity {
        cluster_id: "c2".into(),
        member_id: "m2".into(),
    };
    assert_eq!(end_recovery(&second, &restored).unwrap().replacing, None);
    // Force can be added to a recovery that is under way, once.
    let force = RecoveryTerms {
        force: true,
        ..terms
    };
    let forced = begin_recovery(&second, "b", "t3", force).unwrap();
    assert!(begin_recovery(&forced, "b", "t3", force).is_err());
    let asked = recovering_record(false);
    let forced = begin_recovery(&asked, "a", "t2", force).unwrap();
    let forced = forced.next.unwrap();
    let source = MemberSource {
        force: true,
        ..MemberSource::default()
    };
    assert_eq!(
        (forced.source, forced.ready),
        (Source::Member(source), true)
    );
}

/// Data of a cluster that was given up is not started, whatever record is there.
#[test]
fn what_was_given_up_stays_stopped() {
    let given_up = end_recovery(
        &recovering_record(false),
        &LogIdentity {
            cluster_id: "c2".into(),
            member_id: "m2".into(),
        },
    );
    let stopped = mark_stopped(&recovering_record(false), "b", None);
    let (marked, unmarked) = (data_of("b", Some("t2")), data_of("b", None));
    for (record, content, stays) in [
        (None, &marked, true),
        (None, &unmarked, false),
        (Some(formed_record()), &marked, true),
        (Some(formed_record()), &unmarked, false),
        (Some(recovering_record(false)), &unmarked, false),
        (Some(stopped), &unmarked, true),
        (given_up, &unmarked, true),
    ] {
        let is = must_stay_stopped("b", record.as_ref(), content);
        assert_eq!(is, stays, "{record:?} {content:?}");
    }
    let (all, volumes) = (names(), all_seen());
    let own = OwnMember {
        member: "b",
        volume: "vol-b",
        ..own_member(&all, &volumes)
    };
    for record in [None, Some(formed_record())] {
        let step = decide_step(&own, record.as_ref(), &marked);
        let FormationStep::Refuse(why) = step else {
            panic!("{step:?}");
        };
        assert!(why.contains("was stopped for a recovery"), "{why}");
    }
}

/// A lost or restored older record does not bring a cluster back in whose place another one was formed.
#[test]
fn a_cluster_with_a_successor_is_neither_adopted_nor_started() {
    let (all, volumes) = (names(), all_seen());
    let replaced =
        |ids: &[&str]| -> BTreeSet<String> { ids.iter().map(ToString::to_string).collect() };
    for (formed, runs) in [
        (vec![("c1", replaced(&[]))], true),
        (vec![], true),
        (vec![("c1", replaced(&["c0"])), ("c0", replaced(&[]))], true),
        (
            vec![("c1", replaced(&[])), ("c2", replaced(&["c1"]))],
            false,
        ),
        (vec![("c1", replaced(&[])), ("c2", replaced(&[]))], false),
    ] {
        let formed = formed
            .into_iter()
            .map(|(id, replaced)| (id.to_owned(), replaced));
        let formed: FormedClusters = formed.collect();
        let own = OwnMember {
            formed: Some(&formed),
            ..own_member(&all, &volumes)
        };
        for record in [None, Some(formed_record())] {
            let step = decide_step(&own, record.as_ref(), &data_of("a", None));
            match &step {
                FormationStep::Refuse(why) => assert!(why.contains("etcd/formed/main/c2"), "{why}"),
                FormationStep::Record(adopted) => {
                    let given_up: Vec<&String> = adopted.retired.keys().collect();
                    let known: Vec<&String> = formed.get("c1").into_iter().flatten().collect();
                    assert_eq!(given_up, known);
                }
                FormationStep::Start(_) => {}
                step => panic!("{step:?}"),
            }
            assert_eq!(
                !matches!(step, FormationStep::Refuse(_)),
                runs,
                "{formed:?} {step:?}"
            );
        }
    }
    let object = formed_record().to_json();
    assert_eq!(read_replaced(object.as_bytes()), BTreeSet::new());
    let mut record = formed_record();
    let given_up = RetiredCluster {
        given_up: true,
        ..RetiredCluster::default()
    };
    // What is retired of the cluster itself is no cluster that it replaced.
    record.retired = BTreeMap::from([
        ("c0".to_owned(), given_up),
        ("c1".to_owned(), RetiredCluster::default()),
    ]);
    let replaced: Vec<String> = read_replaced(record.to_json().as_bytes())
        .into_iter()
        .collect();
    assert_eq!(replaced, ["c0"]);
}

/// Its copy may be the only one that is left.
#[test]
fn a_member_that_is_being_replaced_or_added_is_a_source_only_by_force() {
    for added in [false, true] {
        let mut record = formed_record();
        record.replacing = Some(Replacing {
            member: "a".into(),
            added,
            unknown: UnknownFields::new(),
        });
        let begin = |force| {
            let terms = RecoveryTerms {
                revision: None,
                force,
            };
            begin_recovery(&record, "a", "t2", terms)
        };
        assert!(begin(false).unwrap_err().contains("--force"));
        let mut begun = begin(true).unwrap();
        let (all, volumes) = (names(), all_seen());
        let own = own_member(&all, &volumes);
        let step = decide_step(&own, Some(&begun), &data_of("a", None));
        assert!(matches!(step, FormationStep::PrepareRestore(_)), "{step:?}");
        // Its log must be that of the recorded id.
        begun.members.get_mut("a").unwrap().member_id = Some("id-other".into());
        let step = decide_step(&own, Some(&begun), &data_of("a", None));
        assert!(matches!(step, FormationStep::Refuse(_)), "{step:?}");
        let restored = LogIdentity {
            cluster_id: "c2".into(),
            member_id: "m2".into(),
        };
        assert_eq!(end_recovery(&begun, &restored).unwrap().replacing, None);
    }
}
