//! Whether the etcd clusters survive the loss of an instance. The rolling update asks before each control plane, and
//! so does every command that ends one.

use etcd_rules::{CORRUPT, FormationRecord, ReportedMember, member_name_matches};
use std::collections::BTreeMap;
use std::fmt;

/// An etcd cluster as its members describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdCluster {
    /// `main` or `events`.
    pub name: String,
    /// Its members, learners included.
    pub members: Vec<EtcdMember>,
}

/// A member of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its name.
    pub name: String,
    /// The instance that it runs on, if known.
    pub instance: Option<String>,
    /// Why it is not healthy: `its pod is not ready`. `None`: it is.
    pub problem: Option<String>,
}

/// What the loss of an instance means for etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Every cluster keeps its quorum.
    QuorumKept,
    /// A cluster has one member, on that instance: the API is away until a replacement has its volume.
    Outage,
}

/// Why an instance must not be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A member is unhealthy.
    Unhealthy {
        /// The etcd cluster.
        cluster: String,
        /// The member.
        member: String,
        /// Why.
        problem: String,
    },
    /// Too few members would remain.
    QuorumLost {
        /// The etcd cluster.
        cluster: String,
        /// How many members would remain.
        remaining: usize,
        /// How many are needed.
        quorum: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unhealthy {
                cluster,
                member,
                problem,
            } => write!(
                out,
                "member {member} of etcd cluster {cluster} is not healthy: {problem}"
            ),
            Self::QuorumLost {
                cluster,
                remaining,
                quorum,
            } => write!(
                out,
                "etcd cluster {cluster} would have {remaining} members left and needs {quorum}"
            ),
        }
    }
}

/// Whether all etcd clusters survive the loss of that instance: every other member is healthy, and the members that
/// remain are a majority. A cluster of one member has none to lose: that is an outage, not a refusal. An instance
/// without a member may always go.
pub fn would_survive(clusters: &[EtcdCluster], instance: &str) -> Result<Survival, Refusal> {
    let mut survival = Survival::QuorumKept;
    for cluster in clusters {
        let is_there = |member: &&EtcdMember| member.instance.as_deref() == Some(instance);
        let lost = cluster.members.iter().filter(is_there).count();
        if lost == 0 {
            continue;
        }
        if lost == cluster.members.len() {
            survival = Survival::Outage;
            continue;
        }
        let mut others = cluster.members.iter().filter(|member| !is_there(member));
        let unhealthy = others.find_map(|member| Some((member, member.problem.as_ref()?)));
        if let Some((member, problem)) = unhealthy {
            return Err(Refusal::Unhealthy {
                cluster: cluster.name.clone(),
                member: member.name.clone(),
                problem: problem.clone(),
            });
        }
        let remaining = cluster.members.len() - lost;
        let quorum = cluster.members.len() / 2 + 1;
        if remaining < quorum {
            return Err(Refusal::QuorumLost {
                cluster: cluster.name.clone(),
                remaining,
                quorum,
            });
        }
    }
    Ok(survival)
}

/// Finds the members whose pods run, but which may not vote, according to the record of their cluster and to what they report in the
/// state store. Such a member itself may still be taken away, except while the whole cluster is founded or recovered.
pub fn find_hidden_problems(
    clusters: &mut [EtcdCluster],
    records: &BTreeMap<String, FormationRecord>,
    reports: &[ReportedMember],
) {
    for cluster in clusters {
        let record = records.get(&cluster.name);
        for member in &mut cluster.members {
            let told = record.and_then(|record| recorded_problem(record, &member.name));
            let mut reported = reports.iter().filter(|one| {
                one.is_stored_lately()
                    && one.status.etcd == cluster.name
                    && Some(&one.status.instance) == member.instance.as_ref()
            });
            let told = told.or_else(|| reported.find_map(|one| reported_problem(one, record)));
            member.problem = member.problem.take().or(told);
        }
    }
}

/// What the record says is done with a member.
fn recorded_problem(record: &FormationRecord, member: &str) -> Option<String> {
    if record.is_forming() {
        return Some("its etcd cluster is being founded".to_owned());
    }
    if let Some(next) = &record.next {
        let from = &next.from;
        return Some(format!(
            "its etcd cluster is being recovered from member {from}"
        ));
    }
    let mut removals = record.pending_removals();
    if record
        .replacing
        .as_ref()
        .is_some_and(|of| of.member == member)
    {
        Some("it is being replaced or added".to_owned())
    } else if removals.any(|(name, leaving)| name == member && leaving.begun) {
        Some("it is being removed".to_owned())
    } else {
        None
    }
}

/// Why a member that reports does not count as one that votes. A full database (NOSPACE) is none of the reasons: a larger quota
/// comes with new instances.
fn reported_problem(member: &ReportedMember, record: Option<&FormationRecord>) -> Option<String> {
    let running = member.status.running.as_ref()?;
    if let Some(cluster_id) = record.and_then(FormationRecord::formed_id)
        && cluster_id != running.cluster_id
    {
        let of = &running.cluster_id;
        return Some(format!("it runs in another etcd cluster, {of}"));
    }
    let mut corrupt = running.members_with_alarm(CORRUPT).into_iter();
    if corrupt.any(|name| name == running.name) {
        return Some("its data differ from that of the others (alarm CORRUPT)".to_owned());
    }
    match member.role {
        "learner" => Some("it is a learner and does not vote yet".to_owned()),
        "no leader" => Some("it knows no leader".to_owned()),
        _ => None,
    }
}

/// The instance that reports a member lately, if one does.
pub(crate) fn reporting_instance<'a>(
    reports: &'a [ReportedMember],
    etcd: &str,
    member: &str,
) -> Option<&'a str> {
    let mut own = reports.iter().filter(|one| {
        let running = one.status.running.as_ref();
        let is_named = |name: &str| member_name_matches(etcd, name, member);
        one.status.etcd == etcd
            && one.is_stored_lately()
            && running.is_some_and(|running| is_named(&running.name))
    });
    own.next().map(|one| one.status.instance.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd_rules::{Generation, Leaving, RecordedMember, Replacing, describe_members};
    use node::formatted::UnknownFields;
    use serde_json::json;
    use time::OffsetDateTime;

    /// A learner's pod runs like that of a voter.
    #[test]
    fn no_other_member_goes_while_one_changes_and_the_changing_one_may() {
        let member = |number: usize| {
            let recorded = RecordedMember::on_volume("vol-1", true);
            (format!("etcd-{number}"), recorded)
        };
        let still =
            FormationRecord::new(Generation::formed("c", "t"), (0..3).map(member).collect());
        let replaced = FormationRecord {
            replacing: Some(Replacing {
                member: "etcd-1".to_owned(),
                added: true,
                unknown: UnknownFields::new(),
            }),
            ..still.clone()
        };
        let mut asked = still.clone();
        asked
            .leaving
            .insert("etcd-1".to_owned(), Leaving::default());
        let mut begun = asked.clone();
        begun.leaving.get_mut("etcd-1").unwrap().begun = true;
        for (record, survives) in [
            (still, true),
            (asked, true),
            (replaced, false),
            (begun, false),
        ] {
            let mut clusters = [cluster(&[true; 3])];
            find_hidden_problems(&mut clusters, &[("main".to_owned(), record)].into(), &[]);
            assert_eq!(would_survive(&clusters, "i-0").is_ok(), survives);
            assert!(would_survive(&clusters, "i-1").is_ok());
        }
    }

    #[test]
    fn no_member_goes_while_the_cluster_is_founded_or_recovered() {
        let members: BTreeMap<_, _> = (0..3)
            .map(|number| {
                (
                    format!("etcd-{number}"),
                    RecordedMember::on_volume("vol-1", true),
                )
            })
            .collect();
        let next = json!({"from": "etcd-0", "token": "t2", "source": {"member": {}}});
        let next = serde_json::from_value(next).unwrap();
        let mut recovering = FormationRecord::new(Generation::formed("c", "t"), members.clone());
        recovering.next = Some(next);
        let forming = FormationRecord::new(Generation::forming("t"), members);
        for record in [forming, recovering] {
            let mut clusters = [cluster(&[true; 3])];
            find_hidden_problems(&mut clusters, &[("main".to_owned(), record)].into(), &[]);
            for instance in ["i-0", "i-1", "i-2"] {
                assert!(would_survive(&clusters, instance).is_err());
            }
        }
    }

    /// What the member on `i-1` reports, by what differs from a healthy follower.
    #[test]
    fn no_other_member_goes_while_one_reports_that_it_does_not_vote() {
        let formed = Generation::formed("c", "t");
        let record = FormationRecord::new(formed, BTreeMap::new());
        let records = BTreeMap::from([("main".to_owned(), record)]);
        let running = json!({"name": "etcd-1", "id": "1", "clusterId": "c", "leader": "2",
            "members": [{"id": "1", "name": "etcd-1"}, {"id": "2", "name": "etcd-2"}]});
        let alarm = |name: &str, member: &str| json!([{"alarm": name, "member": member}]);
        for (field, value, survives) in [
            ("leader", json!("1"), true),
            ("leader", json!(null), false),
            ("learner", json!(true), false),
            ("clusterId", json!("d"), false),
            ("raisedAlarms", alarm("CORRUPT", "1"), false),
            ("raisedAlarms", alarm("CORRUPT", "2"), true),
            ("raisedAlarms", alarm("NOSPACE", "1"), true),
        ] {
            let mut running = running.clone();
            running[field] = value;
            let told = json!({"etcd": "main", "instance": "i-1", "running": running});
            let told = serde_json::from_value(told).unwrap();
            let mut reports = describe_members(vec![told], OffsetDateTime::UNIX_EPOCH);
            for (age, survives) in [(10, survives), (1000, true)] {
                reports[0].stored_seconds = Some(age);
                let mut clusters = [cluster(&[true; 3])];
                find_hidden_problems(&mut clusters, &records, &reports);
                assert_eq!(would_survive(&clusters, "i-0").is_ok(), survives, "{field}");
                assert!(would_survive(&clusters, "i-1").is_ok());
            }
        }
    }

    fn cluster(healthy: &[bool]) -> EtcdCluster {
        let member = |(number, healthy): (usize, &bool)| EtcdMember {
            name: format!("etcd-{number}"),
            instance: Some(format!("i-{number}")),
            problem: (!healthy).then(|| "its pod is not ready".to_owned()),
        };
        EtcdCluster {
            name: "main".to_owned(),
            members: healthy.iter().enumerate().map(member).collect(),
        }
    }

    #[test]
    fn a_majority_of_healthy_members_has_to_remain() {
        for (healthy, instance, expected) in [
            (&[true, true, true][..], "i-0", Ok(Survival::QuorumKept)),
            // The broken one itself may go.
            (&[false, true, true], "i-0", Ok(Survival::QuorumKept)),
            (&[true; 5], "i-4", Ok(Survival::QuorumKept)),
            (&[true], "i-0", Ok(Survival::Outage)),
            (&[false], "i-0", Ok(Survival::Outage)),
            (&[true, false, true], "i-9", Ok(Survival::QuorumKept)),
        ] {
            assert_eq!(would_survive(&[cluster(healthy)], instance), expected);
        }
        let refusal = |healthy: &[bool]| {
            would_survive(&[cluster(&[true; 3]), cluster(healthy)], "i-0")
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refusal(&[true, false, true]),
            "member etcd-1 of etcd cluster main is not healthy: its pod is not ready"
        );
        assert_eq!(
            refusal(&[true, true]),
            "etcd cluster main would have 1 members left and needs 2"
        );
    }
}
