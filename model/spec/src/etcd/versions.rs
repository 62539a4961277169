//! Checks the etcd version of a spec: the running minor or the next one. etcd is upgraded one minor at a time
//! (etcd.io/docs/v3.6/upgrades/upgrading-etcd), and an older minor exits at once with "cluster cannot be downgraded"
//! (kubernetes/kubernetes#54027), so nothing could read the data.

use crate::read::Problem;
use crate::validate::versions::Version;
use etcd_rules::{Unready, find_unready};
use full::EtcdCluster;

/// A version that a member runs, or that the last update set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningVersion {
    /// Without `v`: `3.6.12`.
    pub version: String,
    /// The source of this information: an instance, or the last update.
    pub by: String,
}

/// An error if the etcd cluster cannot be changed to the version of the spec. `index` is its index in the spec.
/// `kubernetes` is the Kubernetes version that determined the etcd version, if the spec sets none.
pub fn check_version(
    index: usize,
    spec: &EtcdCluster,
    kubernetes: Option<&str>,
    runs: &[RunningVersion],
) -> Option<Problem> {
    let wanted = major_and_minor(&spec.version)?;
    let known = runs
        .iter()
        .filter_map(|runs| Some((major_and_minor(&runs.version)?, runs)));
    let oldest = known.clone().min_by_key(|(minor, _)| *minor)?;
    let newest = known.max_by_key(|(minor, _)| *minor)?;
    let field = format!("spec.etcdClusters[{index}].version");
    let (major, next) = (oldest.0.0, oldest.0.1 + 1);
    let (runs, why, hint) = if wanted < newest.0 {
        let hint = format!("set {field} to {}", newest.1.version);
        (newest.1, "no older minor can read its data", hint)
    } else if wanted > (major, next) {
        let hint = format!(
            "set {field} to a version of {major}.{next} first, update, and replace every control plane"
        );
        (oldest.1, "it goes up one minor at a time", hint)
    } else if let Some((old, Unready { why, ready })) = find_old_release(wanted, runs) {
        let hint = format!("set {field} to {ready} first, update, and replace every control plane");
        (old, why, hint)
    } else {
        return None;
    };
    let from = kubernetes.map(|version| format!(", which goes with Kubernetes {version}"));
    let message = format!(
        "etcd cluster {} runs etcd {} ({}), and the spec wants {}{}: {why}",
        spec.name,
        runs.version,
        runs.by,
        spec.version,
        from.unwrap_or_default()
    );
    let at = match kubernetes {
        Some(_) => "spec.kubernetesVersion".to_owned(),
        None => field,
    };
    Some(Problem::error(at, message).hint(hint))
}

/// A member whose release does not go on to the minor `wanted`, and why.
fn find_old_release(
    wanted: (u32, u32),
    runs: &[RunningVersion],
) -> Option<(&RunningVersion, Unready)> {
    let is_older =
        |runs: &&RunningVersion| major_and_minor(&runs.version).is_some_and(|minor| minor < wanted);
    let mut older = runs.iter().filter(is_older);
    older.find_map(|runs| Some((runs, find_unready(&runs.version)?)))
}

/// True if the version is of a newer minor than one that a member runs.
pub fn is_next_minor(version: &str, runs: &[RunningVersion]) -> bool {
    let wanted = major_and_minor(version);
    runs.iter()
        .any(|runs| major_and_minor(&runs.version) < wanted)
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let version = Version::parse(version)?;
    Some((version.major, version.minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_support::etcd_cluster;

    fn etcd_of_version(version: &str) -> EtcdCluster {
        EtcdCluster {
            version: version.to_owned(),
            ..etcd_cluster("main", &["a"])
        }
    }

    fn running_versions(versions: &[&str]) -> Vec<RunningVersion> {
        let runs = |(index, version): (usize, &&str)| RunningVersion {
            version: (*version).to_owned(),
            by: format!("i-{index}"),
        };
        versions.iter().enumerate().map(runs).collect()
    }

    fn problem_text(problem: Option<Problem>) -> String {
        let text = |problem: Problem| {
            let hint = problem.hint.unwrap_or_default();
            format!("{}: {}; {hint}", problem.path, problem.message)
        };
        problem.map(text).unwrap_or_default()
    }

    #[test]
    fn a_refusal_says_where_who_runs_what_and_what_to_do() {
        let runs = running_versions(&["3.6.12", "3.5.31"]);
        assert_eq!(
            problem_text(check_version(1, &etcd_of_version("3.5.31"), None, &runs)),
            "spec.etcdClusters[1].version: etcd cluster main runs etcd 3.6.12 (i-0), and the spec wants 3.5.31: no older minor can \
             read its data; set spec.etcdClusters[1].version to 3.6.12"
        );
        let old = running_versions(&["3.5.31", "3.5.20"]);
        let new = etcd_of_version("3.6.12");
        assert_eq!(
            problem_text(check_version(0, &new, Some("1.34.0"), &old)),
            "spec.kubernetesVersion: etcd cluster main runs etcd 3.5.20 (i-1), and the spec wants 3.6.12, which goes with Kubernetes \
             1.34.0: releases of etcd before 3.5.26 may have forgotten who is a member, and 3.6 would believe them; set \
             spec.etcdClusters[0].version to 3.5.26 or newer of 3.5 first, update, and replace every control plane"
        );
        let unnamed = running_versions(&["3.6.12", "3.6.10"]);
        assert_eq!(
            problem_text(check_version(0, &etcd_of_version("3.7.2"), None, &unnamed)),
            "spec.etcdClusters[0].version: etcd cluster main runs etcd 3.6.10 (i-1), and the spec wants 3.7.2: releases of etcd 3.6 \
             before 3.6.11 may not work together with 3.7; set spec.etcdClusters[0].version to 3.6.11 or newer of 3.6 first, update, \
             and replace every control plane"
        );
        assert_eq!(
            problem_text(check_version(
                0,
                &etcd_of_version("3.7.0"),
                Some("1.37.0"),
                &runs
            )),
            "spec.kubernetesVersion: etcd cluster main runs etcd 3.5.31 (i-1), and the spec wants 3.7.0, which goes with Kubernetes \
             1.37.0: it goes up one minor at a time; set spec.etcdClusters[0].version to a version of 3.6 first, update, and replace \
             every control plane"
        );
    }

    proptest! {
        #[test]
        fn a_version_is_taken_exactly_if_no_member_goes_down_or_skips_a_minor_or_has_forgotten_members(
            wanted in (0..9_u32, 0..40_u32),
            members in prop::collection::vec((0..9_u32, 0..40_u32), 0..=5),
        ) {
            let written = |(minor, patch): &(u32, u32)| format!("3.{minor}.{patch}");
            let versions: Vec<String> = members.iter().map(written).collect();
            let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
            let edit = check_version(0, &etcd_of_version(&written(&wanted)), None, &running_versions(&versions));
            let goes = |(minor, patch): &(u32, u32)| {
                let is_named = (*minor, *patch) >= (5, 26) && !(*minor == 6 && *patch < 11);
                wanted.0 == *minor || wanted.0 == minor + 1 && is_named
            };
            prop_assert_eq!(edit.is_none(), members.iter().all(goes));
        }
    }
}
