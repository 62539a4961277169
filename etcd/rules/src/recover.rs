//! Decides the steps of a recovery: an etcd cluster that lost more than half of its members becomes a new cluster, with another id,
//! that begins with the data of one member. All other members are stopped before, and join the new cluster as new members after.
//! Nothing is deleted: each volume keeps its old data beside the new.

use super::advice::describe_restore;
use super::choose::SeenVolume;
use super::content::{FileSystemContent, Marker, VolumeContent};
use super::formed::try_decide_formed;
use super::given_up::cluster_of;
use super::log::LogIdentity;
use super::log_end::LastEntry;
use super::own_member::{Formed, OwnMember};
use super::record::{FormationRecord, FormationState, RecordedMember, Recovering, record_key};
use super::restore::{check_place, has_stopped_nobody};
use super::step::FormationStep;
use super::volume_owner::{check_owner, check_remaining_log, describe_content};
use node::components::EtcdStart;
use node::formatted::UnknownFields;
use std::collections::{BTreeMap, BTreeSet};

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
    let mut parts = version
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Some(major)), Some(Some(minor)), Some(Some(patch))) => {
            (major, minor, patch) >= BUMPS_FROM
        }
        _ => false,
    }
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
    let (cluster_id, mut stopped, logs) = match &record.state {
        FormationState::Formed { cluster_id, .. } => (cluster_id, BTreeSet::new(), BTreeMap::new()),
        FormationState::Recovering(before) if before.from == from => {
            if before.force || !terms.force {
                return Err(format!("it is being recovered from member {from} already"));
            }
            let mut forced = record.clone();
            forced.state = FormationState::Recovering(Recovering {
                force: true,
                revision: None,
                ..before.clone()
            });
            return Ok(forced);
        }
        // Whoever has stopped stays stopped; the member that was the source before stops now.
        FormationState::Recovering(before) => (
            &before.cluster_id,
            before.stopped.clone(),
            before.logs.clone(),
        ),
        FormationState::Forming { .. } => {
            return Err("it was never formed, so it has no data".to_owned());
        }
    };
    stopped.remove(from);
    let mut leaving = record.leaving.clone();
    // It will be the only one with data; the next update may ask again.
    leaving.remove(from);
    Ok(FormationRecord {
        leaving,
        state: FormationState::Recovering(Recovering {
            from: from.to_owned(),
            token: token.to_owned(),
            cluster_id: cluster_id.clone(),
            ready: false,
            force: terms.force,
            revision: terms.revision,
            stopped,
            logs,
            snapshot: None,
            token_before: None,
            restored_before: None,
            unknown: UnknownFields::new(),
        }),
        // It also tells a second choice of the source which member may lack data.
        ..record.clone()
    })
}

/// The record once the data of the member was restored as the log of a new cluster: that member alone, on the same volume. The
/// others join it as new members.
pub fn end_recovery(record: &FormationRecord, restored: &LogIdentity) -> Option<FormationRecord> {
    let FormationState::Recovering(recovering) = &record.state else {
        return None;
    };
    let mut next = record.clone();
    let source = record.members.get(&recovering.from)?;
    let founder = RecordedMember {
        member_id: Some(restored.member_id.clone()),
        ..source.clone()
    };
    next.members = [(recovering.from.clone(), founder)].into();
    let before = record.members.clone();
    next.given_up.insert(recovering.cluster_id.clone(), before);
    next.state = FormationState::Formed {
        cluster_id: restored.cluster_id.clone(),
        token: recovering.token.clone(),
        restored: recovering.snapshot.clone(),
        refused: None,
        unknown: UnknownFields::new(),
    };
    next.replacing = None;
    Some(next)
}

/// The next step of a recorded member while its cluster is being recovered.
pub(super) fn decide_recovering(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    if let Some(other) = cluster_of(content)
        && *other != recovering.cluster_id
        && !record.given_up.contains_key(other)
    {
        return FormationStep::Ask(format!(
            "the record says that etcd {} is being recovered from cluster {}, but {} holds data of cluster {other}: an older version of \
             the record was restored. Restore the newest version of {}",
            own.etcd,
            recovering.cluster_id,
            own.volume,
            record_key(own.etcd)
        ));
    }
    if let Some(step) = serve_meanwhile(own, record, recovering, recorded, content) {
        return step;
    }
    if own.member != recovering.from {
        return stop_member(own, recovering, recorded, content);
    }
    let source = match &recovering.snapshot {
        Some(_) => check_place(own, record, recovering, recorded, content),
        None => check_source(own, recovering, recorded, content)
            .map_err(|why| Box::new(FormationStep::Refuse(other_source(own, &why)))),
    };
    let marker = match source {
        Ok(marker) => marker,
        Err(step) => return *step,
    };
    let has_id = marker.member_id.is_some() || recorded.member_id.is_none();
    if marker.cluster_id.is_none() || !has_id {
        // Afterwards its marker shows that the data belongs to the cluster that is given up.
        let known = marker.member_id.clone();
        let marker = Marker {
            cluster_id: Some(recovering.cluster_id.clone()),
            member_id: known.or_else(|| recorded.member_id.clone()),
            ..marker.clone()
        };
        return FormationStep::Mark { marker, new: false };
    }
    if !recovering.ready {
        return prepare_restore(own, record, recovering);
    }
    match find_unstopped(own, record, recovering) {
        Some(why) => FormationStep::Wait(why),
        None => FormationStep::Restore {
            token: recovering.token.clone(),
            revision: recovering.revision,
            snapshot: recovering.snapshot.clone(),
        },
    }
}

/// Until a snapshot is ready, which may take long or never be, nobody has stopped for it: a member whose instance was replaced or has
/// rebooted meanwhile serves as before.
fn serve_meanwhile(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let token = recovering.token_before.as_ref()?;
    let joins = record.replacing.as_ref();
    let joins = joins.is_some_and(|of| of.member == own.member);
    if own.shown || joins || !has_stopped_nobody(recovering) {
        return None;
    }
    let formed = Formed {
        record,
        recorded,
        cluster_id: &recovering.cluster_id,
        token,
    };
    let step = try_decide_formed(own, &formed, content).ok()?;
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
    recovering: &Recovering,
) -> FormationStep {
    if !can_bump_revisions(own.version) {
        return FormationStep::Ask(format!(
            "etcd {} cannot be recovered with etcd {}: etcdutl before 3.5.10 cannot restore data with higher revisions. Set \
             spec.etcdClusters[].version to 3.5.10 or newer, update, and replace this instance",
            own.etcd, own.version
        ));
    }
    FormationStep::PrepareRestore(FormationRecord {
        state: FormationState::Recovering(Recovering {
            ready: true,
            ..recovering.clone()
        }),
        ..record.clone()
    })
}

/// Another member than the one whose data is kept: it never runs under its id again.
fn stop_member(
    own: &OwnMember<'_>,
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    if recorded.volume != own.volume {
        // Only who holds the recorded volume can say that the member does not run from it.
        return FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}: this instance holds {}, but the data of member {} is on {}; member {} joins anew \
             afterwards",
            own.etcd, recovering.from, own.volume, own.member, recorded.volume, own.member
        ));
    }
    if recovering.stopped.contains(own.member) {
        return FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}: member {} was stopped, and joins anew afterwards",
            own.etcd, recovering.from, own.member
        ));
    }
    if !recovering.ready {
        return FormationStep::Wait(format!(
            "etcd {} is to be recovered from member {}: member {} stops once the instance of member {} can restore its data",
            own.etcd, recovering.from, own.member, recovering.from
        ));
    }
    let marker = match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. })
            if check_owner(own, marker).is_ok() =>
        {
            Some(Marker {
                stopped: Some(recovering.token.clone()),
                ..marker.clone()
            })
        }
        _ => None,
    };
    FormationStep::Stop { marker }
}

/// The record once a member was stopped. `last`: the last entry of its log; `None` if the log cannot be read.
pub fn mark_stopped(
    record: &FormationRecord,
    member: &str,
    last: Option<LastEntry>,
) -> FormationRecord {
    let mut next = record.clone();
    if let FormationState::Recovering(recovering) = &mut next.state {
        recovering.stopped.insert(member.to_owned());
        recovering
            .logs
            .extend(last.map(|last| (member.to_owned(), last)));
    }
    next
}

/// Why the data of the source, which was stopped and whose log has this last entry, must not be restored: a stopped member may have
/// acknowledged writes that the source lacks, and the operator has not given them up. `None`: there is no such member.
pub fn find_newer(etcd: &str, record: &FormationRecord, last: Option<LastEntry>) -> Option<String> {
    let FormationState::Recovering(recovering) = &record.state else {
        return None;
    };
    if recovering.force {
        return None;
    }
    let from = &recovering.from;
    let last = last.unwrap_or_default();
    let mut reasons = recovering.stopped.iter().filter_map(|member| {
        let known = recovering.logs.get(member);
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
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &'a VolumeContent,
) -> Result<&'a Marker, String> {
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
        && log.cluster_id == recovering.cluster_id
        && recorded.member_id.as_ref() == Some(&log.member_id);
    if is_source {
        return Ok(marker);
    }
    Err(format!(
        "etcd {} is to be recovered from member {} ({}) of cluster {} on {}, but {} holds member {} of cluster {}",
        own.etcd,
        own.member,
        recorded.member_id.as_deref().unwrap_or("unknown"),
        recovering.cluster_id,
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
    recovering: &Recovering,
) -> Option<String> {
    let others = record
        .members
        .iter()
        .filter(|(member, _)| *member != own.member && !recovering.stopped.contains(*member));
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
            None if recovering.force => None,
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
