//! Which Kubernetes version an upgrade goes to, and what of the cluster would not work with it.

mod addons;
mod emulation;

pub use crate::validate::runtime_config::named_apis;
pub use addons::{AddonFindings, check_addons};
pub(crate) use emulation::emulated_version;
pub use emulation::{OpenUpgrade, find_version_change, nodes_version, version_before};

use crate::api::cluster::ClusterSpec;
use crate::catalog::recommended_patch;
use crate::expand::default_etcd_version;
use crate::validate::versions::{NEWEST_MINOR, Version};
use etcd_rules::find_refusal;
use std::collections::BTreeMap;

/// A kubelet may be that many minors older than its API server (Kubernetes' version skew policy).
const KUBELET_SKEW: u32 = 3;

/// The version that comes next: the recommended patch of the current minor, or of the next minor if the cluster has that patch. `None`
/// if this kctl knows nothing newer.
pub fn next_version(current: &Version) -> Option<Version> {
    let recommended = |minor| Version::parse(recommended_patch(minor)?);
    let mut next = [current.minor, current.minor + 1]
        .into_iter()
        .filter_map(recommended);
    next.find(|version| version > current)
}

/// Why a cluster cannot go from one version to the other in one step.
pub fn step_problem(current: &Version, target: &Version) -> Option<String> {
    if target == current {
        return Some(format!("the cluster has version {current} already"));
    }
    if target < current {
        return Some(format!(
            "Kubernetes does not support going back from {current} to {target}"
        ));
    }
    if target.major != 1 || target.minor > NEWEST_MINOR {
        return Some(format!(
            "{target} is newer than this kctl knows: upgrade kctl"
        ));
    }
    let next = current.minor + 1;
    (target.minor > next).then(|| {
        let first = recommended_patch(next).unwrap_or_default();
        format!("control planes go up one minor at a time: upgrade to {first} first")
    })
}

/// The nodes whose kubelet would be too old for the API servers; nodes as pairs of name and version.
pub fn kubelet_problems(target: &Version, nodes: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in nodes {
        match Version::parse(text) {
            Some(kubelet) if kubelet.minor + KUBELET_SKEW < target.minor => problems.push(format!(
                "kubelet of {name} is {kubelet}: an API server of {target} works with 1.{} and newer",
                target.minor - KUBELET_SKEW
            )),
            Some(_) => {}
            None => problems.push(format!("{name} reports the kubelet version {text:?}")),
        }
    }
    problems
}

/// The nodes that an earlier upgrade has not reached yet; nodes as pairs of name and version.
pub fn unfinished_problems(current: &Version, nodes: &[(&str, &str)]) -> Vec<String> {
    let older = |text: &str| Version::parse(text).is_some_and(|version| version < *current);
    let waiting = nodes.iter().filter(|(_, text)| older(text));
    waiting
        .map(|(name, text)| {
            format!("{name} is still at {text}: finish the upgrade to {current} first")
        })
        .collect()
}

/// The etcd clusters that cannot go to the minor that comes with it. `running` has versions by name.
pub fn etcd_problems(
    spec: &ClusterSpec,
    running: &BTreeMap<String, String>,
    target: &Version,
) -> Vec<String> {
    let refused = etcd_changes(spec, running, target).filter_map(|(name, now, then)| {
        let why = find_refusal(now, then)?;
        Some(format!(
            "etcd cluster {name} would go from {now} to {then}: {why}"
        ))
    });
    refused.collect()
}

/// The etcd clusters that get another minor of etcd with a Kubernetes version.
pub fn etcd_minor_changes<'a>(
    spec: &'a ClusterSpec,
    running: &'a BTreeMap<String, String>,
    target: &Version,
) -> Vec<&'a str> {
    let changes = etcd_changes(spec, running, target);
    let minor = |version: &str| Version::parse(version).map(|of| (of.major, of.minor));
    let other = changes.filter(|(_, now, then)| minor(now) != minor(then));
    other.map(|(name, _, _)| name).collect()
}

/// Name, present and next version of every etcd cluster.
fn etcd_changes<'a>(
    spec: &'a ClusterSpec,
    running: &'a BTreeMap<String, String>,
    target: &Version,
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let default = default_etcd_version(target);
    running.iter().map(move |(name, version)| {
        let own = spec.etcd_clusters.iter().find(|etcd| etcd.name == *name);
        let own = own.and_then(|etcd| etcd.version.as_deref());
        (name.as_str(), version.as_str(), own.unwrap_or(default))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn the_next_version_is_the_recommended_patch_then_the_next_minor() {
        for minor in 32..NEWEST_MINOR {
            let patch = version(recommended_patch(minor).unwrap());
            let old = version(&format!("1.{minor}.0"));
            assert_eq!(next_version(&old), Some(patch.clone()));
            let next = version(recommended_patch(minor + 1).unwrap());
            assert_eq!(next_version(&patch), Some(next));
        }
        let newest = version(recommended_patch(NEWEST_MINOR).unwrap());
        assert_eq!(next_version(&newest), None);
    }

    #[test]
    fn every_chosen_step_is_allowed_and_no_other_direction() {
        let old = version("1.34.1");
        let next = next_version(&old).unwrap();
        assert_eq!(step_problem(&old, &next), None);
        assert_eq!(step_problem(&old, &version("1.35.0")), None);
        for (target, words) in [
            ("1.34.1", "already"),
            ("1.33.9", "going back"),
            ("1.36.0", "one minor at a time"),
            ("1.38.0", "upgrade kctl"),
        ] {
            let problem = step_problem(&old, &version(target)).unwrap();
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn kubelets_may_be_three_minors_older() {
        let nodes = [("a", "v1.33.2"), ("b", "v1.32.9"), ("c", "?")];
        let problems = kubelet_problems(&version("1.36.3"), &nodes);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("kubelet of b is 1.32.9"));
        assert_eq!(kubelet_problems(&version("1.35.0"), &nodes[..2]).len(), 0);
        assert_eq!(
            unfinished_problems(&version("1.33.2"), &nodes[..2]).len(),
            1
        );
    }

    #[test]
    fn a_step_may_bring_the_next_minor_of_etcd_if_this_one_keeps_its_members() {
        let spec = ClusterSpec::default();
        for (running, target, changes, refused) in [
            ("3.5.31", "1.33.13", false, false),
            ("3.5.31", "1.34.1", true, false),
            ("3.5.20", "1.34.1", true, true),
            ("3.4.30", "1.34.1", true, true),
            ("3.6.12", "1.33.13", true, true),
            ("3.6.12", "1.36.3", false, false),
            ("3.6.12", "1.37.1", true, false),
            ("3.6.10", "1.37.1", true, true),
            ("3.5.31", "1.37.1", true, true),
            ("3.7.0", "1.37.1", false, false),
        ] {
            let running = BTreeMap::from([("main".to_owned(), running.to_owned())]);
            let target = version(target);
            let changed = etcd_minor_changes(&spec, &running, &target);
            assert_eq!(!changed.is_empty(), changes, "{running:?} {target}");
            let problems = etcd_problems(&spec, &running, &target);
            assert_eq!(!problems.is_empty(), refused, "{problems:?}");
        }
    }
}
