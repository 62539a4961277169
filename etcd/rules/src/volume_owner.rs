//! Checks that the data on a volume belongs to the member: the marker names the owner, and the ids in etcd's log must match. The
//! check happens before kubelet sees the manifest, because etcd takes part in its cluster at once.

use super::advice::recovery_hint;
use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::log::LogIdentity;
use super::own_member::OwnMember;
/// Checks, without the record, whether a member may continue from its volume after a reboot, so that an instance can come back
/// without AWS. False: it has not run yet. The error is the reason why it must not run.
pub fn can_resume(
    cluster: &str,
    etcd: &str,
    volume: &str,
    content: &VolumeContent,
) -> Result<bool, String> {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return Err(format!("{volume} {}", describe_content(content)));
    };
    if [&marker.cluster, &marker.etcd, &marker.volume].map(String::as_str)
        != [cluster, etcd, volume]
    {
        return Err(foreign_owner(volume, marker));
    }
    if *log == EtcdLog::Missing && !marker.has_run() {
        return Ok(false);
    }
    check_own_log(volume, marker, log).map(|_| true)
}

/// Checks that the marker names this member of this cluster.
pub(super) fn check_owner(own: &OwnMember<'_>, marker: &Marker) -> Result<(), String> {
    let said = [&marker.cluster, &marker.etcd, &marker.member];
    if said.map(String::as_str) == [own.cluster, own.etcd, own.member] {
        return Ok(());
    }
    Err(foreign_owner(own.volume, marker))
}

fn foreign_owner(volume: &str, marker: &Marker) -> String {
    format!(
        "{volume} holds data of member {} of etcd {} of {}, written on {}: is the volume's tag correct?",
        marker.member, marker.etcd, marker.cluster, marker.volume
    )
}

/// Checks that the log exists and belongs to the member in the marker. The marker of a member that has just started has no id yet.
/// `members`: how many hold the data of the cluster.
pub(super) fn check_log<'a>(
    own: &OwnMember<'_>,
    marker: &Marker,
    log: &'a EtcdLog,
    members: usize,
) -> Result<&'a LogIdentity, String> {
    let checked = check_own_log(own.volume, marker, log);
    checked.map_err(|why| {
        let hint = recovery_hint(own, own.volume, members);
        match log {
            EtcdLog::Shorter { .. } => format!("{why}. {hint}. {}", shorter_hint(own)),
            _ => format!("{why}. {hint}"),
        }
    })
}

fn shorter_hint(own: &OwnMember<'_>) -> String {
    format!(
        "Or give up what is missing: `kctl etcd recover {} --etcd {} --from {}` begins a new etcd cluster with the data that is left",
        own.cluster, own.etcd, own.member
    )
}

/// Like [`check_log`], and accepts a log that lost its end: an operator has asked for the data that is left.
pub(super) fn check_remaining_log<'a>(
    own: &OwnMember<'_>,
    marker: &Marker,
    log: &'a EtcdLog,
) -> Result<&'a LogIdentity, String> {
    find_own_log(own.volume, marker, log)
}

fn check_own_log<'a>(
    volume: &str,
    marker: &Marker,
    log: &'a EtcdLog,
) -> Result<&'a LogIdentity, String> {
    let identity = find_own_log(volume, marker, log)?;
    let EtcdLog::Shorter { seen, found, .. } = log else {
        return Ok(identity);
    };
    Err(format!(
        "the log of member {} of etcd {} on {volume} lost its end: it reached index {} in term {}, and now it ends at index {} in term \
         {}. The member ({}) would vote without knowing what it agreed to, so it is not started",
        marker.member,
        marker.etcd,
        seen.index,
        seen.term,
        found.index,
        found.term,
        identity.member_id
    ))
}

fn find_own_log<'a>(
    volume: &str,
    marker: &Marker,
    log: &'a EtcdLog,
) -> Result<&'a LogIdentity, String> {
    let Marker { etcd, member, .. } = marker;
    let id = marker.member_id.as_ref();
    let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
    let identity = match log {
        EtcdLog::Of(identity) | EtcdLog::Shorter { log: identity, .. } => identity,
        EtcdLog::Missing => {
            return Err(format!(
                "the log of member {member} of etcd {etcd} is missing: {volume} was prepared for it, but no file in member/wal of its \
                 data folder ends in .wal. Without its log the member{id} would vote without knowing its earlier votes, so \
                 it is not started"
            ));
        }
        EtcdLog::Unreadable(why) => {
            return Err(format!(
                "the log of member {member} of etcd {etcd} on {volume} cannot be read, so it is not started: {why}"
            ));
        }
    };
    let same = |said: &Option<String>, found: &String| said.as_ref().is_none_or(|id| id == found);
    if same(&marker.member_id, &identity.member_id)
        && same(&marker.cluster_id, &identity.cluster_id)
    {
        return Ok(identity);
    }
    let unknown = || "unknown".to_owned();
    Err(format!(
        "the log on {volume} belongs to member {} of cluster {}, but that of member {member} of etcd {etcd} to member {} of cluster \
         {}: other data was copied there, so it is not started",
        identity.member_id,
        identity.cluster_id,
        marker.member_id.clone().unwrap_or_else(unknown),
        marker.cluster_id.clone().unwrap_or_else(unknown),
    ))
}

/// Describes a volume's content as a predicate for a sentence.
pub(super) fn describe_content(content: &VolumeContent) -> String {
    match content {
        VolumeContent::Blank => "is blank".to_owned(),
        VolumeContent::Unrecognized => "holds unrecognized data".to_owned(),
        VolumeContent::Other(what) => format!("holds {what}"),
        VolumeContent::Damaged(why) => format!("has a file system with errors: {why}"),
        VolumeContent::FileSystem(FileSystemContent::Nothing) => {
            "holds an empty file system".to_owned()
        }
        VolumeContent::FileSystem(FileSystemContent::Marked {
            log: EtcdLog::Missing,
            ..
        }) => "was prepared for etcd and holds no log".to_owned(),
        VolumeContent::FileSystem(FileSystemContent::Marked { .. }) => {
            "holds data of etcd".to_owned()
        }
        VolumeContent::FileSystem(FileSystemContent::Unmarked(names)) => {
            format!("holds other files, such as {}", names.join(", "))
        }
    }
}
