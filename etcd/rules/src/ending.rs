//! Whether etcd keeps its quorum when a control plane ends that AWS announces: a Ready Node says nothing of the voter on it.

use super::member_status::MemberStatus;
use super::record::{FormationRecord, RecordedMember};

/// Why the control plane on `instance` should not end yet: without it this etcd cluster has no quorum, or may have none. `members`: names of
/// those that the cluster should have. `reports`: what instances have reported lately. A lone member is never kept back: there is nothing to
/// wait for.
pub fn find_ending_risk(
    etcd: &str,
    members: &[String],
    record: &FormationRecord,
    reports: &[MemberStatus],
    instance: &str,
) -> Option<String> {
    if members.len() <= 1 && record.members.len() <= 1 {
        return None;
    }
    let Some(cluster_id) = record.formed_id() else {
        return Some(format!("etcd {etcd} is being founded or recovered"));
    };
    let is_on = |status: &&MemberStatus, one: &RecordedMember| {
        status.etcd == etcd && status.volume.as_ref() == Some(&one.volume)
    };
    let ends = |one: &RecordedMember| {
        let mut own = reports.iter().filter(|status| is_on(status, one));
        own.any(|status| status.instance == instance)
    };
    // One that does not vote yet is no loss.
    let joins = record.replacing.as_ref();
    let joins = joins.and_then(|of| Some((&of.member, record.members.get(&of.member)?)));
    if let Some((member, one)) = joins
        && !ends(one)
    {
        return Some(format!(
            "member {member} of etcd {etcd} is being replaced or added"
        ));
    }
    if let Some((member, _)) = record.pending_removals().find(|(_, leaving)| leaving.begun) {
        return Some(format!("member {member} of etcd {etcd} is being removed"));
    }
    let votes = |one: &RecordedMember| {
        let mut own = reports.iter().filter(|status| is_on(status, one));
        own.any(|status| {
            status.instance != instance
                && status.running.as_ref().is_some_and(|running| {
                    running.cluster_id == cluster_id && running.leader.is_some() && !running.learner
                })
        })
    };
    let joining = joins.map(|(member, _)| member);
    let voters = record.members.iter();
    let voters = voters.filter(|(member, _)| Some(*member) != joining);
    let all = voters.clone().count();
    let others = voters.filter(|(_, one)| votes(one)).count();
    (others <= all / 2)
        .then(|| format!("{others} of {all} members of etcd {etcd} vote on other control planes"))
}

#[cfg(test)]
mod tests {
    use super::super::record::{Generation, Replacing};
    use super::*;
    use crate::{Leaving, RunningMember};
    use node::formatted::UnknownFields;

    fn names(count: usize) -> Vec<String> {
        ["a", "b", "c", "d", "e"][..count]
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn formed(count: usize) -> FormationRecord {
        let member = |name: String| {
            let recorded = RecordedMember::on_volume(&format!("vol-{name}"), true);
            (name, recorded)
        };
        let members = names(count).into_iter().map(member).collect();
        FormationRecord::new(Generation::formed("c1", "t1"), members)
    }

    fn report(name: &str, leader: bool, learner: bool) -> MemberStatus {
        MemberStatus {
            etcd: "main".into(),
            instance: format!("i-{name}"),
            volume: Some(format!("vol-{name}")),
            running: Some(RunningMember {
                cluster_id: "c1".into(),
                leader: leader.then(|| "1".to_owned()),
                learner,
                ..RunningMember::default()
            }),
            ..MemberStatus::default()
        }
    }

    /// Every set of members that vote: the first may end if the others that vote are more than half of all.
    #[test]
    fn a_control_plane_ends_while_more_than_half_of_all_members_vote_on_others() {
        for count in 2..=5_usize {
            for voting in 0..1_usize << count {
                let is_voter = |at: usize| voting & (1 << at) != 0;
                for learns in [false, true] {
                    let reports = names(count)
                        .into_iter()
                        .enumerate()
                        .filter_map(|(at, name)| {
                            (is_voter(at) || learns)
                                .then(|| report(&name, is_voter(at), !is_voter(at)))
                        });
                    let reports: Vec<MemberStatus> = reports.collect();
                    let others = (1..count).filter(|at| is_voter(*at)).count();
                    let risk =
                        find_ending_risk("main", &names(count), &formed(count), &reports, "i-a");
                    assert_eq!(
                        risk.is_none(),
                        others > count / 2,
                        "{count} {voting} {risk:?}"
                    );
                }
            }
        }
        assert_eq!(
            find_ending_risk("main", &names(1), &formed(1), &[], "i-a"),
            None
        );
    }

    #[test]
    fn nobody_else_ends_while_a_member_joins_or_leaves_or_the_cluster_begins() {
        let reports: Vec<MemberStatus> = names(5)
            .iter()
            .map(|name| report(name, true, false))
            .collect();
        let find = |record: &FormationRecord, instance: &str| {
            find_ending_risk("main", &names(5), record, &reports, instance)
        };
        assert_eq!(find(&formed(5), "i-a"), None);
        let mut joins = formed(5);
        joins.replacing = Some(Replacing {
            member: "b".into(),
            added: false,
            unknown: UnknownFields::new(),
        });
        assert!(find(&joins, "i-a").unwrap().contains("member b"));
        assert_eq!(find(&joins, "i-b"), None, "it does not vote yet");
        let mut leaves = formed(5);
        let leaving = Leaving {
            begun: true,
            ..Leaving::default()
        };
        leaves.leaving.insert("c".into(), leaving);
        assert!(find(&leaves, "i-a").unwrap().contains("member c"));
        let mut begins = formed(5);
        begins.generation = Generation::forming("t2");
        assert!(find(&begins, "i-a").is_some());
    }
}
