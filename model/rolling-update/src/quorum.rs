//! Whether the etcd clusters survive the loss of an instance. The rolling update asks before each control plane, and
//! so does every command that ends one.

use node::etcd::FormationRecord;
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
    /// True if it answers and has no alarm.
    pub healthy: bool,
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
            Self::Unhealthy { cluster, member } => {
                write!(
                    out,
                    "member {member} of etcd cluster {cluster} is not healthy"
                )
            }
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
        if let Some(member) = others.find(|member| !member.healthy) {
            return Err(Refusal::Unhealthy {
                cluster: cluster.name.clone(),
                member: member.name.clone(),
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

/// Counts members as not healthy that the record of their cluster says are being replaced, added or removed. Their pods run, but they
/// may not vote yet, or not any more. Such a member itself may still be taken away.
pub fn mark_changing(clusters: &mut [EtcdCluster], records: &BTreeMap<String, FormationRecord>) {
    for cluster in clusters {
        let Some(record) = records.get(&cluster.name) else {
            continue;
        };
        let replaced = record.replacing.as_ref().map(|of| &of.member);
        let removed = record.pending_removals();
        let removed = removed.filter(|(_, leaving)| leaving.begun);
        let changing: Vec<&String> = removed.map(|(name, _)| name).chain(replaced).collect();
        for member in &mut cluster.members {
            member.healthy &= !changing.contains(&&member.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::etcd::{FormationState, Leaving, RecordedMember, Replacing, UnknownFields};

    /// A learner's pod runs like that of a voter.
    #[test]
    fn no_other_member_goes_while_one_changes_and_the_changing_one_may() {
        let member = |number: usize| {
            let recorded = RecordedMember::on_volume("vol-1", true);
            (format!("etcd-{number}"), recorded)
        };
        let still = FormationRecord::new(
            FormationState::formed("c", "t"),
            (0..3).map(member).collect(),
        );
        let replaced = FormationRecord {
            replacing: Some(Replacing {
                member: "etcd-1".to_owned(),
                lost: None,
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
            mark_changing(&mut clusters, &[("main".to_owned(), record)].into());
            assert_eq!(would_survive(&clusters, "i-0").is_ok(), survives);
            assert!(would_survive(&clusters, "i-1").is_ok());
        }
    }

    fn cluster(healthy: &[bool]) -> EtcdCluster {
        let member = |(number, healthy): (usize, &bool)| EtcdMember {
            name: format!("etcd-{number}"),
            instance: Some(format!("i-{number}")),
            healthy: *healthy,
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
            "member etcd-1 of etcd cluster main is not healthy"
        );
        assert_eq!(
            refusal(&[true, true]),
            "etcd cluster main would have 1 members left and needs 2"
        );
    }
}
