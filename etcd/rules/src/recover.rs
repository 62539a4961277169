//! Decides the steps of a recovery: an etcd cluster that lost more than half of its members becomes a new cluster, with another id,
//! that begins with the data of one member. All other members are stopped before, and join the new cluster as new members after.
//! Nothing is deleted: each volume keeps its old data beside the new.

use super::advice::describe_restore;
use super::choose::SeenVolume;
use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::formed::try_decide_formed;
use super::log::LogIdentity;
use super::log_end::LastEntry;
use super::own_member::{Formed, OwnMember};
use super::record::{
    FormationRecord, Generation, MemberSource, NextGeneration, RecordedMember, Source,
};
use super::restore::check_place;
use super::retired::find_newer_data;
use super::step::FormationStep;
use super::successors::refuse_replaced;
use super::table::Row;
use super::version_gate::read_version;
use super::volume_owner::{check_owner, check_remaining_log, describe_content};
use node::components::EtcdStart;
use node::formatted::UnknownFields;

/// The first releases of etcd whose etcdutl knows `--bump-revision` and `--mark-compacted` (etcd: CHANGELOG-3.5, pull request 16165).
const BUMPS_FROM: (u32, u32, u32) = (3, 5, 10);

/// What an operator knows and accepts of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryTerms {
    /// Revision that the source has reported.
    pub revision: Option<u64>,
    /// True if what only other members have is given up.
    pub force: bool,
}

/// True if this version of etcd can restore data with revisions above all that were used.
pub fn can_bump_revisions(version: &str) -> bool {
    read_version(version).is_some_and(|version| version >= BUMPS_FROM)
}

/// The record with which a recovery begins, or goes on from another member than the one that was asked for before. The error says why
/// this cluster cannot be recovered from this member.
pub fn begin_recovery(
    record: &FormationRecord,
    from: &str,
    token: &str,
    terms: RecoveryTerms,
) -> Result<FormationRecord, String> {
    let known = record.members.get(from);
    let known = known.ok_or_else(|| {
        let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
        format!(
            "it has no member {from}; its members: {}",
            members.join(", ")
        )
    })?;
    if known.member_id.is_none() {
        return Err(format!("member {from} has not run yet, so it has no data"));
    }
    let joins = record.replacing.as_ref();
    if joins.is_some_and(|of| of.member == from) && !terms.force {
        return Err(format!(
            "member {from} is being replaced or added, so it may not have all data yet; --force goes on with what it has"
        ));
    }
    if record.is_forming() {
        return Err("it was never formed, so it has no data".to_owned());
    }
    let source = |revision| {
        Source::Member(MemberSource {
            force: terms.force,
            revision,
            unknown: UnknownFields::new(),
        })
    };
    if let Some(before) = record.next.as_ref().filter(|before| before.from == from) {
        if before.is_forced() || !terms.force {
            return Err(format!("it is being recovered from member {from} already"));
        }
        return Ok(FormationRecord {
            next: Some(NextGeneration {
                source: source(None),
                ..before.clone()
            }),
            ..record.clone()
        });
    }
    let mut leaving = record.leaving.clone();
    // It will be the only one with data; the next update may ask again.
    leaving.remove(from);
    Ok(FormationRecord {
        leaving,
        next: Some(record.begin_next(from, token, source(terms.revision))),
        // It also tells a second choice of the source which member may lack data.
        ..record.clone()
    })
}

/// The record once the data of the member was restored as the log of a new cluster: that member alone, on the same volume. The
/// others join it as new members.
pub fn end_recovery(record: &FormationRecord, restored: &LogIdentity) -> Option<FormationRecord> {
    let next = record.next.as_ref()?;
    let source = record.members.get(&next.from)?;
    let founder = RecordedMember {
        member_id: Some(restored.member_id.clone()),
        ..source.clone()
    };
    let mut begun = record.clone();
    begun.give_up(Generation {
        restored: next.snapshot().cloned(),
        ..Generation::formed(&restored.cluster_id, &next.token)
    });
    begun.members = [(next.from.clone(), founder)].into();
    Some(begun)
}

type WhileNext =
    fn(&OwnMember<'_>, (&Formed<'_>, &NextGeneration), &VolumeContent) -> Option<FormationStep>;

/// The record has a generation that is to take the place of this one.
pub(super) const NEXT: [Row<WhileNext>; 9] = [
    Row {
        when: "this member's data of a cluster that the record does not know",
        then: "leave running what runs, start nothing: the record is of an older version",
        step: |own, (formed, _), content| find_newer_data(own, formed, content),
    },
    Row {
        when: "anything, and `etcd/formed/main/` shows a cluster that took the place of the recorded one",
        then: "refuse: the record is of an older version",
        step: |own, (formed, _), _| refuse_replaced(own, formed),
    },
    Row {
        when: "this cluster's marker and its log, and nobody has stopped for `next`, except the one that it begins on once kubelet sees its manifest",
        then: "start as `existing`, as before",
        step: |own, (formed, next), content| serve_meanwhile(own, formed, next, content),
    },
    Row {
        when: "anything, and `next` begins on another member",
        then: "stop once that one is ready, and say so on the volume and in the record",
        step: |own, (formed, next), content| {
            let is_other = own.member != next.from;
            is_other.then(|| stop_member(own, next, formed.recorded, content))
        },
    },
    Row {
        when: "neither this cluster's marker and log nor, for a snapshot, a place for it",
        then: "make a place for a snapshot, on a blank volume if EC2 said twice, a minute apart, that the recorded one does not exist; otherwise refuse",
        step: |own, (formed, next), content| {
            let checked = check_begin(own, formed, next, content);
            checked.err().map(|step| *step)
        },
    },
    Row {
        when: "a marker without the ids of the record",
        then: "add them, so that the data is known as that of the cluster that is given up",
        step: |own, (formed, next), content| {
            let marker = check_begin(own, formed, next, content).ok()?;
            add_ids(formed, marker)
        },
    },
    Row {
        when: "anything, `next` is a recovery without force that is not `ready`, and the cluster has its quorum again",
        then: "wait until it is called off, or repeated with force",
        step: |own, (formed, next), _| {
            let live = own.live.ok()?;
            let is_back = live.cluster_id == formed.cluster_id;
            (is_back && !next.ready && !next.is_forced()).then(|| wait_for_call_off(own, next))
        },
    },
    Row {
        when: "anything, and `next` is not `ready`",
        then: "make sure that the source can be restored, then record that it is `ready`",
        step: |own, (formed, next), _| {
            (!next.ready).then(|| prepare_restore(own, formed.record, next))
        },
    },
    Row {
        when: "anything else",
        then: "wait until no other member can run, stop, and restore the source as the log of the new cluster",
        step: |own, (formed, next), _| {
            Some(match find_unstopped(own, formed.record, next) {
                Some(why) => FormationStep::Wait(why),
                None => FormationStep::Restore(next.clone()),
            })
        },
    },
];

fn wait_for_call_off(own: &OwnMember<'_>, next: &NextGeneration) -> FormationStep {
    let (cluster, etcd, from) = (own.cluster, own.etcd, &next.from);
    FormationStep::Wait(format!(
        "etcd {etcd} is to be recovered from member {from}, but has its quorum again: `kctl etcd recover {cluster} --etcd {etcd} --call-off` leaves it \
         as it is; with --from {from} --force --yes, it begins anew with what member {from} has"
    ))
}

/// Checks that `next` can begin on this volume, and returns its marker. The error is the step that has to be taken before.
fn check_begin<'a>(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    next: &NextGeneration,
    content: &'a VolumeContent,
) -> Result<&'a Marker, Box<FormationStep>> {
    match &next.source {
        Source::Snapshot(_) => check_place(own, formed, next, content),
        Source::Member(_) => check_source(own, formed, content)
            .map_err(|why| Box::new(FormationStep::Refuse(other_source(own, &why)))),
    }
}

/// Afterwards the marker shows that the data belongs to the cluster that is given up.
fn add_ids(formed: &Formed<'_>, marker: &Marker) -> Option<FormationStep> {
    let recorded = &formed.recorded.member_id;
    if marker.cluster_id.is_some() && (marker.member_id.is_some() || recorded.is_none()) {
        return None;
    }
    let known = marker.member_id.clone();
    let marker = Marker {
        cluster_id: Some(formed.cluster_id.to_owned()),
        member_id: known.or_else(|| recorded.clone()),
        ..marker.clone()
    };
    Some(FormationStep::Mark { marker, new: false })
}

/// Until a source is ready, which may take long or never be, nobody has stopped for it: all members serve as before, also one whose
/// instance was replaced or has rebooted meanwhile. The source goes on with the restore once it serves.
fn serve_meanwhile(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    next: &NextGeneration,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let joins = formed.record.replacing.as_ref();
    let joins = joins.is_some_and(|of| of.member == own.member);
    let goes_on = own.shown && own.member == next.from;
    if goes_on || joins || !next.has_stopped_nobody() {
        return None;
    }
    let step = try_decide_formed(own, formed, content).ok()?;
    (step == FormationStep::Start(EtcdStart::Existing)).then_some(step)
}

/// Why the data of this member cannot be the source, and what can.
fn other_source(own: &OwnMember<'_>, why: &str) -> String {
    format!(
        "{why}. Move the data back, or choose the data of another member: `kctl etcd recover {} --etcd {}`. Or {}",
        own.cluster,
        own.etcd,
        describe_restore(own.cluster, own.etcd)
    )
}

/// Nobody stops before it is known that the data can be restored.
fn prepare_restore(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    next: &NextGeneration,
) -> FormationStep {
    if !can_bump_revisions(own.version) {
        return FormationStep::Ask(format!(
            "etcd {} cannot be recovered with etcd {}: etcdutl before 3.5.10 cannot restore data with higher revisions. Set \
             spec.etcdClusters[].version to 3.5.10 or newer, update, and replace this instance",
            own.etcd, own.version
        ));
    }
    FormationStep::PrepareRestore(FormationRecord {
        next: Some(NextGeneration {
            ready: true,
            ..next.clone()
        }),
        ..record.clone()
    })
}

/// Another member than the one whose data is kept: it never runs under its id again.
fn stop_member(
    own: &OwnMember<'_>,
    next: &NextGeneration,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    if recorded.volume != own.volume {
        // Only who holds the recorded volume can say that the member does not run from it.
        return FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}: this instance holds {}, but the data of member {} is on {}; member {} joins anew \
             afterwards",
            own.etcd, next.from, own.volume, own.member, recorded.volume, own.member
        ));
    }
    let is_known = |last: &Option<LastEntry>| last.is_some() || !has_readable_log(content);
    if next.stopped.get(own.member).is_some_and(is_known) {
        return FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}: member {} was stopped, and joins anew afterwards",
            own.etcd, next.from, own.member
        ));
    }
    if !next.ready {
        return FormationStep::Wait(format!(
            "etcd {} is to be recovered from member {}: member {} stops once the instance of member {} can restore its data",
            own.etcd, next.from, own.member, next.from
        ));
    }
    let marker = match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. })
            if check_owner(own, marker).is_ok() =>
        {
            Some(Marker {
                stopped: Some(next.token.clone()),
                ..marker.clone()
            })
        }
        _ => None,
    };
    FormationStep::Stop {
        marker,
        damaged: matches!(content, VolumeContent::Damaged(_)),
    }
}

/// How far such a log reaches can be read, also if nobody could when the member was stopped.
fn has_readable_log(content: &VolumeContent) -> bool {
    let log = content.marked().map(|(_, log)| log);
    matches!(log, Some(EtcdLog::Of(_) | EtcdLog::Shorter { .. }))
}

/// The step of a member whose file system has errors: others need not wait until a person has repaired what never runs again.
pub(super) fn stop_damaged(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let next = record
        .next
        .as_ref()
        .filter(|next| next.from != own.member)?;
    let recorded = record.members.get(own.member)?;
    let step = stop_member(own, next, recorded, content);
    matches!(step, FormationStep::Stop { .. }).then_some(step)
}

/// The record once a member was stopped. `last`: the last entry of its log; `None` if the log cannot be read.
pub fn mark_stopped(
    record: &FormationRecord,
    member: &str,
    last: Option<LastEntry>,
) -> FormationRecord {
    let mut next = record.clone();
    if let Some(of) = &mut next.next {
        of.stopped.insert(member.to_owned(), last);
    }
    next
}

/// Why the data of the source, which was stopped and whose log has this last entry, must not be restored: a stopped member may have
/// acknowledged writes that the source lacks, and the operator has not given them up. `None`: there is no such member.
pub fn find_newer(etcd: &str, record: &FormationRecord, last: Option<LastEntry>) -> Option<String> {
    let next = record.next.as_ref().filter(|next| !next.is_forced())?;
    let from = &next.from;
    let last = last.unwrap_or_default();
    let mut reasons = next.stopped.iter().filter_map(|(member, known)| {
        match known {
            Some(known) if *known <= last => None,
            Some(known) => Some(format!(
                "the log of member {member} ends with entry {} of term {}, that of member {from} with entry {} of term {}, so member \
                 {member} may have acknowledged writes that member {from} lacks. Recover from member {member}: `kctl etcd recover --etcd \
                 {etcd} --from {member} --yes`; with --from {from} --force, they are given up",
                known.index, known.term, last.index, last.term
            )),
            None => Some(format!(
                "how far the log of member {member} reaches is not known, so it may have acknowledged writes that member {from} lacks. To \
                 give them up: `kctl etcd recover --etcd {etcd} --from {from} --force --yes`"
            )),
        }
    });
    reasons.next()
}

/// Checks that the volume holds the recorded log of the member.
fn check_source<'a>(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &'a VolumeContent,
) -> Result<&'a Marker, String> {
    let Formed {
        recorded,
        cluster_id,
        ..
    } = formed;
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return Err(format!(
            "etcd {} is to be recovered from member {} on {}, but {} {}",
            own.etcd,
            own.member,
            recorded.volume,
            own.volume,
            describe_content(content)
        ));
    };
    check_owner(own, marker)?;
    let log = check_remaining_log(own, marker, log)?;
    let is_source = recorded.volume == own.volume
        && marker.volume == own.volume
        && log.cluster_id == *cluster_id
        && recorded.member_id.as_ref() == Some(&log.member_id);
    if is_source {
        return Ok(marker);
    }
    Err(format!(
        "etcd {} is to be recovered from member {} ({}) of cluster {} on {}, but {} holds member {} of cluster {}",
        own.etcd,
        own.member,
        recorded.member_id.as_deref().unwrap_or("unknown"),
        cluster_id,
        recorded.volume,
        own.volume,
        log.member_id,
        log.cluster_id
    ))
}

/// A member that could still run with its old data, because an instance holds its volume and has not stopped it. Together such
/// members would be a quorum of the old cluster.
fn find_unstopped(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    next: &NextGeneration,
) -> Option<String> {
    let others = record
        .members
        .iter()
        .filter(|(member, _)| *member != own.member && !next.stopped.contains_key(*member));
    let mut reasons = others.filter_map(|(member, recorded)| {
        let volume = &recorded.volume;
        if own.gone_twice.contains(volume) {
            return None;
        }
        if own.gone.contains(volume) {
            return Some(format!(
                "EC2 says that {volume} of member {member} does not exist; EC2 is asked again in a minute"
            ));
        }
        let seen: Option<&SeenVolume> = own.seen.iter().find(|seen| seen.id == *volume);
        let Some(seen) = seen else {
            return Some(format!("EC2 does not show {volume} of member {member}"));
        };
        match &seen.holder {
            Some(holder) => Some(format!(
                "{} has {volume} of member {member}, and its protokube has not stopped the member yet; if the instance does not come \
                 back, terminate it; if its protokube reports that {volume} cannot be used, terminate it and delete {volume}, which gives \
                 the data on it up",
                holder.instance
            )),
            None if !own.free_twice.contains(volume) => Some(format!(
                "{volume} of member {member} is attached to nothing; EC2 is asked again in a minute"
            )),
            None if next.is_forced() => None,
            None => Some(format!(
                "{volume} of member {member} exists, is attached to nothing, and may hold newer data. An instance of its group attaches it \
                 within minutes of its launch; to give its data up, repeat `kctl etcd recover` with --force, or delete the volume"
            )),
        }
    });
    reasons.next().map(|why| {
        format!(
            "etcd {} is recovered from member {} once no other member can run: {why}",
            own.etcd, own.member
        )
    })
}
