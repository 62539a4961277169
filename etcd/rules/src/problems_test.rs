use super::*;
use crate::{Generation, Leaving, ListedMember, RaisedAlarm};

const WRITTEN: &str = "2026-11-24T10:00:00Z";

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::parse(WRITTEN, &Rfc3339).unwrap() + time::Duration::seconds(seconds)
}

/// Member `a` on the instance `i-a` with the volume `vol-a`, which wrote so many seconds before `at(1000)`.
fn report(member: &str, age: i64) -> MemberStatus {
    MemberStatus {
        etcd: "main".to_owned(),
        instance: format!("i-{member}"),
        member: Some(member.to_owned()),
        written: at(1000 - age).format(&Rfc3339).unwrap(),
        volume: Some(format!("vol-{member}")),
        running: Some(RunningMember {
            name: format!("etcd-{member}"),
            id: member.to_owned(),
            cluster_id: "c".to_owned(),
            leader: Some("a".to_owned()),
            fsync_p99_seconds: Some(0.064),
            ..RunningMember::default()
        }),
        ..MemberStatus::default()
    }
}

fn changed(member: &str, change: impl FnOnce(&mut RunningMember)) -> MemberStatus {
    let mut status = report(member, 20);
    change(status.running.as_mut().unwrap());
    status
}

fn record(generation: Generation, members: &[&str]) -> FormationRecord {
    let recorded = members.iter().map(|name| {
        let recorded = RecordedMember::on_volume(&format!("vol-{name}"), true);
        ((*name).to_owned(), recorded)
    });
    FormationRecord::new(generation, recorded.collect())
}

fn formed(members: &[&str]) -> FormationRecord {
    record(Generation::formed("c", "t"), members)
}

fn problems(reports: Vec<MemberStatus>, record: Option<FormationRecord>) -> Vec<EtcdProblem> {
    let members = describe_members(reports, at(1000));
    let records = record.map(|record| ("main".to_owned(), record));
    find_etcd_problems(&members, &records.into_iter().collect())
}

fn lines(reports: Vec<MemberStatus>, record: Option<FormationRecord>) -> Vec<String> {
    let all = problems(reports, record);
    assert!(all.iter().all(|one| !one.next.is_empty()), "{all:?}");
    all.iter().map(EtcdProblem::one_line).collect()
}

#[test]
fn members_that_all_report_have_no_problem_and_nor_has_a_cluster_that_is_not_there() {
    let healthy = || vec![report("a", 20), report("b", SILENT)];
    assert!(lines(healthy(), Some(formed(&["a", "b"]))).is_empty());
    assert!(lines(Vec::new(), None).is_empty());
    let forming = record(Generation::forming("t"), &["a", "b"]);
    assert!(lines(Vec::new(), Some(forming)).is_empty());
    assert!(find_slow_disks(&describe_members(healthy(), at(1000))).is_empty());
}

#[test]
fn a_recorded_member_that_is_silent_or_that_nobody_reports_is_a_problem() {
    assert_eq!(
        lines(
            vec![report("a", 20), report("b", SILENT + 1)],
            Some(formed(&["a", "b", "c"]))
        ),
        [
            "main on i-b: protokube has reported nothing for 3m01s: what is known of the member is that old",
            "main: no instance reports member c with volume vol-c",
        ]
    );
    assert_eq!(
        lines(Vec::new(), Some(formed(&["a"]))),
        ["main: no instance reports member a with volume vol-a"]
    );
    let mut undated = report("a", 0);
    undated.written = "yesterday".to_owned();
    assert_eq!(
        lines(vec![undated], None),
        ["main on i-a: the time of its report cannot be read"]
    );
}

#[test]
fn what_an_instance_left_that_others_have_replaced_says_nothing() {
    let left = |volume: Option<&str>, member: Option<&str>| MemberStatus {
        instance: "i-gone".to_owned(),
        volume: volume.map(str::to_owned),
        member: member.map(str::to_owned),
        problem: Some("no volume is free".to_owned()),
        running: None,
        ..report("a", 900)
    };
    for (left, says) in [
        (left(None, None), false),
        (left(None, Some("a")), false),
        (left(Some("vol-a"), Some("a")), false),
        (left(Some("vol-old"), None), false),
        (left(Some("vol-b"), Some("b")), true),
        (left(None, Some("b")), true),
    ] {
        let said = lines(
            vec![report("a", 20), left.clone()],
            Some(formed(&["a", "b"])),
        );
        // As long as nobody reports `b`, one without a volume may be it.
        let may_be_b = says || left.volume.is_none() && left.member.is_none();
        let named = said.iter().any(|line| line.contains("i-gone"));
        assert_eq!(named, may_be_b, "{left:?}: {said:?}");
        let said = lines(vec![report("a", 20), left], Some(formed(&["a"])));
        assert!(said.is_empty(), "{said:?}");
    }
}

#[test]
fn what_protokube_waits_for_and_a_missing_leader_are_problems_of_the_member() {
    let mut refuses = report("a", 20);
    refuses.problem = Some("vol-a holds an XFS file system".to_owned());
    refuses.running = None;
    let alone = changed("b", |running| running.leader = None);
    let all = problems(vec![refuses, alone], Some(formed(&["a", "b"])));
    let said: Vec<(String, bool)> = all.iter().map(|of| (of.one_line(), of.is_told)).collect();
    assert_eq!(
        said,
        [
            (
                "main on i-a: vol-a holds an XFS file system".to_owned(),
                true
            ),
            (
                "main on i-b: it knows no leader, and accepts no writes".to_owned(),
                false
            ),
        ]
    );
    let mut silent = report("a", 900);
    silent.running.as_mut().unwrap().leader = None;
    assert_eq!(lines(vec![silent], Some(formed(&["a"]))).len(), 1);
}

#[test]
fn an_alarm_is_one_problem_of_the_etcd_cluster_and_an_old_one_counts_only_if_nobody_reports() {
    let full = |member: &str| {
        changed(member, |running| {
            running.alarms = vec!["NOSPACE".to_owned()];
        })
    };
    let both = Some(formed(&["a", "b"]));
    let said = problems(vec![full("a"), full("b")], both.clone());
    assert_eq!(said.len(), 1);
    assert_eq!(
        said[0].one_line(),
        "main: alarm NOSPACE: etcd accepts no writes"
    );
    assert!(said[0].next.contains("delete objects") && said[0].next.contains("full-disk.md"));
    let old = || MemberStatus {
        written: WRITTEN.to_owned(),
        ..full("a")
    };
    let has_alarm = |reports| {
        let said = lines(reports, both.clone());
        said.iter().any(|line| line.contains("alarm"))
    };
    assert!(!has_alarm(vec![old(), report("b", 20)]));
    assert!(has_alarm(vec![old(), report("b", 900)]));
}

#[test]
fn an_alarm_names_the_member_for_which_it_was_raised() {
    let listed = ["a", "b"].map(|id| ListedMember {
        id: id.to_owned(),
        name: format!("etcd-{id}"),
        learner: false,
    });
    let corrupt = |member: &str, raised: Option<&str>| {
        changed(member, |running| {
            running.alarms = vec!["CORRUPT".to_owned()];
            running.raised_alarms = vec![RaisedAlarm {
                alarm: "CORRUPT".to_owned(),
                member: raised.map(str::to_owned),
            }];
            running.members = listed.to_vec();
        })
    };
    for (raised, line) in [
        (
            Some("b"),
            "main: alarm CORRUPT, raised for etcd-b: etcd accepts no writes",
        ),
        (
            Some("f"),
            "main: alarm CORRUPT, raised for f: etcd accepts no writes",
        ),
        (None, "main: alarm CORRUPT: etcd accepts no writes"),
    ] {
        let reports = ["a", "b"].map(|member| corrupt(member, raised));
        let said = problems(reports.into(), Some(formed(&["a", "b"])));
        assert_eq!(said[0].one_line(), line);
        assert!(said[0].next.contains("#a-corrupt-member"));
    }
}

#[test]
fn two_clusters_under_one_name_and_a_change_of_members_are_problems() {
    let other = changed("b", |running| running.cluster_id = "d".to_owned());
    assert_eq!(
        lines(vec![report("a", 20), other], Some(formed(&["a", "b"]))),
        ["main: its members are of different etcd clusters: c, d"]
    );
    for (added, says) in [
        (
            false,
            "main: member b has lost its data and is being replaced by a new one",
        ),
        (true, "main: member b is being added"),
    ] {
        let mut changing = formed(&["a", "b"]);
        changing.replacing = Some(Replacing {
            member: "b".to_owned(),
            added,
            unknown: serde_json::Map::new(),
        });
        let said = lines(vec![report("a", 20), report("b", 20)], Some(changing));
        assert_eq!(said, [says]);
    }
}

#[test]
fn a_slow_disk_is_no_problem_but_a_sentence() {
    let slow = changed("b", |running| running.fsync_p99_seconds = Some(0.128));
    let members = describe_members(vec![report("a", 20), slow], at(1000));
    let said = find_slow_disks(&members);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("main on i-b") && said[0].contains("128 ms"));
}

#[test]
fn a_recovery_says_from_whom_and_who_has_stopped() {
    let mut recovering = crate::begin_recovery(
        &record_with_ids(&["a", "b", "c"]),
        "a",
        "token",
        crate::RecoveryTerms::default(),
    )
    .unwrap();
    let Some(state) = &mut recovering.next else {
        panic!("{recovering:?}");
    };
    state.stopped.insert("b".to_owned(), None);
    let said = lines(vec![report("a", 20)], Some(recovering));
    assert_eq!(
        said,
        ["main: it is being recovered from member a; stopped: b"]
    );
}

#[test]
fn members_that_leave_and_those_that_a_formation_waits_for_are_named() {
    let mut leaves = formed(&["a", "b", "c"]);
    leaves.leaving.insert("b".to_owned(), Leaving::default());
    leaves.leaving.insert(
        "c".to_owned(),
        Leaving {
            begun: true,
            ..Leaving::default()
        },
    );
    let reports = ["a", "b", "c"].map(|member| report(member, 20));
    assert_eq!(
        lines(reports.into(), Some(leaves)),
        [
            "main: member b waits to be removed, because the spec has it no longer",
            "main: member c is being removed, because the spec has it no longer",
        ]
    );
    let mut forming = record(Generation::forming("t"), &["a", "b"]);
    forming.members.get_mut("b").unwrap().blank = false;
    let mut waits = report("a", 20);
    waits.running = None;
    let said = problems(vec![waits], Some(forming));
    assert_eq!(
        said[0].one_line(),
        "main: it is being founded, and waits for member b: no instance has taken its volume vol-b"
    );
    assert!(
        said[0]
            .next
            .contains("kctl etcd forget CLUSTER b --etcd main"),
        "{said:?}"
    );
}

#[test]
fn an_old_report_of_a_removed_member_is_left_behind() {
    let mut record = formed(&["a"]);
    let removed = RecordedMember::on_volume("vol-b", true);
    record.leaving.insert("b".to_owned(), Leaving::default());
    record.retire_member("b", &removed);
    let hidden = MemberStatus {
        volume: None,
        running: None,
        ..report("b", SILENT + 1)
    };
    for (status, left) in [
        (report("b", SILENT + 1), true),
        (hidden, true),
        (report("b", 20), false),
        (report("a", SILENT + 1), false),
    ] {
        let member = describe_members(vec![status], at(1000)).remove(0);
        assert_eq!(member.is_left_behind(&record), left, "{member:?}");
    }
}

fn record_with_ids(members: &[&str]) -> FormationRecord {
    let mut record = formed(members);
    for (name, member) in &mut record.members {
        member.member_id = Some(format!("id-{name}"));
    }
    record
}
