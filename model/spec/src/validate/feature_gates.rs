//! Feature gates: a component ends at its start with one that its version does not have (`unrecognized feature gate`).

use super::removed_flags::minor_of;
use super::versions::{NEWEST_MINOR, OLDEST_MINOR};
use crate::api::cluster::ClusterSpec;
use crate::api::kubelet::KubeletConfigSpec;
use crate::read::path::field_path;
use crate::read::{Problem, nearest};
use crate::upgrade::nodes_version;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The gates of every component: all register those of the others too, in one set.
static GATES: LazyLock<BTreeMap<&str, (u32, u32)>> = LazyLock::new(|| {
    let lines = include_str!("../../data/feature-gates.txt").lines();
    lines.filter_map(parse_line).collect()
});

/// `33-36 NAME`: the first and last minor with a gate. None: a comment.
fn parse_line(line: &'static str) -> Option<(&'static str, (u32, u32))> {
    let (minors, name) = line.split_once(' ')?;
    let (first, last) = minors.split_once('-')?;
    Some((name, (first.parse().ok()?, last.parse().ok()?)))
}

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let minors = minors_of(spec);
    let api_server = spec.kube_api_server.as_ref();
    let manager = spec.kube_controller_manager.as_ref();
    let scheduler = spec.kube_scheduler.as_ref();
    let proxy = spec.kube_proxy.as_ref();
    let (kubelet, master) = (spec.kubelet.as_ref(), spec.master_kubelet.as_ref());
    for (section, gates) in [
        ("kubeAPIServer", api_server.map(|one| &one.feature_gates)),
        (
            "kubeControllerManager",
            manager.map(|one| &one.feature_gates),
        ),
        ("kubeScheduler", scheduler.map(|one| &one.feature_gates)),
        ("kubeProxy", proxy.map(|one| &one.feature_gates)),
        ("kubelet", kubelet.map(|one| &one.feature_gates)),
        ("masterKubelet", master.map(|one| &one.feature_gates)),
    ] {
        let at = format!("spec.{section}.featureGates");
        check(&at, gates, minors, problems);
    }
}

pub fn check_group(
    kubelet: Option<&KubeletConfigSpec>,
    cluster: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let gates = kubelet.map(|one| &one.feature_gates);
    check(
        "spec.kubelet.featureGates",
        gates,
        minors_of(cluster),
        problems,
    );
}

/// The oldest and the newest minor that must have a gate. While an upgrade can be taken back, kubelets are of the minor before, and the
/// control plane's components know the gates of the minor that they emulate only.
fn minors_of(spec: &ClusterSpec) -> (u32, u32) {
    let newest = minor_of(spec);
    let oldest = nodes_version(spec).map_or(newest, |version| version.minor);
    (oldest, newest)
}

fn check(
    at: &str,
    gates: Option<&BTreeMap<String, String>>,
    (oldest, newest): (u32, u32),
    problems: &mut Vec<Problem>,
) {
    // Other minors are refused as such.
    let is_known = |minor: &u32| (OLDEST_MINOR..=NEWEST_MINOR).contains(minor);
    if ![oldest, newest].iter().all(is_known) {
        return;
    }
    for gate in gates.into_iter().flat_map(BTreeMap::keys) {
        let path = field_path(at, gate);
        let none = |minor: u32| format!("Kubernetes 1.{minor} has no feature gate {gate}");
        let problem = match GATES.get(gate.as_str()) {
            Some((first, last)) if *first <= oldest && newest <= *last => continue,
            Some((first, _)) if oldest < *first => {
                let none = none(oldest);
                Problem::error(path, format!("{none} yet; the first with it is 1.{first}"))
                    .hint("remove it until then")
            }
            Some((_, last)) => Problem::error(
                path,
                format!(
                    "{} any more; the last that had it is 1.{last}",
                    none(newest)
                ),
            )
            .hint("remove it: what the gate was for is always on, or gone"),
            None => Problem::error(path, none(newest)).hint(unknown_hint(gate, newest)),
        };
        problems.push(problem);
    }
}

fn unknown_hint(gate: &str, minor: u32) -> String {
    let known = GATES.iter();
    let known = known.filter(|(_, (first, last))| (*first..=*last).contains(&minor));
    nearest::nearest_name(gate, known.map(|(name, _)| *name)).map_or_else(
        || "remove it".to_owned(),
        |near| format!("did you mean \"{near}\"?"),
    )
}

#[cfg(test)]
mod tests {
    use super::GATES;
    use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR};

    #[test]
    fn every_line_is_read_and_every_minor_has_gates() {
        let text = include_str!("../../data/feature-gates.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), GATES.len());
        for minor in OLDEST_MINOR..=NEWEST_MINOR {
            let has = |(first, last): &&(u32, u32)| (*first..=*last).contains(&minor);
            let count = GATES.values().filter(has).count();
            assert!(count > 150, "1.{minor}: {count}");
        }
        for (name, (first, last)) in GATES.iter() {
            assert!(
                OLDEST_MINOR <= *first && first <= last && *last <= NEWEST_MINOR,
                "{name}"
            );
        }
    }
}
