//! Which volume a machine takes for an etcd cluster. Volumes say whose they are by kOps' tag `k8s.io/etcd/CLUSTER` =
//! `MEMBER/ALL,MEMBERS`; EC2 attaches a volume to one machine at a time, which is the lock.

use super::{Record, RecordedMember};
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
    /// The volume that EC2 has begun to attach to it and has not shown with it since.
    pub asked: Option<&'a str>,
    /// The volume from which its member runs: mounted here, and kubelet sees the manifest on it.
    pub runs: Option<&'a str>,
    /// Volumes of which EC2, asked for their ids, said that there are none.
    pub gone: &'a BTreeSet<String>,
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
        /// Others of the same etcd cluster that this machine has: it runs one member only, and nobody else can take them.
        besides: Vec<&'a SeenVolume>,
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
    /// Another is to be taken than the one from which its member runs, or that one is not there: what runs goes on, and why nothing begins.
    Stay(String),
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

    /// That machine has it, or is about to have it or to lose it.
    pub fn is_with(&self, instance: &str) -> bool {
        let holder = self.holder.as_ref();
        holder.is_some_and(|holder| holder.instance == instance)
    }
}

/// The volume for a machine: the one it has, else a free one in its zone of a member that its group runs. Of two
/// volumes of one member only the recorded one counts.
///
/// EC2's lock is one of volumes and not of machines: nothing but this keeps a machine from taking those of several members, which no
/// other could take then. So one that has a volume of the etcd cluster in whatever state, or was given one, asks for no other. And one
/// whose member runs leaves its volume for nothing that an answer of EC2 shows or lacks.
pub fn choose<'a>(
    place: &Place<'_>,
    seen: &'a [SeenVolume],
    record: Option<&Record>,
) -> Choice<'a> {
    let own = |volume: &&SeenVolume| volume.is_with(place.instance);
    let own: Vec<&SeenVolume> = seen.iter().filter(own).collect();
    let mut reasons = Vec::new();
    let mut free = None;
    let mut is_its_own = false;
    // In the same order whatever the order of the spec is: of two that a machine has it runs the same at every look.
    let members: BTreeSet<&String> = place.members.iter().collect();
    for member in members {
        let volume = match volume_of(member, seen, record, place.gone) {
            Ok(volume) if place.runs.is_none_or(|runs| runs == volume.id) => volume,
            Ok(other) => {
                reasons.push(format!("{} is member {member}'s", other.id));
                continue;
            }
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        is_its_own = true;
        let member = member.clone();
        match availability(place, volume, &member) {
            Availability::Held => {
                let besides = own.iter().copied().filter(|one| one.id != volume.id);
                return Choice::Held {
                    volume,
                    member,
                    besides: besides.collect(),
                };
            }
            Availability::Free if place.runs.is_some() => {
                reasons.push(format!("EC2 does not show {} with it", volume.id));
            }
            Availability::Free if free.is_none() => free = Some((volume, member)),
            Availability::Free => {}
            Availability::Not(reason) => reasons.push(reason),
        }
    }
    if let Some(runs) = place.runs {
        let why = format!(
            "the member of this machine runs from {runs} and goes on, and nothing else begins: {}",
            reasons.join("; ")
        );
        return if is_its_own {
            Choice::Wait(why)
        } else {
            Choice::Stay(why)
        };
    }
    reasons.extend(own.iter().map(|one| takes_no_other(one)));
    match (free, place.asked) {
        (Some((volume, member)), None) if own.is_empty() => Choice::Attach { volume, member },
        // EC2 may show it as it was before: it says so if somebody has it.
        (Some((volume, member)), Some(asked)) if own.is_empty() && asked == volume.id => {
            Choice::Attach { volume, member }
        }
        (_, Some(asked)) if own.is_empty() => Choice::Wait(format!(
            "{asked} was given to this machine, and EC2 does not show it so yet: until it does, no other is asked for. If it was taken \
             away again, restart protokube"
        )),
        _ => {
            if reasons.is_empty() {
                reasons.push("this instance group runs no member of it".to_owned());
            }
            Choice::Wait(reasons.join("; "))
        }
    }
}

fn takes_no_other(own: &SeenVolume) -> String {
    let state = own.holder.as_ref().map_or("", |holder| &holder.state);
    format!(
        "this machine has {} ({}, {state}) and takes no second volume of an etcd cluster; one that it is not to run must be detached",
        own.id, own.tag
    )
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

/// The one volume of a member, or why there is none. A recorded one is it whatever its tags say, and as long as it is: that an answer
/// lacks it says that the answer is old or that somebody took a tag away.
fn volume_of<'a>(
    member: &str,
    seen: &'a [SeenVolume],
    record: Option<&Record>,
    gone: &BTreeSet<String>,
) -> Result<&'a SeenVolume, String> {
    let recorded = record.and_then(|record| record.members.get(member));
    if let Some(RecordedMember { volume, .. }) = recorded {
        if let Some(seen) = seen.iter().find(|one| one.id == *volume) {
            return Ok(seen);
        }
        if !gone.contains(volume) {
            return Err(format!(
                "EC2 does not show {volume}, which the record names as member {member}'s, and does not say either that there is none"
            ));
        }
    }
    let of = |volume: &&SeenVolume| volume.member() == Some(member);
    let of: Vec<&SeenVolume> = seen.iter().filter(of).collect();
    match of.as_slice() {
        [volume] => Ok(volume),
        [] => Err(format!("no volume has the tag of member {member}")),
        several => {
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
    volume_of(member, seen, record, &BTreeSet::new()).ok()
}

/// The volumes that the record names for members, and that an answer lacks.
pub fn unseen<'a>(members: &[String], seen: &[SeenVolume], record: &'a Record) -> Vec<&'a str> {
    let recorded = members.iter().filter_map(|one| record.members.get(one));
    let recorded = recorded.map(|one| one.volume.as_str());
    let shown = |id: &&str| seen.iter().any(|one| one.id == *id);
    recorded.filter(|id| !shown(id)).collect()
}

/// The volumes of all members that have exactly one by its tag.
pub(super) fn volumes_of_members<'a>(
    members: &[String],
    seen: &'a [SeenVolume],
) -> BTreeMap<String, &'a SeenVolume> {
    let volumes = members.iter().filter_map(|member| {
        let volume = volume_of(member, seen, None, &BTreeSet::new()).ok()?;
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

    static NONE_GONE: BTreeSet<String> = BTreeSet::new();

    /// That of i-1 with these members, which has and runs nothing yet.
    fn place(members: &[String]) -> Place<'_> {
        Place {
            instance: "i-1",
            zone: "eu-west-1a",
            members,
            asked: None,
            runs: None,
            gone: &NONE_GONE,
        }
    }

    fn chosen(members: &[&str], seen: &[SeenVolume], record: Option<&Record>) -> String {
        let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
        match choose(&place(&members), seen, record) {
            Choice::Held { volume, member, .. } => format!("held {} {member}", volume.id),
            Choice::Attach { volume, member } => format!("attach {} {member}", volume.id),
            Choice::Wait(reason) => format!("wait: {reason}"),
            Choice::Stay(reason) => format!("stay: {reason}"),
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

    /// EC2 as machines see it: an answer may be older than the one before, and what is asked for is decided by what is so.
    struct Ec2 {
        volumes: Vec<SeenVolume>,
        answers: Vec<Vec<SeenVolume>>,
    }

    impl Ec2 {
        fn answer(&self, age: usize) -> &[SeenVolume] {
            let last = self.answers.len().saturating_sub(1);
            &self.answers[last.saturating_sub(age)]
        }

        fn with(&self, instance: &str) -> usize {
            let own = self.volumes.iter().filter(|one| one.is_with(instance));
            own.count()
        }

        /// `VolumeInUse` if somebody has it.
        fn attach(&mut self, id: &str, instance: &str) -> bool {
            let volume = self.volumes.iter_mut().find(|one| one.id == id).unwrap();
            let free = volume.holder.is_none();
            if free {
                *volume = held(volume.clone(), instance, "attaching");
            }
            free
        }

        /// What is attaching is attached in time.
        fn goes_on(&mut self, which: usize) {
            if let Some(holder) = &mut self.volumes[which].holder {
                holder.state = "attached".into();
            }
        }
    }

    proptest::proptest! {
        /// Whatever EC2 shows, in whatever state: a machine that has one volume asks for no other, and does not forget which it has.
        #[test]
        fn a_machine_that_has_a_volume_asks_for_no_second(
            states in proptest::collection::vec(0_usize..6, 3),
            recorded in proptest::bool::ANY,
            copied in proptest::bool::ANY,
            runs in proptest::sample::subsequence(vec!["a", "b", "c"], 1..=3),
        ) {
            let seen: Vec<SeenVolume> = states.iter().zip(["a", "b", "c"]).map(|(state, member)| {
                let volume = volume(&format!("vol-{member}"), if copied { "a" } else { member });
                match ["free", "attaching", "attached", "detaching", "busy", "theirs"][*state] {
                    "free" => volume,
                    "theirs" => held(volume, "i-2", "attached"),
                    state => held(volume, "i-1", state),
                }
            }).collect();
            let record = Record {
                format: FORMAT,
                state: State::forming("t"),
                members: [("a".to_owned(), RecordedMember::on("vol-a", false))].into(),
                unknown: Unknown::new(),
            };
            let own: Vec<&SeenVolume> = seen.iter().filter(|one| one.is_with("i-1")).collect();
            let said = chosen(&runs, &seen, recorded.then_some(&record));
            match own.as_slice() {
                [] => {}
                own if said.starts_with("wait") => {
                    proptest::prop_assert!(own.iter().all(|one| said.contains(&one.id)), "{said}");
                }
                own => {
                    proptest::prop_assert!(said.starts_with("held"), "{said}");
                    let lowest = own.iter().find(|one| {
                        let of_group = runs.iter().any(|run| one.member() == Some(*run));
                        one.holder.as_ref().unwrap().state == "attached" && of_group
                    });
                    proptest::prop_assert!(copied || said.contains(&lowest.unwrap().id), "{said}");
                }
            }
        }

        /// Whatever answers lack and show: a copy of the recorded volume is taken only where EC2 says that that one is gone, and never while
        /// the member runs.
        #[test]
        fn a_copy_is_taken_only_once_the_recorded_volume_is_gone_and_nothing_runs(
            shown in proptest::sample::subsequence(vec!["vol-a", "vol-copy"], 0..=2),
            untagged in proptest::bool::ANY,
            state in 0_usize..3,
            said_gone in proptest::bool::ANY,
            runs in proptest::option::of(proptest::sample::select(vec!["vol-a", "vol-copy"])),
        ) {
            let is_shown = |id: &str| shown.contains(&id);
            let seen: Vec<SeenVolume> = shown.iter().map(|id| {
                let mut volume = volume(id, "a");
                if *id == "vol-a" && untagged {
                    volume.tag = String::new();
                }
                match ["free", "attached", "theirs"][state] {
                    "free" => volume,
                    "attached" => held(volume, "i-1", "attached"),
                    _ => held(volume, "i-2", "attached"),
                }
            }).collect();
            let record = Record {
                format: FORMAT,
                state: State::formed("c", "t"),
                members: [("a".to_owned(), RecordedMember::on("vol-a", true))].into(),
                unknown: Unknown::new(),
            };
            let gone: BTreeSet<String> = said_gone.then(|| "vol-a".to_owned()).into_iter().collect();
            let members = ["a".to_owned()];
            let place = Place { runs, gone: &gone, ..place(&members) };
            let taken = match choose(&place, &seen, Some(&record)) {
                Choice::Held { volume, .. } | Choice::Attach { volume, .. } => volume.id.as_str(),
                Choice::Wait(_) => { proptest::prop_assert!(runs.is_none_or(is_shown)); "" }
                Choice::Stay(why) => { proptest::prop_assert!(why.contains(runs.unwrap()), "{}", why); "" }
            };
            if taken == "vol-copy" {
                proptest::prop_assert!(said_gone && !is_shown("vol-a") && runs != Some("vol-a"));
            }
            if let Some(runs) = runs {
                proptest::prop_assert!(taken.is_empty() || taken == runs);
            }
            if is_shown("vol-a") && (state == 1 || state == 0 && runs.is_none()) && runs != Some("vol-copy") {
                proptest::prop_assert_eq!(taken, "vol-a", "the recorded one, whatever its tags");
            }
        }

        /// Several machines of one group, whose looks are told old things in any order.
        #[test]
        fn machines_of_one_group_share_the_volumes_whatever_they_are_told(
            looks in proptest::collection::vec((0_usize..3, 0_usize..4, 0_usize..3), 0..80),
        ) {
            let all = ["a", "b", "c"];
            let members = all.map(str::to_owned);
            let volumes: Vec<SeenVolume> = all.iter().map(|one| volume(&format!("vol-{one}"), one)).collect();
            let mut ec2 = Ec2 { answers: vec![volumes.clone()], volumes };
            let mut asked: [Option<String>; 3] = Default::default();
            let instances = ["i-1", "i-2", "i-3"];
            // At last everybody is told what is so.
            let at_last = (0..9).map(|look| (look % 3, 0, look % 3));
            for (who, age, which) in looks.into_iter().chain(at_last) {
                let instance = instances[who];
                let seen = ec2.answer(age).to_vec();
                if seen.iter().any(|one| asked[who].as_deref() == Some(&one.id) && one.is_with(instance)) {
                    asked[who] = None;
                }
                // What the kernel shows is not asked of EC2: see the machine's own look.
                let shown = ec2.volumes.iter().any(|one| {
                    one.holder.as_ref().is_some_and(|of| of.instance == instance && of.state == "attached")
                });
                let place = Place { instance, asked: asked[who].as_deref(), ..place(&members) };
                if let Choice::Attach { volume, .. } = choose(&place, &seen, None)
                    && !shown
                    && ec2.attach(&volume.id, instance)
                {
                    asked[who] = Some(volume.id.clone());
                }
                ec2.goes_on(which);
                ec2.answers.push(ec2.volumes.clone());
                for instance in instances {
                    proptest::prop_assert!(ec2.with(instance) <= 1, "{:?}", ec2.volumes);
                }
            }
            for instance in instances {
                proptest::prop_assert_eq!(ec2.with(instance), 1, "every machine has one: {:?}", ec2.volumes);
            }
        }
    }

    #[test]
    fn of_two_that_it_has_from_before_it_runs_the_lower_and_names_the_other() {
        let both = [
            held(volume("vol-2", "b"), "i-1", "attached"),
            held(volume("vol-1", "a"), "i-1", "attached"),
        ];
        for order in [["a", "b"], ["b", "a"]] {
            let members = order.map(str::to_owned);
            let Choice::Held {
                volume, besides, ..
            } = choose(&place(&members), &both, None)
            else {
                panic!("it has one");
            };
            assert_eq!(volume.id, "vol-1");
            assert_eq!(besides, [&both[0]]);
        }
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
