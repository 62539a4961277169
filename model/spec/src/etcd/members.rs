//! Compares the etcd members of a spec with the formation record. Members may be added or removed, and one whose volume was deleted gets
//! an empty one: nothing is founded on it, so it may be the last one too. None is renamed: that would be another member.

use crate::read::Problem;
use cloud::Cloud;
use engine::Snapshot;
use etcd_rules::{FormationRecord, NextGeneration, describe_restore};
use full::EtcdCluster;
use node::names::etcd_volume;
use std::collections::BTreeMap;

/// The members with which an etcd cluster was formed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormedMembers {
    /// Name of the Kubernetes cluster.
    cluster: String,
    /// Key: the member's name.
    members: BTreeMap<String, FormedMember>,
    /// How many of them hold the cluster's data.
    with_data: usize,
    /// The cluster is being founded.
    forming: bool,
    /// A snapshot is being restored, in the place of what the members have.
    restoring: bool,
}

/// A member that the spec has no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwantedMember {
    /// Its name: `d`.
    pub member: String,
    /// Id of the volume with its data, which is kept.
    pub volume: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FormedMember {
    volume: String,
    /// The zone of the volume; `None`: the volume does not exist.
    zone: Option<String>,
    /// No observed volume has this member's volume name, so an update would create an empty one.
    needs_new_volume: bool,
    /// EC2 says that the volume of the record does not exist.
    deleted: bool,
    /// The member has no data: it is being added, or nobody has seen its volume while the cluster is founded.
    added: bool,
    /// The member may not have all data: it is being added or replaced.
    joining: bool,
}

impl FormedMembers {
    /// The members of the record of etcd cluster `etcd`, with the zones of the volumes that it names.
    pub fn from_record(
        record: &FormationRecord,
        cluster: &str,
        etcd: &str,
        seen: &Snapshot<Cloud>,
    ) -> Self {
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
        let replacing = record.replacing.as_ref();
        let added = replacing.filter(|of| of.added);
        let added = added.map(|of| &of.member);
        let members = record.members.iter().map(|(name, member)| {
            let volume = member.volume.clone();
            let zone = zone(&volume);
            let member = FormedMember {
                volume,
                zone,
                needs_new_volume: !has_volume(name),
                deleted: false,
                added: added == Some(name)
                    || record.is_forming() && !member.blank && !member.prepared,
                joining: replacing.is_some_and(|of| of.member == *name),
            };
            (name.clone(), member)
        });
        Self {
            cluster: cluster.to_owned(),
            members: members.collect(),
            with_data: record.data_members(),
            forming: record.is_forming(),
            restoring: record
                .next
                .as_ref()
                .and_then(NextGeneration::snapshot)
                .is_some(),
        }
    }

    /// Recorded volumes that the snapshot lacks where an update would create an empty one.
    pub fn missing_volumes(&self) -> Vec<String> {
        let lost = self.members.values();
        let lost = lost.filter(|member| member.needs_new_volume && member.zone.is_none());
        lost.map(|member| member.volume.clone()).collect()
    }

    /// The members that the spec has no longer.
    pub fn unwanted(&self, spec: &EtcdCluster) -> Vec<UnwantedMember> {
        let members = self.members.iter();
        let unwanted = members.filter(|(name, _)| !has_member(spec, name));
        let unwanted = unwanted.map(|(name, member)| UnwantedMember {
            member: name.clone(),
            volume: member.volume.clone(),
        });
        unwanted.collect()
    }

    /// Why the members that the spec has no longer cannot be removed; `None` if they can.
    fn find_obstacle(&self, spec: &EtcdCluster) -> Option<String> {
        let stays =
            |(name, member): (&String, &FormedMember)| has_member(spec, name) && !member.added;
        if !self.members.iter().any(stays) {
            return Some("at least one member with the data has to stay".to_owned());
        }
        if self.forming {
            return Some(
                "the cluster is being founded: `kctl etcd forget` goes on without a member whose machine does not come".to_owned(),
            );
        }
        let mut added = spec.members.iter();
        let added = added.find(|one| !self.members.contains_key(&one.name))?;
        Some(format!(
            "members are not renamed: remove it in one update, and add {} in the next",
            added.name
        ))
    }

    /// EC2 says that this volume does not exist.
    pub fn mark_deleted(&mut self, volume: &str) {
        for member in self.members.values_mut() {
            member.deleted |= member.volume == volume;
        }
    }
}

/// One error for each difference, at its path in the spec, and a warning if data is lost that the others do not have. `index` is the index
/// of the etcd cluster in the spec.
pub fn check_members(index: usize, spec: &EtcdCluster, formed: &FormedMembers) -> Vec<Problem> {
    let at = format!("spec.etcdClusters[{index}].etcdMembers");
    let mut problems = Vec::new();
    let obstacle = formed.find_obstacle(spec);
    for (name, member) in &formed.members {
        if !has_member(spec, name)
            && let Some(obstacle) = &obstacle
        {
            let message = format!(
                "etcd cluster {} was formed with member {name}, whose data is on {}, and the spec has no such member",
                spec.name, member.volume
            );
            let home = member.zone.as_ref();
            let home = home.map_or(String::new(), |zone| format!(" in a group of zone {zone}"));
            problems.push(
                Problem::error(at.clone(), message)
                    .hint(format!("put member {name} back{home}: {obstacle}")),
            );
        }
    }
    for (position, wanted) in spec.members.iter().enumerate() {
        let at = format!("{at}[{position}]");
        let Some(member) = formed.members.get(&wanted.name) else {
            // protokube adds it, one member at a time.
            continue;
        };
        // No cluster is founded on the empty volume of a formed one: it takes a new member, or a snapshot.
        if member.needs_new_volume && !member.deleted {
            let message = format!(
                "the data of member {} of etcd cluster {} is on {}, which EC2 does not list under the cluster's tags: an empty volume would be \
                 created instead",
                wanted.name, spec.name, member.volume
            );
            problems.push(
                Problem::error(format!("{at}.name"), message)
                    .hint(recovery_hint(spec, formed, member)),
            );
        }
        if let Some(zone) = member.zone.as_ref().filter(|zone| **zone != wanted.zone) {
            let message = format!(
                "the data of member {} of etcd cluster {} is on {} in {zone}, and group {} is in {}",
                wanted.name, spec.name, member.volume, wanted.group, wanted.zone
            );
            problems.push(
                Problem::error(format!("{at}.instanceGroup"), message).hint(format!(
                    "name a group of zone {zone}: a volume stays in its zone"
                )),
            );
        }
    }
    problems.extend(warn_of_loss(at, spec, formed));
    problems
}

/// A warning if volumes are gone, and the members that are left cannot give new ones the data: they are no quorum, or nobody has it.
fn warn_of_loss(at: String, spec: &EtcdCluster, formed: &FormedMembers) -> Option<Problem> {
    let is_lost = |one: &&FormedMember| one.needs_new_volume && one.deleted && !one.added;
    let wanted = spec.members.iter();
    let wanted = wanted.filter_map(|one| formed.members.get(&one.name));
    let lost: Vec<&str> = wanted.filter(is_lost).map(|one| &*one.volume).collect();
    let is_left = |one: &&FormedMember| one.zone.is_some() && !one.joining;
    let left = formed.members.values().filter(is_left).count();
    let is_expected = formed.forming || formed.restoring;
    if is_expected || lost.is_empty() || left > formed.with_data / 2 {
        return None;
    }
    let (cluster, etcd) = (&formed.cluster, &spec.name);
    let has_others = formed.members.values().any(|one| one.zone.is_some());
    let (why, recovers) = match left {
        0 => ("no other volume surely has all data", has_others),
        _ => ("the members that are left are no quorum", true),
    };
    let recovery = if recovers {
        format!(
            "`kctl etcd recover {cluster} --etcd {etcd}` shows whose data the cluster can go on with. Or "
        )
    } else {
        String::new()
    };
    let message = format!(
        "the data of etcd cluster {etcd} was on {}, which EC2 says does not exist, and {why}: what is created instead is empty, and etcd \
         does not serve on it by itself",
        lost.join(" and ")
    );
    let hint = format!(
        "after the update: {recovery}{}",
        describe_restore(cluster, etcd)
    );
    Some(Problem::warning(at, message).hint(hint))
}

fn has_member(spec: &EtcdCluster, name: &str) -> bool {
    spec.members.iter().any(|wanted| wanted.name == name)
}

/// How to get a member's volume back, or to go on without it.
fn recovery_hint(spec: &EtcdCluster, formed: &FormedMembers, member: &FormedMember) -> String {
    let volume = &member.volume;
    let then = match formed.with_data {
        0 | 1 if !member.added => {
            let restore = describe_restore(&formed.cluster, &spec.name);
            format!(
                "after which {restore}. Or create a volume from one of its EBS snapshots, in the same zone and with all of its tags"
            )
        }
        _ => "and a new member takes its place".to_owned(),
    };
    format!(
        "restore the tags of {volume} (the cluster's tags and Name), as the cluster's other volumes have them; if its data is lost, delete \
         {volume}: the next update creates an empty volume, {then}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_support::etcd_cluster;

    fn formed_in_zones(members: &[(&str, &str)]) -> FormedMembers {
        let member = |(name, zone): &(&str, &str)| {
            let member = FormedMember {
                volume: format!("vol-{name}"),
                zone: Some((*zone).to_owned()),
                needs_new_volume: false,
                deleted: false,
                added: false,
                joining: false,
            };
            ((*name).to_owned(), member)
        };
        FormedMembers {
            cluster: "x.example.com".to_owned(),
            members: members.iter().map(member).collect(),
            with_data: members.len(),
            forming: false,
            restoring: false,
        }
    }

    fn check_messages(spec: &EtcdCluster, formed: &FormedMembers) -> Vec<String> {
        let text = |problem: Problem| {
            format!(
                "{}: {}; {}",
                problem.path,
                problem.message,
                problem.hint.unwrap_or_default()
            )
        };
        check_members(1, spec, formed)
            .into_iter()
            .map(text)
            .collect()
    }

    /// The etcd cluster of a spec with these members, all in one zone.
    fn etcd_with_members(names: &[&str]) -> EtcdCluster {
        etcd_cluster("main", names)
    }

    fn first_zone(spec: &EtcdCluster) -> String {
        spec.members[0].zone.clone()
    }

    #[test]
    fn a_renamed_member_is_one_that_is_missing() {
        let spec = etcd_with_members(&["b"]);
        let home = first_zone(&spec);
        assert_eq!(
            check_messages(&spec, &formed_in_zones(&[("a", &home)])),
            [format!(
                "spec.etcdClusters[1].etcdMembers: etcd cluster main was formed with member a, whose data is on vol-a, and the spec has no such member; put member a back in a group of zone {home}: at least one member with the data has to stay"
            ),]
        );
    }

    #[test]
    fn a_member_cannot_leave_the_zone_of_its_volume() {
        let spec = etcd_with_members(&["a"]);
        let messages = check_messages(&spec, &formed_in_zones(&[("a", "elsewhere")]));
        assert_eq!(messages.len(), 1);
        assert!(
            messages[0].starts_with(
                "spec.etcdClusters[1].etcdMembers[0].instanceGroup: the data of member a"
            ),
            "{messages:?}"
        );
        assert!(
            messages[0].ends_with("name a group of zone elsewhere: a volume stays in its zone"),
            "{messages:?}"
        );
    }

    /// This holds even if the volume exists under another name: it matters whether an empty one would be created.
    #[test]
    fn no_empty_volume_is_made_in_the_place_of_a_members() {
        for (names, way) in [
            (&["a"][..], "kctl etcd restore x.example.com --etcd main"),
            (&["a", "b", "c"], "a new member takes its place"),
        ] {
            let spec = etcd_with_members(names);
            let at_home = spec.members.iter();
            let at_home = at_home.map(|one| (one.name.as_str(), one.zone.as_str()));
            let mut formed = formed_in_zones(&at_home.collect::<Vec<_>>());
            assert_eq!(check_messages(&spec, &formed), [""; 0]);
            formed.members.get_mut("a").unwrap().needs_new_volume = true;
            let messages = check_messages(&spec, &formed);
            assert_eq!(messages.len(), 1, "{messages:?}");
            for part in [
                "spec.etcdClusters[1].etcdMembers[0].name: ",
                "vol-a",
                "restore the tags of",
                way,
            ] {
                assert!(messages[0].contains(part), "{part}: {messages:?}");
            }
            formed.members.get_mut("a").unwrap().zone = None;
            formed.mark_deleted("vol-a");
            let errors = check_members(1, &spec, &formed);
            assert!(errors.iter().all(|one| !one.is_error()), "{errors:?}");
        }
    }

    /// Whatever is left of the volumes, whatever the record says: an update makes those that are gone, and says how to go on if nobody
    /// else can give the new ones the data.
    #[test]
    fn an_update_makes_every_volume_that_is_gone_and_says_how_the_data_comes_back() {
        let names = ["a", "b", "c"];
        let mut warned = 0;
        for (count, gone, joining) in (1..=3_usize).flat_map(|count| {
            let all = (0..1_usize << count).map(move |gone| (count, gone));
            all.flat_map(move |(count, gone)| {
                (0..=count).map(move |joining| (count, gone, joining))
            })
        }) {
            let is_gone = |at: usize| gone & (1 << at) != 0;
            let spec = etcd_with_members(&names[..count]);
            let home = first_zone(&spec);
            let at_home: Vec<(&str, &str)> =
                names[..count].iter().map(|one| (*one, &*home)).collect();
            let mut formed = formed_in_zones(&at_home);
            for at in (0..count).filter(|at| is_gone(*at)) {
                let member = formed.members.get_mut(names[at]).unwrap();
                (member.zone, member.needs_new_volume) = (None, true);
                formed.mark_deleted(&format!("vol-{}", names[at]));
            }
            if let Some(one) = names
                .get(joining)
                .and_then(|one| formed.members.get_mut(*one))
            {
                one.joining = true;
            }
            let left = (0..count)
                .filter(|at| !is_gone(*at) && *at != joining)
                .count();
            let said = check_members(1, &spec, &formed);
            let what = format!("{count} {gone} {joining}: {said:?}");
            assert!(said.iter().all(|one| !one.is_error()), "{what}");
            let is_lost = gone > 0 && left <= count / 2;
            assert_eq!(said.len(), usize::from(is_lost), "{what}");
            if let Some(warning) = said.first() {
                warned += 1;
                let hint = warning.hint.as_ref().unwrap();
                assert!(
                    hint.contains("kctl etcd restore x.example.com --etcd main"),
                    "{what}"
                );
                let has_any = (0..count).any(|at| !is_gone(at));
                assert_eq!(hint.contains("kctl etcd recover"), has_any, "{what}");
                // Who restores already need not be told.
                formed.restoring = true;
                assert!(check_members(1, &spec, &formed).is_empty(), "{what}");
            }
        }
        assert!(warned > 10, "{warned}");
    }

    proptest! {
        #[test]
        fn a_spec_removes_members_or_adds_some_and_keeps_one_with_the_data(
            names in prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..=5),
            recorded in prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..=5),
        ) {
            let spec = etcd_with_members(&names);
            let mut formed = formed_in_zones(&recorded.iter().map(|name| (*name, "")).collect::<Vec<_>>());
            // A volume that is gone says nothing of zones.
            formed.members.values_mut().for_each(|member| member.zone = None);
            let missing: Vec<&str> = recorded.iter().filter(|name| !names.contains(name)).copied().collect();
            let adds = names.iter().any(|name| !recorded.contains(name));
            let stays = recorded.iter().any(|name| names.contains(name));
            let refused = if adds || !stays { missing.len() } else { 0 };
            prop_assert_eq!(check_members(0, &spec, &formed).len(), refused);
            let unwanted: Vec<String> = formed.unwanted(&spec).into_iter().map(|one| one.member).collect();
            prop_assert_eq!(&unwanted, &missing);
            // What a cluster that is being founded waits for is forgotten by command.
            formed.forming = true;
            prop_assert_eq!(check_members(0, &spec, &formed).len(), missing.len());
        }
    }
}
