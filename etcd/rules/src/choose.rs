//! Chooses the volume that an instance takes for an etcd cluster. kOps' tag `k8s.io/etcd/CLUSTER` = `MEMBER/ALL,MEMBERS` names the
//! member of a volume. EC2 attaches a volume to one instance at a time, which serves as the lock.

use super::{FormationRecord, RecordedMember};
use std::collections::{BTreeMap, BTreeSet};

/// Device names for etcd volumes, as in kOps.
const DEVICES: [&str; 6] = [
    "/dev/xvdu",
    "/dev/xvdv",
    "/dev/xvdw",
    "/dev/xvdx",
    "/dev/xvdy",
    "/dev/xvdz",
];

/// A volume as EC2 describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVolume {
    /// Volume id, `vol-...`.
    pub id: String,
    pub zone: String,
    /// State: `creating`, `available`, `in-use`, `deleting`, `error`.
    pub state: String,
    /// Value of the etcd cluster's tag: `a/a,b,c`; empty if the tag is missing.
    pub tag: String,
    /// The attachment, if there is one.
    pub holder: Option<Holder>,
}

/// The attachment of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Instance id, `i-...`.
    pub instance: String,
    /// State: `attaching`, `attached`, `detaching`, `busy`.
    pub state: String,
    /// Device name: `/dev/xvdu`.
    pub device: String,
}

/// The instance that looks for a volume, and what it knows.
#[derive(Clone, Copy, Debug)]
pub struct VolumeRequest<'a> {
    /// Instance id, `i-...`.
    pub instance: &'a str,
    /// Availability zone of the instance.
    pub zone: &'a str,
    /// Members that the instance's group may run.
    pub members: &'a [String],
    /// The volume that EC2 accepted to attach to this instance but has not shown as attached since.
    pub asked: Option<&'a str>,
    /// The volume from which the member runs: it is mounted, and kubelet sees the manifest on it.
    pub runs: Option<&'a str>,
    /// Volumes for which EC2 answered, asked by id, that they do not exist.
    pub gone: &'a BTreeSet<String>,
}

/// What to do about a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The volume is attached to this instance.
    Held {
        volume: &'a SeenVolume,
        /// Member of the volume.
        member: String,
        /// Other volumes of the same etcd cluster that are attached here. The instance runs only one member, so they block others.
        besides: Vec<&'a SeenVolume>,
    },
    /// The volume is free and should be attached.
    Attach {
        volume: &'a SeenVolume,
        /// Member of the volume.
        member: String,
    },
    /// No volume is available now; the text is the reason.
    Wait(String),
    /// The rules name another volume than the one from which the member runs, or none. The running member continues and nothing
    /// new begins; the text is the reason.
    Stay(String),
}

/// Key of the tag that names the member of a volume.
pub fn volume_tag(etcd: &str) -> String {
    format!("k8s.io/etcd/{etcd}")
}

impl SeenVolume {
    /// The member in the tag; `None` if the tag is not in kOps' format.
    pub fn member(&self) -> Option<&str> {
        let (member, all) = self.tag.split_once('/')?;
        all.split(',').any(|one| one == member).then_some(member)
    }

    /// True if the volume has an attachment to the instance, in whatever state.
    pub fn is_with(&self, instance: &str) -> bool {
        let holder = self.holder.as_ref();
        holder.is_some_and(|holder| holder.instance == instance)
    }
}

/// Chooses the volume for an instance: the one that is attached, otherwise a free one in its zone of a member that its group runs.
/// If a member has two volumes, only the recorded one counts.
///
/// EC2's lock protects volumes, not instances: only this function keeps an instance from taking the volumes of several members,
/// which would block other instances. Therefore an instance that has a volume of the etcd cluster in any state, or asked for
/// one, asks for no other. An instance whose member runs never leaves its volume because of what an answer of EC2 shows or lacks.
pub fn choose_volume<'a>(
    place: &VolumeRequest<'_>,
    seen: &'a [SeenVolume],
    record: Option<&FormationRecord>,
) -> Choice<'a> {
    let own = |volume: &&SeenVolume| volume.is_with(place.instance);
    let own: Vec<&SeenVolume> = seen.iter().filter(own).collect();
    let mut reasons = Vec::new();
    let mut free = None;
    let mut is_its_own = false;
    // Sorted, so that an instance with two volumes runs the same member at every look.
    let members: BTreeSet<&String> = place.members.iter().collect();
    for member in members {
        let volume = match volume_of(member, seen, record, place.gone) {
            Ok(volume) if place.runs.is_none_or(|runs| runs == volume.id) => volume,
            Ok(other) => {
                reasons.push(format!("{} is the volume of member {member}", other.id));
                continue;
            }
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        is_its_own = true;
        let member = member.clone();
        match volume_availability(place, volume, &member) {
            Availability::Held => {
                let besides = own.iter().copied().filter(|one| one.id != volume.id);
                return Choice::Held {
                    volume,
                    member,
                    besides: besides.collect(),
                };
            }
            Availability::Free if place.runs.is_some() => {
                reasons.push(format!("EC2 does not show {} as attached to it", volume.id));
            }
            Availability::Free if free.is_none() => free = Some((volume, member)),
            Availability::Free => {}
            Availability::Not(reason) => reasons.push(reason),
        }
    }
    if let Some(runs) = place.runs {
        let why = format!(
            "the member on this instance keeps running from {runs}, and nothing else begins: {}",
            reasons.join("; ")
        );
        return if is_its_own {
            Choice::Wait(why)
        } else {
            Choice::Stay(why)
        };
    }
    reasons.extend(own.iter().map(|one| second_volume_refusal(one)));
    match (free, place.asked) {
        (Some((volume, member)), None) if own.is_empty() => Choice::Attach { volume, member },
        // EC2's answer may be old: attaching fails if another instance has the volume.
        (Some((volume, member)), Some(asked)) if own.is_empty() && asked == volume.id => {
            Choice::Attach { volume, member }
        }
        (_, Some(asked)) if own.is_empty() => Choice::Wait(format!(
            "EC2 accepted to attach {asked} to this instance and does not show it yet; no other volume is requested until then. If it was \
             detached again, restart protokube"
        )),
        _ => {
            if reasons.is_empty() {
                reasons.push("this instance group runs no member of this etcd cluster".to_owned());
            }
            Choice::Wait(reasons.join("; "))
        }
    }
}

fn second_volume_refusal(own: &SeenVolume) -> String {
    let state = own.holder.as_ref().map_or("", |holder| &holder.state);
    format!(
        "this instance has {} ({}, {state}) and takes no second volume of an etcd cluster; detach the one that it should not run",
        own.id, own.tag
    )
}

enum Availability {
    Held,
    Free,
    Not(String),
}

fn volume_availability(
    place: &VolumeRequest<'_>,
    volume: &SeenVolume,
    member: &str,
) -> Availability {
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
            "{id} of member {member} is in {}, but this instance is in {}",
            volume.zone, place.zone
        )),
        None if volume.state != "available" => {
            Availability::Not(format!("{id} of member {member} is {}", volume.state))
        }
        None => Availability::Free,
    }
}

/// The volume of a member, or the reason why there is none. A recorded volume counts whatever its tags say, until EC2 says that it
/// does not exist: if an answer lacks it, the answer is old or a tag was removed.
fn volume_of<'a>(
    member: &str,
    seen: &'a [SeenVolume],
    record: Option<&FormationRecord>,
    gone: &BTreeSet<String>,
) -> Result<&'a SeenVolume, String> {
    let recorded = record.and_then(|record| record.members.get(member));
    if let Some(RecordedMember { volume, .. }) = recorded {
        if let Some(seen) = seen.iter().find(|one| one.id == *volume) {
            return Ok(seen);
        }
        if !gone.contains(volume) {
            return Err(format!(
                "EC2 does not show {volume}, the recorded volume of member {member}, and does not say that it was deleted"
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

/// The names of all members: of the spec that this instance was launched with, of the record, and of the tags of volumes, without
/// those that were removed.
pub fn all_members(
    spec: &[String],
    seen: &[SeenVolume],
    record: Option<&FormationRecord>,
) -> Vec<String> {
    let recorded = record.into_iter().flat_map(|record| record.members.keys());
    let tagged = seen.iter().filter(|volume| volume.member().is_some());
    let tagged = tagged.filter_map(|volume| volume.tag.split_once('/'));
    let tagged = tagged.flat_map(|(_, all)| all.split(',').map(str::to_owned));
    let all = spec.iter().chain(recorded).cloned().chain(tagged);
    let has_left = |member: &String| record.is_some_and(|record| record.has_left(member));
    let all: BTreeSet<String> = all.filter(|member| !has_left(member)).collect();
    all.into_iter().collect()
}

/// The volume whose instance gets the member's DNS name: the recorded one if there is a record, otherwise the only one with the
/// member's tag. A copy with the same tags never moves a name.
pub fn named_volume<'a>(
    member: &str,
    seen: &'a [SeenVolume],
    record: Option<&FormationRecord>,
) -> Option<&'a SeenVolume> {
    volume_of(member, seen, record, &BTreeSet::new()).ok()
}

/// The recorded volumes of `members` that are missing in `seen`.
pub fn unseen_volumes<'a>(
    members: &[String],
    seen: &[SeenVolume],
    record: &'a FormationRecord,
) -> Vec<&'a str> {
    let recorded = members.iter().filter_map(|one| record.members.get(one));
    let recorded = recorded.map(|one| one.volume.as_str());
    let shown = |id: &&str| seen.iter().any(|one| one.id == *id);
    recorded.filter(|id| !shown(id)).collect()
}

/// The volumes of those members that have exactly one by tag.
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

/// A free device name. `first` is the index at which the search begins, so that two etcd clusters on one instance that look at
/// the same time do not choose the same name.
pub fn device_name(in_use: &BTreeSet<String>, first: usize) -> Option<&'static str> {
    let from = DEVICES.iter().cycle().skip(first);
    let mut names = from.take(DEVICES.len()).copied();
    names.find(|name| !in_use.contains(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generation, RecordedMember};

    fn free_volume(id: &str, member: &str) -> SeenVolume {
        SeenVolume {
            id: id.into(),
            zone: "eu-west-1a".into(),
            state: "available".into(),
            tag: format!("{member}/a,b,c"),
            holder: None,
        }
    }

    fn attached_volume(volume: SeenVolume, instance: &str, state: &str) -> SeenVolume {
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

    /// The request of i-1 with these members, which has and runs nothing yet.
    fn request_of(members: &[String]) -> VolumeRequest<'_> {
        VolumeRequest {
            instance: "i-1",
            zone: "eu-west-1a",
            members,
            asked: None,
            runs: None,
            gone: &NONE_GONE,
        }
    }

    fn choice_text(
        members: &[&str],
        seen: &[SeenVolume],
        record: Option<&FormationRecord>,
    ) -> String {
        let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
        match choose_volume(&request_of(&members), seen, record) {
            Choice::Held { volume, member, .. } => format!("held {} {member}", volume.id),
            Choice::Attach { volume, member } => format!("attach {} {member}", volume.id),
            Choice::Wait(reason) => format!("wait: {reason}"),
            Choice::Stay(reason) => format!("stay: {reason}"),
        }
    }

    #[test]
    fn a_machine_takes_one_volume_and_only_one_that_is_free_here_and_meant_for_its_group() {
        let [one, other] = [free_volume("vol-1", "a"), free_volume("vol-2", "b")];
        let both = [one.clone(), other.clone()];
        assert_eq!(choice_text(&["a"], &both, None), "attach vol-1 a");
        assert_eq!(choice_text(&["b"], &both, None), "attach vol-2 b");
        let mine = [one.clone(), attached_volume(other, "i-1", "attached")];
        assert_eq!(choice_text(&["a", "b"], &mine, None), "held vol-2 b");
        let elsewhere = SeenVolume {
            zone: "eu-west-1b".into(),
            ..one.clone()
        };
        assert!(choice_text(&["a"], &[elsewhere], None).contains("is in eu-west-1b"));
        let theirs = attached_volume(one.clone(), "i-2", "attached");
        assert!(choice_text(&["a"], &[theirs], None).contains("attached to i-2"));
        let coming = attached_volume(one, "i-1", "attaching");
        assert!(choice_text(&["a"], &[coming], None).starts_with("wait"));
        assert!(choice_text(&["c"], &both, None).contains("no volume"));
    }

    #[test]
    fn of_two_volumes_of_a_member_only_the_recorded_one_counts() {
        let both = [free_volume("vol-1", "a"), free_volume("vol-2", "a")];
        assert!(choice_text(&["a"], &both, None).contains("all but one"));
        let record = FormationRecord::new(
            Generation::forming("t"),
            [("a".to_owned(), RecordedMember::on_volume("vol-2", false))].into(),
        );
        assert_eq!(choice_text(&["a"], &both, Some(&record)), "attach vol-2 a");
    }

    /// EC2 as instances see it: answers may be old, but attaching acts on the current state.
    struct Ec2 {
        volumes: Vec<SeenVolume>,
        answers: Vec<Vec<SeenVolume>>,
    }

    impl Ec2 {
        fn answer_of_age(&self, age: usize) -> &[SeenVolume] {
            let last = self.answers.len().saturating_sub(1);
            &self.answers[last.saturating_sub(age)]
        }

        fn count_with(&self, instance: &str) -> usize {
            let own = self.volumes.iter().filter(|one| one.is_with(instance));
            own.count()
        }

        /// False (`VolumeInUse`) if the volume has a holder.
        fn try_attach(&mut self, id: &str, instance: &str) -> bool {
            let volume = self.volumes.iter_mut().find(|one| one.id == id).unwrap();
            let free = volume.holder.is_none();
            if free {
                *volume = attached_volume(volume.clone(), instance, "attaching");
            }
            free
        }

        /// Completes an attachment in progress.
        fn finish_attaching(&mut self, which: usize) {
            if let Some(holder) = &mut self.volumes[which].holder {
                holder.state = "attached".into();
            }
        }
    }

    proptest::proptest! {
        /// Whatever EC2 shows, in whatever state: an instance that has one volume asks for no other and does not forget which it has.
        #[test]
        fn a_machine_that_has_a_volume_asks_for_no_second(
            states in proptest::collection::vec(0_usize..6, 3),
            recorded in proptest::bool::ANY,
            copied in proptest::bool::ANY,
            runs in proptest::sample::subsequence(vec!["a", "b", "c"], 1..=3),
        ) {
            let seen: Vec<SeenVolume> = states.iter().zip(["a", "b", "c"]).map(|(state, member)| {
                let volume = free_volume(&format!("vol-{member}"), if copied { "a" } else { member });
                match ["free", "attaching", "attached", "detaching", "busy", "theirs"][*state] {
                    "free" => volume,
                    "theirs" => attached_volume(volume, "i-2", "attached"),
                    state => attached_volume(volume, "i-1", state),
                }
            }).collect();
            let record = FormationRecord::new(Generation::forming("t"), [("a".to_owned(), RecordedMember::on_volume("vol-a", false))].into());
            let own: Vec<&SeenVolume> = seen.iter().filter(|one| one.is_with("i-1")).collect();
            let said = choice_text(&runs, &seen, recorded.then_some(&record));
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

        /// Whatever answers lack and show: a copy of the recorded volume is taken only if EC2 says that the recorded one is gone, and
        /// never while the member runs.
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
                let mut volume = free_volume(id, "a");
                if *id == "vol-a" && untagged {
                    volume.tag = String::new();
                }
                match ["free", "attached", "theirs"][state] {
                    "free" => volume,
                    "attached" => attached_volume(volume, "i-1", "attached"),
                    _ => attached_volume(volume, "i-2", "attached"),
                }
            }).collect();
            let record = FormationRecord::new(Generation::formed("c", "t"), [("a".to_owned(), RecordedMember::on_volume("vol-a", true))].into());
            let gone: BTreeSet<String> = said_gone.then(|| "vol-a".to_owned()).into_iter().collect();
            let members = ["a".to_owned()];
            let place = VolumeRequest { runs, gone: &gone, ..request_of(&members) };
            let taken = match choose_volume(&place, &seen, Some(&record)) {
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

        /// Several instances of one group, which get old answers in any order.
        #[test]
        fn machines_of_one_group_share_the_volumes_whatever_they_are_told(
            looks in proptest::collection::vec((0_usize..3, 0_usize..4, 0_usize..3), 0..80),
        ) {
            let all = ["a", "b", "c"];
            let members = all.map(str::to_owned);
            let volumes: Vec<SeenVolume> = all.iter().map(|one| free_volume(&format!("vol-{one}"), one)).collect();
            let mut ec2 = Ec2 { answers: vec![volumes.clone()], volumes };
            let mut asked: [Option<String>; 3] = Default::default();
            let instances = ["i-1", "i-2", "i-3"];
            // At the end all answers are current.
            let at_last = (0..9).map(|look| (look % 3, 0, look % 3));
            for (who, age, which) in looks.into_iter().chain(at_last) {
                let instance = instances[who];
                let seen = ec2.answer_of_age(age).to_vec();
                if seen.iter().any(|one| asked[who].as_deref() == Some(&one.id) && one.is_with(instance)) {
                    asked[who] = None;
                }
                // protokube also checks what the kernel shows, without EC2.
                let shown = ec2.volumes.iter().any(|one| {
                    one.holder.as_ref().is_some_and(|of| of.instance == instance && of.state == "attached")
                });
                let place = VolumeRequest { instance, asked: asked[who].as_deref(), ..request_of(&members) };
                if let Choice::Attach { volume, .. } = choose_volume(&place, &seen, None)
                    && !shown
                    && ec2.try_attach(&volume.id, instance)
                {
                    asked[who] = Some(volume.id.clone());
                }
                ec2.finish_attaching(which);
                ec2.answers.push(ec2.volumes.clone());
                for instance in instances {
                    proptest::prop_assert!(ec2.count_with(instance) <= 1, "{:?}", ec2.volumes);
                }
            }
            for instance in instances {
                proptest::prop_assert_eq!(ec2.count_with(instance), 1, "every instance has one: {:?}", ec2.volumes);
            }
        }
    }

    #[test]
    fn of_two_that_it_has_from_before_it_runs_the_lower_and_names_the_other() {
        let both = [
            attached_volume(free_volume("vol-2", "b"), "i-1", "attached"),
            attached_volume(free_volume("vol-1", "a"), "i-1", "attached"),
        ];
        for order in [["a", "b"], ["b", "a"]] {
            let members = order.map(str::to_owned);
            let Choice::Held {
                volume, besides, ..
            } = choose_volume(&request_of(&members), &both, None)
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
                ..free_volume("vol-1", "a")
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
