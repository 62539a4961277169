//! Whether what a volume holds is the member's own: its marker says whose it is, and etcd's log must say the same. It is looked at
//! before kubelet sees the manifest, since etcd asks nobody before it takes part.

use super::content::{Content, Inside, Log, Marker};
use super::decide::Own;
use super::log::LogIdentity;

/// Whether a member runs on from what its volume holds, as far as that can be told without the record: after a reboot a machine asks
/// nobody. False: it has not begun to run. An error says why it must not.
pub fn resumes(cluster: &str, etcd: &str, volume: &str, content: &Content) -> Result<bool, String> {
    let Content::FileSystem(Inside::Marked { marker, log }) = content else {
        return Err(format!("{volume} {}", holds(content)));
    };
    if [&marker.cluster, &marker.etcd, &marker.volume].map(String::as_str)
        != [cluster, etcd, volume]
    {
        return Err(others(volume, marker));
    }
    if *log == Log::Missing && !marker.has_run() {
        return Ok(false);
    }
    own_log(volume, marker, log).map(|_| true)
}

/// The marker is of this member of this cluster.
pub(super) fn whose(own: &Own<'_>, marker: &Marker) -> Result<(), String> {
    let said = [&marker.cluster, &marker.etcd, &marker.member];
    if said.map(String::as_str) == [own.cluster, own.etcd, own.member] {
        return Ok(());
    }
    Err(others(own.volume, marker))
}

fn others(volume: &str, marker: &Marker) -> String {
    format!(
        "{volume} holds data of member {} of etcd {} of {}, written on {}: is its tag right?",
        marker.member, marker.etcd, marker.cluster, marker.volume
    )
}

/// The log is there, and of the member that the marker tells of; the marker of one that has just begun to run tells of none.
pub(super) fn checked_log<'a>(
    own: &Own<'_>,
    marker: &Marker,
    log: &'a Log,
) -> Result<&'a LogIdentity, String> {
    let log = own_log(own.volume, marker, log);
    log.map_err(|why| format!("{why}. {}", way_out(own, own.volume)))
}

/// What an operator can do about a member that cannot be started from what its volume holds; `lost`: the volume on which it was.
pub(super) fn way_out(own: &Own<'_>, lost: &str) -> String {
    let back = if lost == own.volume {
        "If the files that belong there are still somewhere, such as in lost+found of the volume, put them back: the member then \
         starts by itself"
            .to_owned()
    } else {
        format!("Give the member its volume {lost} back")
    };
    match own.members.len() {
        0 | 1 => format!(
            "{back}. Or make a volume of one of the EBS snapshots of {lost}, in the same zone and with all of its tags, and delete {}: \
             etcd {} then starts with what it held at that time",
            own.volume, own.etcd
        ),
        all => format!(
            "{back}. There is no other way, since this release replaces no member of an etcd cluster; the others serve without it \
             while more than half of all {all} run"
        ),
    }
}

fn own_log<'a>(volume: &str, marker: &Marker, log: &'a Log) -> Result<&'a LogIdentity, String> {
    let Marker { etcd, member, .. } = marker;
    let id = marker.member_id.as_ref();
    let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
    let identity = match log {
        Log::Of(identity) => identity,
        Log::Missing => {
            return Err(format!(
                "the log of member {member} of etcd {etcd} is gone: {volume} was prepared for it and no file in member/wal of its \
                 data ends in .wal. Without its log the member{id} would vote again without knowing what it voted for before, so \
                 it is not started"
            ));
        }
        Log::Unreadable(why) => {
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
        "the log on {volume} is of member {} of cluster {}, and that of member {member} of etcd {etcd} is of member {} of cluster \
         {}: somebody put other data there, and it is not started",
        identity.member_id,
        identity.cluster_id,
        marker.member_id.clone().unwrap_or_else(unknown),
        marker.cluster_id.clone().unwrap_or_else(unknown),
    ))
}

/// What a volume holds, in a sentence about it.
pub(super) fn holds(content: &Content) -> String {
    match content {
        Content::Blank => "is blank".to_owned(),
        Content::Unrecognized => "holds something that no tool knows".to_owned(),
        Content::Other(what) => format!("holds {what}"),
        Content::Damaged(why) => format!("has a file system with errors: {why}"),
        Content::FileSystem(Inside::Nothing) => "holds an empty file system".to_owned(),
        Content::FileSystem(Inside::Marked {
            log: Log::Missing, ..
        }) => "was prepared for etcd and holds no log of it".to_owned(),
        Content::FileSystem(Inside::Marked { .. }) => "holds etcd's data".to_owned(),
        Content::FileSystem(Inside::Unmarked(names)) => {
            format!("holds {} and other things", names.join(", "))
        }
    }
}
