//! What holds up a minor upgrade of an etcd cluster, by what its members report in the state store: it begins only while all members
//! are well, because each control plane that is replaced takes one away.

use crate::{FormationRecord, ReportedMember, find_etcd_problems};
use std::collections::BTreeMap;

/// What has to be over before an etcd cluster gets another minor, with the next step. `None` if nothing is, or nothing is known.
pub fn find_upgrade_obstacle(
    etcd: &str,
    members: &[ReportedMember],
    records: &BTreeMap<String, FormationRecord>,
) -> Option<(String, String)> {
    let own = || members.iter().filter(|one| one.status.etcd == etcd);
    own().next()?;
    let mut problems = find_etcd_problems(members, records).into_iter();
    if let Some(problem) = problems.find(|problem| problem.etcd == etcd) {
        return Some((problem.one_line(), problem.next));
    }
    let running =
        own().filter_map(|one| Some((&one.status.instance, one.status.running.as_ref()?)));
    let listed = running.flat_map(|(instance, one)| {
        let learners = one.members.iter().filter(|member| member.learner);
        let learners = learners.map(|member| member.id.as_str());
        let is_own = one.learner.then_some(one.id.as_str());
        learners.chain(is_own).map(move |id| (instance, id))
    });
    let (instance, id) = listed.into_iter().next()?;
    Some((
        format!("{etcd}: member {id} does not vote yet, as {instance} reports"),
        "wait until it votes: kctl etcd members".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Generation, ListedMember, MemberStatus, RecordedMember, Replacing, RunningMember,
        describe_members,
    };
    use node::formatted::UnknownFields;
    use time::OffsetDateTime;

    fn statuses() -> Vec<MemberStatus> {
        let status = |name: &str| MemberStatus {
            etcd: "main".to_owned(),
            instance: format!("i-{name}"),
            written: "2026-11-24T10:00:00Z".to_owned(),
            volume: Some(format!("vol-{name}")),
            running: Some(RunningMember {
                name: format!("etcd-{name}"),
                id: name.to_owned(),
                leader: Some("a".to_owned()),
                version: "3.5.31".to_owned(),
                ..RunningMember::default()
            }),
            ..MemberStatus::default()
        };
        ["a", "b", "c"].map(status).into()
    }

    fn record() -> FormationRecord {
        let recorded = |name: &str| {
            let of = RecordedMember::on_volume(&format!("vol-{name}"), true);
            (name.to_owned(), of)
        };
        FormationRecord::new(
            Generation::formed("c1", "t"),
            ["a", "b", "c"].map(recorded).into(),
        )
    }

    fn obstacle(all: Vec<MemberStatus>, record: FormationRecord) -> Option<String> {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(1_795_514_400 + 20);
        let members = describe_members(all, now);
        let records = [("main".to_owned(), record)].into();
        let found = find_upgrade_obstacle("main", &members, &records);
        found.map(|(message, next)| {
            assert!(!next.is_empty(), "{message}");
            message
        })
    }

    #[test]
    fn every_member_must_report_run_and_vote_and_none_change() {
        assert_eq!(obstacle(statuses(), record()), None);
        assert_eq!(obstacle(Vec::new(), record()), None, "nothing is known");
        let mut silent = statuses();
        silent[1].written = "2026-11-24T09:00:00Z".to_owned();
        let mut down = statuses();
        down[1].running = None;
        down[1].problem = Some("etcd does not answer".to_owned());
        let mut learner = statuses();
        learner[0]
            .running
            .as_mut()
            .unwrap()
            .members
            .push(ListedMember {
                id: "d".to_owned(),
                name: String::new(),
                learner: true,
            });
        let mut replacing = record();
        replacing.replacing = Some(Replacing {
            member: "b".to_owned(),
            added: true,
            unknown: UnknownFields::new(),
        });
        for (all, record, said) in [
            (
                silent,
                record(),
                "main on i-b: protokube has reported nothing",
            ),
            (down, record(), "main on i-b: etcd does not answer"),
            (
                statuses()[..2].to_vec(),
                record(),
                "no instance reports member c",
            ),
            (learner, record(), "member d does not vote yet"),
            (statuses(), replacing, "member b is being added"),
        ] {
            let found = obstacle(all, record).unwrap_or_default();
            assert!(found.contains(said), "{said}: {found}");
        }
    }
}
