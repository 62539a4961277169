//! Which volume a machine takes for an etcd cluster. Volumes say whose they are by kOps' tag `k8s.io/etcd/CLUSTER` =
//! `MEMBER/ALL,MEMBERS`; EC2 attaches a volume to one machine at a time, which is the lock.

use super::Record;
use std::collections::{BTreeMap, BTreeSet};

/// kOps' names of devices for etcd's volumes.
const DEVICES: [&str; 6] = [
    "/dev/xvdu",
    "/dev/xvdv",
    "/dev/xvdw",
    "/dev/xvdx",
    "/dev/xvdy",
    "/dev/xvdz",
];

/// A volume with an etcd cluster's tag, as EC2 shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVolume {
    /// `vol-...`.
    pub id: String,
    /// Availability zone.
    pub zone: String,
    /// `creating`, `available`, `in-use`, `deleting`, `error`.
    pub state: String,
    /// The tag's value: `a/a,b,c`.
    pub tag: String,
    /// Where it is attached.
    pub holder: Option<Holder>,
}

/// Who has a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// `i-...`.
    pub instance: String,
    /// `attaching`, `attached`, `detaching`, `busy`.
    pub state: String,
    /// As which device: `/dev/xvdu`.
    pub device: String,
}

/// Who looks for a volume.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// `i-...`.
    pub instance: &'a str,
    /// Its availability zone.
    pub zone: &'a str,
    /// The members that its group may run.
    pub members: &'a [String],
}

/// What to do about a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This machine has it.
    Held {
        /// Which.
        volume: &'a SeenVolume,
        /// Whose.
        member: String,
    },
    /// It is free: attach it.
    Attach {
        /// Which.
        volume: &'a SeenVolume,
        /// Whose.
        member: String,
    },
    /// None can be had now: why.
    Wait(String),
}

/// The tag that says whose volume of an etcd cluster it is.
pub fn volume_tag(etcd: &str) -> String {
    format!("k8s.io/etcd/{etcd}")
}

impl SeenVolume {
    /// The member whose it is, if its tag says so as kOps writes it.
    pub fn member(&self) -> Option<&str> {
        let (member, all) = self.tag.split_once('/')?;
        all.split(',').any(|one| one == member).then_some(member)
    }
}

/// The volume for a machine: the one it has, else a free one in its zone of a member that its group runs. Of two
/// volumes of one member only the recorded one counts.
pub fn choose<'a>(
    place: &Place<'_>,
    seen: &'a [SeenVolume],
    record: Option<&Record>,
) -> Choice<'a> {
    let mut reasons = Vec::new();
    let mut free = None;
    for member in place.members {
        let volume = match volume_of(member, seen, record) {
            Ok(volume) => volume,
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        let member = member.clone();
        match availability(place, volume, &member) {
            Availability::Held => return Choice::Held { volume, member },
            Availability::Free if free.is_none() => free = Some(Choice::Attach { volume, member }),
            Availability::Free => {}
            Availability::Not(reason) => reasons.push(reason),
        }
    }
    free.unwrap_or_else(|| {
        if reasons.is_empty() {
            reasons.push("this instance group runs no member of it".to_owned());
        }
        Choice::Wait(reasons.join("; "))
    })
}

enum Availability {
    Held,
    Free,
    Not(String),
}

fn availability(place: &Place<'_>, volume: &SeenVolume, member: &str) -> Availability {
    let id = &volume.id;
    match &volume.holder {
        Some(holder) if holder.instance == place.instance && holder.state == "attached" => {
            Availability::Held
        }
        Some(holder) => {
            let (state, holder) = (&holder.state, &holder.instance);
            Availability::Not(format!("{id} of member {member} is {state} to {holder}"))
        }
        None if volume.zone != place.zone => Availability::Not(format!(
            "{id} of member {member} is in {}, and this machine in {}",
            volume.zone, place.zone
        )),
        None if volume.state != "available" => {
            Availability::Not(format!("{id} of member {member} is {}", volume.state))
        }
        None => Availability::Free,
    }
}

/// The one volume of a member, or why there is none.
fn volume_of<'a>(
    member: &str,
    seen: &'a [SeenVolume],
    record: Option<&Record>,
) -> Result<&'a SeenVolume, String> {
    let of: Vec<&SeenVolume> = seen
        .iter()
        .filter(|volume| volume.member() == Some(member))
        .collect();
    let recorded = record.and_then(|record| record.members.get(member));
    let recorded = recorded.and_then(|one| of.iter().find(|volume| volume.id == one.volume));
    match (recorded, of.as_slice()) {
        (Some(volume), _) | (None, [volume]) => Ok(volume),
        (None, []) => Err(format!("no volume has the tag of member {member}")),
        (None, several) => {
            let ids: Vec<&str> = several.iter().map(|volume| volume.id.as_str()).collect();
            Err(format!(
                "{} all have the tag of member {member}: remove the tag of all but one",
                ids.join(" and ")
            ))
        }
    }
}

/// The volume that a member's name follows: the recorded one as soon as one is recorded, else the only one with its tag. A copy with the
/// same tags, on whatever machine it is, never moves a name.
pub fn named_volume<'a>(
    member: &str,
    seen: &'a [SeenVolume],
    record: Option<&Record>,
) -> Option<&'a SeenVolume> {
    let volume = volume_of(member, seen, record).ok()?;
    let recorded = record.and_then(|record| record.members.get(member));
    recorded
        .is_none_or(|recorded| recorded.volume == volume.id)
        .then_some(volume)
}

/// The volumes of all members that have exactly one, the recorded one if there are several.
pub(super) fn volumes_of_members<'a>(
    members: &[String],
    seen: &'a [SeenVolume],
    record: Option<&Record>,
) -> BTreeMap<String, &'a SeenVolume> {
    let volumes = members.iter().filter_map(|member| {
        let volume = volume_of(member, seen, record).ok()?;
        Some((member.clone(), volume))
    });
    volumes.collect()
}

/// A device name that is not in use; `first` says where among them to begin, so that two etcd clusters of one machine
/// that look at the same moment do not take the same.
pub fn device_name(in_use: &BTreeSet<String>, first: usize) -> Option<&'static str> {
    let from = DEVICES.iter().cycle().skip(first);
    let mut names = from.take(DEVICES.len()).copied();
    names.find(|name| !in_use.contains(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::{FORMAT, RecordedMember, State, Unknown};

    fn volume(id: &str, member: &str) -> SeenVolume {
        SeenVolume {
            id: id.into(),
            zone: "eu-west-1a".into(),
            state: "available".into(),
            tag: format!("{member}/a,b,c"),
            holder: None,
        }
    }

    fn held(volume: SeenVolume, instance: &str, state: &str) -> SeenVolume {
        SeenVolume {
            state: "in-use".into(),
            holder: Some(Holder {
                instance: instance.into(),
                state: state.into(),
                device: "/dev/xvdu".into(),
            }),
            ..volume
        }
    }

    fn chosen(members: &[&str], seen: &[SeenVolume], record: Option<&Record>) -> String {
        let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
        let place = Place {
            instance: "i-1",
            zone: "eu-west-1a",
            members: &members,
        };
        match choose(&place, seen, record) {
            Choice::Held { volume, member } => format!("held {} {member}", volume.id),
            Choice::Attach { volume, member } => format!("attach {} {member}", volume.id),
            Choice::Wait(reason) => format!("wait: {reason}"),
        }
    }

    #[test]
    fn a_machine_takes_one_volume_and_only_one_that_is_free_here_and_meant_for_its_group() {
        let [one, other] = [volume("vol-1", "a"), volume("vol-2", "b")];
        let both = [one.clone(), other.clone()];
        assert_eq!(chosen(&["a"], &both, None), "attach vol-1 a");
        assert_eq!(chosen(&["b"], &both, None), "attach vol-2 b");
        let mine = [one.clone(), held(other, "i-1", "attached")];
        assert_eq!(chosen(&["a", "b"], &mine, None), "held vol-2 b");
        let elsewhere = SeenVolume {
            zone: "eu-west-1b".into(),
            ..one.clone()
        };
        assert!(chosen(&["a"], &[elsewhere], None).contains("is in eu-west-1b"));
        let theirs = held(one.clone(), "i-2", "attached");
        assert!(chosen(&["a"], &[theirs], None).contains("attached to i-2"));
        let coming = held(one, "i-1", "attaching");
        assert!(chosen(&["a"], &[coming], None).starts_with("wait"));
        assert!(chosen(&["c"], &both, None).contains("no volume"));
    }

    #[test]
    fn of_two_volumes_of_a_member_only_the_recorded_one_counts() {
        let both = [volume("vol-1", "a"), volume("vol-2", "a")];
        assert!(chosen(&["a"], &both, None).contains("all but one"));
        let record = Record {
            format: FORMAT,
            state: State::forming("t"),
            members: [("a".to_owned(), RecordedMember::on("vol-2", false))].into(),
            unknown: Unknown::new(),
        };
        assert_eq!(chosen(&["a"], &both, Some(&record)), "attach vol-2 a");
    }

    #[test]
    fn a_tag_that_kops_would_not_write_makes_no_member() {
        for tag in ["a", "", "d/a,b,c", "/a"] {
            let strange = SeenVolume {
                tag: tag.into(),
                ..volume("vol-1", "a")
            };
            assert_eq!(strange.member(), None, "{tag}");
        }
    }

    #[test]
    fn devices_are_taken_once_from_wherever_one_begins() {
        let mut used = BTreeSet::new();
        while let Some(name) = device_name(&used, 4) {
            assert!(used.insert(name.to_owned()), "{name} twice");
        }
        assert_eq!(used.len(), DEVICES.len());
        assert_eq!(device_name(&BTreeSet::new(), 1), Some("/dev/xvdv"));
    }
}
