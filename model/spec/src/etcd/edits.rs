//! What a spec says otherwise than the record of an etcd cluster. Members are born with their names and their volumes: no
//! release of kctl renames, adds or removes one yet, and a spec that pretends so would leave etcd without its quorum.

use crate::read::Problem;
use cloud::Cloud;
use engine::Snapshot;
use full::EtcdCluster;
use node::etcd::FormationRecord;
use node::names::etcd_volume;
use std::collections::BTreeMap;

/// The members with which an etcd cluster was formed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formed {
    /// By name.
    members: BTreeMap<String, FormedMember>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FormedMember {
    volume: String,
    /// Where the volume lies; `None`: it is not there.
    zone: Option<String>,
    /// An update makes an empty volume for it: none that is seen has the name of the member's.
    made_anew: bool,
}

impl Formed {
    /// What the record of that etcd cluster of a cluster says, and where the volumes that it names lie.
    pub fn of(record: &FormationRecord, cluster: &str, etcd: &str, seen: &Snapshot<Cloud>) -> Self {
        let has_volume = |member: &str| {
            let name = etcd_volume(cluster, etcd, member);
            let is = |one: &Cloud| matches!(one, Cloud::EbsVolume(volume) if volume.name == name);
            seen.items.iter().any(|item| is(&item.resource))
        };
        let zone = |volume: &str| {
            let item = seen.items.iter().find(|item| item.physical == volume)?;
            match &item.resource {
                Cloud::EbsVolume(volume) => Some(volume.availability_zone.clone()),
                _ => None,
            }
        };
        let members = record.members.iter().map(|(name, member)| {
            let volume = member.volume.clone();
            let zone = zone(&volume);
            let member = FormedMember {
                volume,
                zone,
                made_anew: !has_volume(name),
            };
            (name.clone(), member)
        });
        Self {
            members: members.collect(),
        }
    }
}

/// Every difference, at its place in the spec; `index` is that of the etcd cluster there.
pub fn edits(index: usize, spec: &EtcdCluster, formed: &Formed) -> Vec<Problem> {
    let at = format!("spec.etcdClusters[{index}].etcdMembers");
    let mut problems = Vec::new();
    for (name, member) in &formed.members {
        if !spec.members.iter().any(|wanted| wanted.name == *name) {
            let message = format!(
                "etcd cluster {} was formed with member {name}, whose data lies on {}, and the spec has no such member",
                spec.name, member.volume
            );
            let home = member.zone.as_ref();
            let home = home.map_or(String::new(), |zone| format!(" in a group of zone {zone}"));
            problems.push(Problem::error(at.clone(), message).hint(format!(
                "put member {name} back{home}: this release neither renames nor removes members of an etcd cluster that exists"
            )));
        }
    }
    for (position, wanted) in spec.members.iter().enumerate() {
        let at = format!("{at}[{position}]");
        let Some(member) = formed.members.get(&wanted.name) else {
            let all: Vec<&str> = formed.members.keys().map(String::as_str).collect();
            let message = format!(
                "etcd cluster {} was formed without member {}: its members are {}",
                spec.name,
                wanted.name,
                all.join(", ")
            );
            problems.push(
                Problem::error(format!("{at}.name"), message).hint(
                    "take it out: this release adds no members to an etcd cluster that exists",
                ),
            );
            continue;
        };
        if member.made_anew {
            let message = format!(
                "the data of member {} of etcd cluster {} lies on {}, which EC2 does not show by the cluster's tags: an empty volume would be \
                 made in its place",
                wanted.name, spec.name, member.volume
            );
            problems
                .push(Problem::error(format!("{at}.name"), message).hint(way_back(spec, member)));
        }
        if let Some(zone) = member.zone.as_ref().filter(|zone| **zone != wanted.zone) {
            let message = format!(
                "the data of member {} of etcd cluster {} lies on {} in {zone}, and group {} is in {}",
                wanted.name, spec.name, member.volume, wanted.group, wanted.zone
            );
            problems.push(
                Problem::error(format!("{at}.instanceGroup"), message).hint(format!(
                    "name a group of zone {zone}: a volume stays in its zone"
                )),
            );
        }
    }
    problems
}

/// A lone member can begin from a copy; one of several would have forgotten what it agreed to.
fn way_back(spec: &EtcdCluster, member: &FormedMember) -> String {
    let volume = &member.volume;
    let back = format!(
        "give {volume} its tags back, those of the cluster and its Name, as the cluster's other volumes have them"
    );
    match spec.members.len() {
        0 | 1 => format!(
            "{back}; if it is gone, make a volume of one of its EBS snapshots, in the same zone and with all of its tags"
        ),
        _ => format!("{back}: this release replaces no member of an etcd cluster"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_support::etcd;

    fn formed(members: &[(&str, &str)]) -> Formed {
        let member = |(name, zone): &(&str, &str)| {
            let member = FormedMember {
                volume: format!("vol-{name}"),
                zone: Some((*zone).to_owned()),
                made_anew: false,
            };
            ((*name).to_owned(), member)
        };
        Formed {
            members: members.iter().map(member).collect(),
        }
    }

    fn told(spec: &EtcdCluster, formed: &Formed) -> Vec<String> {
        let told = |problem: Problem| {
            format!(
                "{}: {}; {}",
                problem.path,
                problem.message,
                problem.hint.unwrap_or_default()
            )
        };
        edits(1, spec, formed).into_iter().map(told).collect()
    }

    /// The etcd cluster of a spec with these members, all in one zone.
    fn wanted(names: &[&str]) -> EtcdCluster {
        etcd("main", names)
    }

    fn home(spec: &EtcdCluster) -> String {
        spec.members[0].zone.clone()
    }

    #[test]
    fn a_renamed_member_is_one_that_is_missing_and_one_that_never_was() {
        let spec = wanted(&["b"]);
        let home = home(&spec);
        assert_eq!(told(&spec, &formed(&[("a", &home)])), [
            format!("spec.etcdClusters[1].etcdMembers: etcd cluster main was formed with member a, whose data lies on vol-a, and the spec has no such member; put member a back in a group of zone {home}: this release neither renames nor removes members of an etcd cluster that exists"),
            "spec.etcdClusters[1].etcdMembers[0].name: etcd cluster main was formed without member b: its members are a; take it out: this release adds no members to an etcd cluster that exists".to_owned(),
        ]);
    }

    #[test]
    fn a_member_cannot_leave_the_zone_of_its_volume() {
        let spec = wanted(&["a"]);
        let told = told(&spec, &formed(&[("a", "elsewhere")]));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with(
                "spec.etcdClusters[1].etcdMembers[0].instanceGroup: the data of member a"
            ),
            "{told:?}"
        );
        assert!(
            told[0].ends_with("name a group of zone elsewhere: a volume stays in its zone"),
            "{told:?}"
        );
    }

    /// Also where the volume itself is there, under another name: what is made is what counts.
    #[test]
    fn no_empty_volume_is_made_in_the_place_of_a_members() {
        for (names, way) in [
            (&["a"][..], "EBS snapshots"),
            (&["a", "b", "c"], "replaces no member"),
        ] {
            let spec = wanted(names);
            let at_home = spec.members.iter();
            let at_home = at_home.map(|one| (one.name.as_str(), one.zone.as_str()));
            let mut formed = formed(&at_home.collect::<Vec<_>>());
            assert_eq!(told(&spec, &formed), [""; 0]);
            formed.members.get_mut("a").unwrap().made_anew = true;
            let told = told(&spec, &formed);
            assert_eq!(told.len(), 1, "{told:?}");
            for part in [
                "spec.etcdClusters[1].etcdMembers[0].name: ",
                "vol-a",
                "tags back",
                way,
            ] {
                assert!(told[0].contains(part), "{part}: {told:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_spec_is_taken_exactly_if_its_members_are_those_of_the_record(
            names in prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..=5),
            recorded in prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..=5),
        ) {
            let spec = wanted(&names);
            let mut formed = formed(&recorded.iter().map(|name| (*name, "")).collect::<Vec<_>>());
            // A volume that is gone says nothing of zones.
            formed.members.values_mut().for_each(|member| member.zone = None);
            let different = names.iter().filter(|name| !recorded.contains(name)).count()
                + recorded.iter().filter(|name| !names.contains(name)).count();
            prop_assert_eq!(edits(0, &spec, &formed).len(), different);
        }
    }
}
