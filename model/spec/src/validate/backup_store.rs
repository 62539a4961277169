//! Where backups may be stored: control planes may write and delete everything in that folder, so it must hold nothing else.

use super::text::is_dns_name;
use crate::read::Problem;

/// The folder for backups below a cluster's base.
const BACKUPS: &str = "backups";

/// Characters that IAM does not take literally in the ARN of a folder (IAM User Guide, "Resource" and "Policy variables").
const WILDCARDS: [char; 3] = ['*', '?', '$'];

/// Checks `backupStore` at this path of the spec. `base`: `spec.configBase`.
pub fn check(path: &str, store: &str, base: Option<&str>, problems: &mut Vec<Problem>) {
    const HINT: &str =
        "leave it out, or write s3://BUCKET/PATH with a folder for these backups only";
    if !["s3://", "file://", "memfs://"]
        .iter()
        .any(|scheme| store.starts_with(scheme))
    {
        let problem = Problem::error(path, format!("\"{store}\" is not a store"));
        problems.push(problem.hint("write s3://BUCKET/PATH"));
        return;
    }
    if store.contains(WILDCARDS) {
        let message = format!("{store} stands for several folders in the policy of control planes");
        problems.push(Problem::error(path, message).hint("leave out *, ? and $"));
    }
    if let Some(why) = base.and_then(|base| find_conflict(store, base)) {
        problems.push(Problem::error(path, format!("{store} {why}")).hint(HINT));
    }
}

/// What is wrong with the place of a store in a cluster whose state is at `base`.
fn find_conflict(store: &str, base: &str) -> Option<&'static str> {
    let (scheme, store) = scheme_and_folders(store)?;
    let (other, base) = scheme_and_folders(base)?;
    if scheme != other || store.first() != base.first() {
        return None;
    }
    let own: Vec<&str> = base.iter().copied().chain([BACKUPS]).collect();
    if store.starts_with(&own) {
        return None;
    }
    if base.starts_with(&store) {
        return Some("contains the state of clusters, which control planes could change there");
    }
    if store.starts_with(&base) {
        return Some("is in the cluster's own folder of the state store, and not in its backups");
    }
    // Clusters are directly below the root of a state store. Where the store leaves the way to this cluster's state, a folder with
    // the name of a cluster is that cluster's: control planes could change its state. Further down it is nobody's.
    let way = base.iter().take(base.len().saturating_sub(1));
    let shared = way.zip(&store).take_while(|(one, other)| one == other);
    let folder = store.get(shared.count().max(1))?;
    is_cluster_name(folder)
        .then_some("is in a folder of the state store that has the name of another cluster")
}

/// True of a DNS name with a top-level domain; `backups-v1.2` is none.
fn is_cluster_name(folder: &str) -> bool {
    let domain = folder.rsplit_once('.').map_or("", |(_, domain)| domain);
    is_dns_name(folder) && domain.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The scheme of an address and its parts, of S3 with the bucket; `None` of another one, which is in memory only.
fn scheme_and_folders(address: &str) -> Option<(&str, Vec<&str>)> {
    let (scheme, rest) = address.split_once("://")?;
    let parts = rest.split('/').filter(|part| !part.is_empty());
    matches!(scheme, "s3" | "file").then(|| (scheme, parts.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(store: &str, base: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        check("at", store, Some(base), &mut problems);
        problems
    }

    #[test]
    fn a_folder_of_another_cluster_is_none_for_backups_on_disks_either() {
        let base = "file:///srv/state/demo.example.com";
        for good in [
            "file:///srv/state/demo.example.com/backups",
            "file:///srv/backups",
            "file:///backups/other.example.com",
            "s3://srv/state/other.example.com",
        ] {
            assert!(problems(good, base).is_empty(), "{good}");
        }
        for bad in [
            "file:///srv/state",
            "file:///srv/state/demo.example.com/pki",
            "file:///srv/state/other.example.com/backups",
        ] {
            assert!(!problems(bad, base).is_empty(), "{bad}");
        }
    }

    #[test]
    fn a_backup_store_gives_control_planes_nothing_but_their_backups() {
        for prefix in ["", "/clusters", "/a/b"] {
            let root = format!("s3://state{prefix}");
            let base = format!("{root}/demo.example.com");
            for good in [
                format!("{base}/backups"),
                format!("{base}/backups/etcd/main"),
                format!("{base}/backups/etcd/main/"),
                format!("{root}/etcd-backups/demo"),
                format!("{root}/demo"),
                format!("{root}/etcd-backups/demo.example.com/main"),
                format!("{root}/etcd-backups/other.example.com/main"),
                format!("{root}/backups-v1.2/main"),
                format!("{root}/2026.11/main"),
                "s3://other".to_owned(),
                "s3://other/demo.example.com".to_owned(),
                "s3://state-of-others/backups".to_owned(),
                "file:///backups".to_owned(),
            ] {
                assert!(problems(&good, &base).is_empty(), "{good}");
            }
            for bad in [
                "s3://state".to_owned(),
                "s3://state/".to_owned(),
                root.clone(),
                format!("{root}//"),
                base.clone(),
                format!("{base}/"),
                format!("{base}/pki"),
                format!("{base}/addons/backups"),
                format!("{base}/backups-of-main"),
                format!("{root}/other.example.com"),
                format!("{root}/other.example.com/backups/etcd/main"),
                "s3://state/other.example.com/pki".to_owned(),
                format!("{root}/de*"),
                format!("{base}/backups/*"),
                "s3://other/?".to_owned(),
                "s3://other/${aws:username}".to_owned(),
                "backups".to_owned(),
            ] {
                assert!(!problems(&bad, &base).is_empty(), "{bad}");
            }
        }
    }
}
