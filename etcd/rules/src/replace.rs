//! Decides the next step of a member that lost its data: the old member is removed, and a new one with a new id joins as a learner
//! on the volume that this instance holds. A member that the spec added joins in the same way. Every step follows from the record,
//! the volume and the live list of members alone, so that an instance that dies between two steps, or its replacement, goes on.

use super::advice::describe_restore;
use super::content::{EtcdLog, FileSystemContent, JoiningMember, Marker, VolumeContent};
use super::live::{LiveCluster, LiveMember, MemberChange};
use super::log::LogIdentity;
use super::own_member::{Formed, OwnMember, with_own_member};
use super::record::{FormationRecord, RecordedMember, Replacing};
use super::step::{FormationStep, wait_for_second_answer};
use super::version_gate::{keeps_membership, minor_of, other_minor};
use super::volume_owner::{check_owner, describe_content};
use node::components::{EtcdMemberNames, etcd_ports};
use node::formatted::UnknownFields;

/// True if the volume holds a member that has run and whose log is gone. Such a member must not run, whatever is decided next.
pub fn has_lost_log(content: &VolumeContent) -> bool {
    match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            marker.has_run() && !matches!(log, EtcdLog::Of(_))
        }
        _ => false,
    }
}

/// Whether the data of a recorded member is lost for good, so that a new member may take its place: its volume is blank again, or
/// its log is gone, or EC2 has said twice that the volume does not exist and this instance holds a blank one.
pub(super) fn has_lost_data(
    own: &OwnMember<'_>,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> bool {
    if recorded.volume != own.volume {
        return is_empty(content) && own.gone.contains(&recorded.volume);
    }
    let is_own = |marker: &Marker| check_owner(own, marker).is_ok() && marker.volume == own.volume;
    match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            is_own(marker) && !matches!(log, EtcdLog::Of(_))
        }
        // An interrupted mkfs of a member that was to be added.
        VolumeContent::Unrecognized => recorded.blank && recorded.member_id.is_none(),
        content => is_empty(content),
    }
}

fn is_empty(content: &VolumeContent) -> bool {
    matches!(
        content,
        VolumeContent::Blank | VolumeContent::FileSystem(FileSystemContent::Nothing)
    )
}

/// Begins the replacement of this instance's member, or its addition if the record has none of its name.
pub(super) fn begin_replacement(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    cluster_id: &str,
    content: &VolumeContent,
) -> FormationStep {
    let lost = record.members.get(own.member);
    if let Some(lost) = lost
        && lost.volume != own.volume
        && !own.gone_twice.contains(&lost.volume)
    {
        return wait_for_second_answer(own, &lost.volume);
    }
    if !keeps_membership(own.version) {
        return FormationStep::Wait(format!(
            "{own} needs a new member in its place, but releases of etcd before 3.5.26, as {} here, may forget that a new \
             member votes, or bring back a removed one: set spec.etcdClusters[].version to 3.5.26 or newer; `kctl update cluster`, then \
             `kctl rolling-update cluster` replaces the control planes that are well first",
            own.version
        ));
    }
    let live = match find_live(own, cluster_id) {
        Ok(live) => live,
        Err(step) => return *step,
    };
    let mut next = record.clone();
    // A member without an id has never run.
    let lost = lost.filter(|lost| lost.member_id.is_some());
    if let Some(other) = &record.replacing {
        // etcd adds no member while a voter is away (`mayAddMember`). So the dead one goes first, whoever waits for whom.
        if let Some(stale) = find_stale(own, live, None) {
            return FormationStep::Change(remove_own(own, stale));
        }
        let unborn = |of: &RecordedMember| of.member_id.is_none();
        let is_unborn = record.members.get(&other.member).is_some_and(unborn);
        if lost.is_none() || !other.added || !is_unborn {
            return FormationStep::Wait(format!(
                "member {} of etcd {} is being replaced, and one member changes at a time",
                other.member, own.etcd
            ));
        }
        // A loss comes before an addition that has not begun; the added one stays in the record and begins again afterwards.
    }
    if let Some(step) = check_minor(own, record) {
        return step;
    }
    next.replacing = Some(Replacing {
        member: own.member.to_owned(),
        added: lost.is_none(),
        unknown: UnknownFields::new(),
    });
    if let Some(lost) = lost {
        next.retire_member(own.member, lost);
    }
    let joins = RecordedMember::on_volume(
        own.volume,
        is_empty(content) || record.was_blank(own.member, own.volume),
    );
    next.members.insert(own.member.to_owned(), joins);
    FormationStep::Record(next)
}

/// etcd of an older minor than the cluster's, which is the lowest of all members, ends at once (etcd: `isCompatibleWithCluster`).
fn check_minor(own: &OwnMember<'_>, record: &FormationRecord) -> Option<FormationStep> {
    let others = record.members.keys().filter(|name| *name != own.member);
    let versions = others.filter_map(|name| own.peers.get(name)?.as_ref().ok());
    let versions = versions.map(|peer| peer.version.as_str());
    let lowest = versions.min_by_key(|version| minor_of(version))?;
    (minor_of(own.version) < minor_of(lowest)).then(|| {
        FormationStep::Wait(format!(
            "{own} needs a new member in its place, but this instance has etcd {}, and all other members that answer run {lowest} or \
             newer, with which it cannot start: replace this control plane with `kctl rolling-update cluster`, or delete this instance",
            own.version
        ))
    })
}

/// The live list, or the step that waits for it.
pub(super) fn find_live<'a>(
    own: &OwnMember<'a>,
    cluster_id: &str,
) -> Result<&'a LiveCluster, Box<FormationStep>> {
    let step = match own.live {
        Err(why) => FormationStep::Wait(format!(
            "{own} needs a new member in its place, which the other members must agree to: {why}. If so many of them are \
             lost for good that there is no quorum, `kctl etcd recover {} --etcd {}` goes on with the data of one; if all are lost, {}",
            own.cluster,
            own.etcd,
            describe_restore(own.cluster, own.etcd)
        )),
        Ok(live) if live.cluster_id != cluster_id => FormationStep::Ask(format!(
            "the members that answer belong to etcd cluster {}, but the record says that etcd {} is {cluster_id}: nothing is changed",
            live.cluster_id, own.etcd
        )),
        Ok(live) => return Ok(live),
    };
    Err(Box::new(step))
}

/// The id of a member in the live list that has this member's peer URL and is not the one that was added.
fn find_stale(own: &OwnMember<'_>, live: &LiveCluster, added: Option<&String>) -> Option<String> {
    let mut of_own = live.members.iter();
    let stale = of_own.find(|one| is_of_member(own, own.member, one) && Some(&one.id) != added);
    stale.map(|one| one.id.clone())
}

fn remove_own(own: &OwnMember<'_>, id: String) -> MemberChange {
    MemberChange::Remove {
        member: own.member.to_owned(),
        id,
    }
}

/// True if this one of the live list has the peer URL of the member with this short name.
pub(super) fn is_of_member(own: &OwnMember<'_>, member: &str, listed: &LiveMember) -> bool {
    let peer_url = peer_url_of(own, member);
    let mut urls = listed.peer_urls.iter();
    urls.any(|url| url.eq_ignore_ascii_case(&peer_url))
}

/// Those that vote.
pub(super) fn voting_members<'a>(listed: &[&'a LiveMember]) -> Vec<&'a LiveMember> {
    let voters = listed.iter().filter(|one| !one.learner);
    voters.copied().collect()
}

/// What the volume holds for the new member.
enum Prepared<'a> {
    /// The marker of a member that has no log yet.
    Fresh(&'a Marker),
    /// The log of the member that was added.
    Runs(&'a Marker),
    /// Not ready: the next step.
    Not(Box<FormationStep>),
}

/// The next step while the record says that this instance's member is being replaced.
pub(super) fn decide_replacing(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> FormationStep {
    let Formed {
        record, recorded, ..
    } = formed;
    if recorded.volume != own.volume {
        return move_replacement(own, record, recorded, content);
    }
    let prepared = prepare_volume(own, formed, content);
    if let Prepared::Not(step) = &prepared
        && let FormationStep::Refuse(_) = **step
    {
        return (**step).clone();
    }
    let live = match find_live(own, formed.cluster_id) {
        Ok(live) => live,
        Err(step) => return *step,
    };
    if let Some(id) = running_id(own, formed, content, live) {
        // An older version of the record was restored.
        return record_id(own, record, Some(id));
    }
    if let (Prepared::Not(_), Some(_)) = (&prepared, &recorded.member_id) {
        // The added member's log is gone. Its id is given up before anything else begins.
        return record_id(own, record, None);
    }
    if let Some(id) = find_stale(own, live, recorded.member_id.as_ref()) {
        return FormationStep::Change(remove_own(own, id));
    }
    let Some(id) = &recorded.member_id else {
        return match prepared {
            Prepared::Not(step) => *step,
            _ => FormationStep::Change(MemberChange::AddLearner {
                peer_urls: joining_urls(&own_peer_url(own)),
            }),
        };
    };
    match (prepared, live.members.iter().find(|one| one.id == *id)) {
        (Prepared::Not(step), _) => *step,
        // It has started before, so it had a log.
        (Prepared::Fresh(_), Some(joined)) if !joined.name.is_empty() => {
            record_id(own, record, None)
        }
        (Prepared::Fresh(marker), Some(_)) => decide_first_start(own, record, marker, id, live),
        (Prepared::Runs(marker), Some(joined)) => decide_vote(own, formed, marker, joined),
        (_, None) => record_id(own, record, None),
    }
}

/// Records the id of this instance's member, or that it has none.
pub(super) fn record_id(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    id: Option<String>,
) -> FormationStep {
    let mut next = record.clone();
    // It runs, so it is not retired, whatever was believed of its log.
    let retired = next.retired.values_mut().filter(|of| !of.given_up);
    let members = retired.filter_map(|of| of.members.get_mut(own.member));
    for members in members {
        members.retain(|one| id.is_none() || one.member_id != id);
    }
    let next = with_own_member(own, &next, |member| member.member_id = id);
    FormationStep::Record(next)
}

/// The next step of an added member that has no log yet.
fn decide_first_start(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    marker: &Marker,
    id: &str,
    live: &LiveCluster,
) -> FormationStep {
    let joins = JoiningMember {
        member_id: id.to_owned(),
        initial_cluster: initial_cluster(own, live),
    };
    let before = marker.joins.as_ref();
    if before.is_none_or(|before| before.member_id != joins.member_id) {
        let marker = Marker {
            joins: Some(joins.clone()),
            ..marker.clone()
        };
        return FormationStep::Join { marker, joins };
    }
    if own.shown && before == Some(&joins) {
        return FormationStep::Wait(format!("the new {own} ({id}) is starting"));
    }
    // It may have had a log before this instance took over or restarted; or the list has changed, and it cannot start.
    record_id(own, record, None)
}

/// The next step of an added member that has its log.
fn decide_vote(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    marker: &Marker,
    joined: &LiveMember,
) -> FormationStep {
    let id = joined.id.clone();
    if marker.member_id.is_none() {
        return FormationStep::Mark {
            marker: Marker {
                cluster_id: Some(formed.cluster_id.to_owned()),
                member_id: Some(id),
                ..marker.clone()
            },
            new: false,
        };
    }
    if joined.learner {
        // It began under another minor of etcd, and begins anew under this one.
        if other_minor(own, marker).is_some() {
            return record_id(own, formed.record, None);
        }
        return FormationStep::Change(MemberChange::Promote { id });
    }
    // Only once it votes: in releases before etcd's pull request 21719, an update of a learner made the list say that it votes.
    if joined.peer_urls.len() > 1 {
        let peer_url = own_peer_url(own);
        return FormationStep::Change(MemberChange::EndJoin { id, peer_url });
    }
    FormationStep::Record(FormationRecord {
        replacing: None,
        ..formed.record.clone()
    })
}

/// The id of the log on the volume if it is that of a member which runs in this one's place: the marker knows it, and it is in the
/// live list.
pub(super) fn running_id(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
    live: &LiveCluster,
) -> Option<String> {
    let VolumeContent::FileSystem(FileSystemContent::Marked {
        marker,
        log: EtcdLog::Of(log),
    }) = content
    else {
        return None;
    };
    let id = marker
        .member_id
        .as_ref()
        .filter(|id| **id == log.member_id)?;
    let is_other = formed.recorded.member_id.as_ref() != Some(id);
    let is_own = marker.volume == own.volume && log.cluster_id == formed.cluster_id;
    let is_live = find_stale(own, live, None).as_ref() == Some(id);
    (is_other && is_own && is_live && check_owner(own, marker).is_ok()).then(|| id.clone())
}

/// The instance holds another volume than the one on which the replacement began.
fn move_replacement(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    let volume = &recorded.volume;
    if !has_lost_data(own, recorded, content) {
        return FormationStep::Refuse(format!(
            "{own} is being replaced on {volume}, but this instance holds {}, which {}: let the member use \
             {volume}, or delete {volume} and wipe {} with wipefs and blkdiscard",
            own.volume,
            describe_content(content),
            own.volume
        ));
    }
    if !own.gone_twice.contains(volume) {
        return wait_for_second_answer(own, volume);
    }
    FormationStep::Record(with_own_member(own, record, |joins| {
        *joins = RecordedMember::on_volume(own.volume, true);
    }))
}

fn prepare_volume<'a>(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &'a VolumeContent,
) -> Prepared<'a> {
    let marker = || Marker {
        joins: Some(JoiningMember::default()),
        ..own.new_marker(formed.token)
    };
    let not = |step| Prepared::Not(Box::new(step));
    match content {
        VolumeContent::Blank if !formed.recorded.blank => {
            let seen = with_own_member(own, formed.record, |member| member.blank = true);
            not(FormationStep::Record(seen))
        }
        VolumeContent::Blank => not(FormationStep::Format),
        // The volume was recorded as blank, so this can only be an interrupted mkfs.
        VolumeContent::Unrecognized if formed.recorded.blank => not(FormationStep::Format),
        VolumeContent::FileSystem(FileSystemContent::Nothing) => not(FormationStep::Mark {
            marker: marker(),
            new: true,
        }),
        VolumeContent::FileSystem(FileSystemContent::Marked { marker: of, log }) => {
            if let Err(why) = check_owner(own, of) {
                return not(FormationStep::Refuse(why));
            }
            if of.volume != own.volume {
                return not(FormationStep::Refuse(format!(
                    "{} is a copy of {}, and a member that has forgotten what it agreed to corrupts the cluster, so it is not started: wipe \
                     it with wipefs and blkdiscard, and a new member begins on it",
                    own.volume, of.volume
                )));
            }
            match log {
                EtcdLog::Missing if !of.has_run() && of.token == formed.token => {
                    Prepared::Fresh(of)
                }
                EtcdLog::Of(log) if is_log_of(formed, of, log) => Prepared::Runs(of),
                _ => not(FormationStep::SetAside { marker: marker() }),
            }
        }
        other => not(FormationStep::Refuse(format!(
            "{own} is being replaced, but {} {}: a member begins on a blank volume only; wipe it with wipefs and \
             blkdiscard if nothing on it is needed",
            own.volume,
            describe_content(other)
        ))),
    }
}

/// True if the log is that of the added member, and the marker does not contradict.
fn is_log_of(formed: &Formed<'_>, marker: &Marker, log: &LogIdentity) -> bool {
    let is = |known: &Option<String>, id: &str| known.as_ref().is_none_or(|known| known == id);
    log.cluster_id == formed.cluster_id
        && formed.recorded.member_id.as_ref() == Some(&log.member_id)
        && is(&marker.cluster_id, &log.cluster_id)
        && is(&marker.member_id, &log.member_id)
}

fn member_names(own: &OwnMember<'_>) -> EtcdMemberNames {
    EtcdMemberNames::new(own.etcd, own.members, own.cluster)
}

fn own_peer_url(own: &OwnMember<'_>) -> String {
    peer_url_of(own, own.member)
}

fn peer_url_of(own: &OwnMember<'_>, member: &str) -> String {
    let port = etcd_ports(own.etcd).map_or(0, |ports| ports.peer);
    format!("https://{}:{port}", member_names(own).member_host(member))
}

/// The peer URLs of a member that joins: its own, and the same in capitals. etcd starts without a log only if its manifest names
/// exactly the URLs in the live list (`membership.ValidateClusterAndAssignIDs`, `netutil.URLStringsEqual`: the numbers of URLs must
/// be equal). Once the second one is removed from the list, the manifest that made the member join cannot do so again, also when
/// kubelet restarts the container by itself. A change of the manifest would do the same, but kubelet then stops etcd for up to a
/// minute, because it deletes the mirror pod first through an API server that may need this etcd.
fn joining_urls(peer_url: &str) -> Vec<String> {
    let host = peer_url.strip_prefix("https://").unwrap_or(peer_url);
    let capital = format!("https://{}", host.to_ascii_uppercase());
    vec![capital, peer_url.to_owned()]
}

/// `ETCD_INITIAL_CLUSTER` of a joining member. etcd compares the URLs with the live list and requires them to be equal
/// (`membership.ValidateClusterAndAssignIDs`). A member that has not started has no name in the list; its DNS name has it.
fn initial_cluster(own: &OwnMember<'_>, live: &LiveCluster) -> String {
    let domain = format!(".{}:", member_names(own).domain);
    let entries = live.members.iter().flat_map(|member| {
        member.peer_urls.iter().map(|url| {
            let url_in_small = url.to_ascii_lowercase();
            let host = url_in_small.strip_prefix("https://").unwrap_or(url);
            let name = host.split_once(&domain).map_or(host, |(name, _)| name);
            format!("{name}={url}")
        })
    });
    let mut entries: Vec<String> = entries.collect();
    entries.sort();
    entries.join(",")
}
