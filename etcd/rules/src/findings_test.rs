//! Laws of what reviewers found: each could take the API away or keep a cluster from coming back.

use super::laws_test::own_member;
use super::recover_test::{all_seen, data_of, formed_record, names};
use super::restore_test::snapshot;
use super::*;

/// Every record that a cluster had before it became c2.
fn records_before() -> Vec<FormationRecord> {
    let formed = formed_record();
    let alone = FormationRecord {
        members: [("a".to_owned(), formed.members["a"].clone())].into(),
        ..formed.clone()
    };
    let terms = RecoveryTerms::default();
    let recovery = begin_recovery(&formed, "a", "t2", terms).unwrap();
    let restore = begin_restore(&formed, "b", None, "t2", snapshot()).unwrap();
    let mut ready = restore.clone();
    ready.next.as_mut().unwrap().ready = true;
    let stopped = mark_stopped(&ready, "c", None);
    vec![formed, alone, recovery, restore, ready, stopped]
}

/// The member of c2 on its volume, after the cluster c1 was given up for it.
fn newer_data(member: &str) -> VolumeContent {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = data_of(member, None)
    else {
        panic!("data");
    };
    let (cluster_id, member_id) = ("c2".to_owned(), format!("new-{member}"));
    VolumeContent::FileSystem(FileSystemContent::Marked {
        marker: Marker {
            token: "t2".into(),
            cluster_id: Some(cluster_id.clone()),
            member_id: Some(member_id.clone()),
            ..marker
        },
        log: EtcdLog::Of(LogIdentity {
            cluster_id,
            member_id,
        }),
    })
}

/// Somebody puts an older version of the record back while the members serve.
#[test]
fn an_older_version_of_the_record_never_stops_a_member_that_runs() {
    let formed: FormedClusters = [
        ("c1".to_owned(), [].into()),
        ("c2".to_owned(), ["c1".to_owned()].into()),
    ]
    .into();
    let (all, volumes) = (names(), all_seen());
    for record in records_before() {
        for member in record.members.keys() {
            let volume = format!("vol-{member}");
            for formed in [None, Some(&formed)] {
                let own = OwnMember {
                    member,
                    volume: &volume,
                    shown: true,
                    formed,
                    ..own_member(&all, &volumes)
                };
                let content = newer_data(member);
                assert!(!must_stay_stopped(member, Some(&record), &content));
                let step = decide_step(&own, Some(&record), &content);
                let FormationStep::Ask(why) = &step else {
                    panic!("{member} {record:?}: {step:?}");
                };
                assert!(why.contains("Restore the newest version"), "{why}");
            }
        }
    }
}

/// The others need not wait until a person has repaired it, and what it had is given up by force only.
#[test]
fn a_damaged_file_system_of_another_member_holds_up_no_recovery() {
    let (all, volumes) = (names(), all_seen());
    let damaged = VolumeContent::Damaged("fsck says so".into());
    let own = OwnMember {
        member: "b",
        volume: "vol-b",
        ..own_member(&all, &volumes)
    };
    for force in [false, true] {
        let terms = RecoveryTerms {
            revision: None,
            force,
        };
        let mut record = begin_recovery(&formed_record(), "a", "t2", terms).unwrap();
        let early = decide_step(&own, Some(&record), &damaged);
        assert!(matches!(early, FormationStep::Refuse(_)), "{early:?}");
        record.next.as_mut().unwrap().ready = true;
        let step = decide_step(&own, Some(&record), &damaged);
        let stops = FormationStep::Stop {
            marker: None,
            damaged: true,
        };
        assert_eq!(step, stops);
        let record = mark_stopped(&record, "b", None);
        let said = find_newer("main", &record, None).unwrap_or_default();
        assert_eq!(said.contains("--force"), !force, "{said}");
        let again = decide_step(&own, Some(&record), &damaged);
        assert!(matches!(again, FormationStep::Refuse(_)), "{again:?}");
        // Only the member that it is restored on has to be whole.
        let source = OwnMember {
            member: "a",
            volume: "vol-a",
            ..own
        };
        let step = decide_step(&source, Some(&record), &damaged);
        assert!(matches!(step, FormationStep::Refuse(_)), "{step:?}");
    }
}

/// etcd of an older minor ends at once in a cluster whose members are all of a newer one.
#[test]
fn no_member_joins_a_cluster_whose_members_are_all_of_a_newer_minor() {
    let (all, volumes) = (names(), all_seen());
    let live = LiveCluster {
        cluster_id: "c1".into(),
        members: Vec::new(),
    };
    let mut record = formed_record();
    record.members.remove("b");
    for (own_version, others, joins) in [
        ("3.5.31", ["3.6.12", "3.6.12"], false),
        ("3.5.31", ["3.6.12", "3.5.31"], true),
        ("3.6.12", ["3.6.12", "3.6.12"], true),
        ("3.6.12", ["3.5.31", "3.5.31"], true),
    ] {
        let peer = |(name, version): (&str, &str)| {
            let peer = RunningMember {
                version: version.into(),
                ..RunningMember::default()
            };
            (name.to_owned(), Ok(peer))
        };
        let peers: Peers = [("a", others[0]), ("c", others[1])].map(peer).into();
        let own = OwnMember {
            member: "b",
            volume: "vol-b",
            version: own_version,
            live: Ok(&live),
            peers: &peers,
            ..own_member(&all, &volumes)
        };
        let step = decide_step(&own, Some(&record), &VolumeContent::Blank);
        match &step {
            FormationStep::Record(_) => assert!(joins, "{own_version} {others:?}"),
            FormationStep::Wait(why) => {
                assert!(
                    !joins && why.contains("replace this control plane"),
                    "{why}"
                );
            }
            step => panic!("{own_version} {others:?}: {step:?}"),
        }
    }
}
