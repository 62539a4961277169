//! What an operator can do about data that cannot be used, as sentences.

use super::own_member::OwnMember;
/// How an etcd cluster goes on whose data is gone, as the beginning of a sentence: with a snapshot, or empty if it holds only events.
pub fn describe_restore(cluster: &str, etcd: &str) -> String {
    let restore = format!(
        "`kctl etcd restore {cluster} --etcd {etcd} --latest` shows how it begins anew with the last moment that is stored, or, with \
         --snapshot, with a snapshot (`kctl etcd snapshot list --name {cluster} --etcd {etcd}`)"
    );
    match etcd {
        "events" => format!(
            "{restore}; `kctl etcd forget {cluster} --etcd {etcd} --all --yes` begins it empty"
        ),
        _ => restore,
    }
}

/// What an operator can do about a member that cannot start from its volume. `lost` is the volume that had its data; `members`: how many
/// hold the data of the cluster.
pub(super) fn recovery_hint(own: &OwnMember<'_>, lost: &str, members: usize) -> String {
    let back = if lost == own.volume {
        "If the log files still exist, for example in lost+found of the volume, move them back: the member then \
         starts automatically"
            .to_owned()
    } else {
        format!("Let the member use its volume {lost} again")
    };
    match members {
        0 | 1 => format!(
            "{back}. Or create a volume from an EBS snapshot of {lost}, in the same zone and with all of its tags, and delete {}: \
             etcd {} then starts with the data of that time. Or {}",
            own.volume,
            own.etcd,
            describe_restore(own.cluster, own.etcd)
        ),
        all => format!(
            "{back}. Or, if its data is lost, wipe {} with wipefs and blkdiscard: a new member then takes its place. The others serve without \
             it as long as more than half of all {all} run",
            own.volume
        ),
    }
}
