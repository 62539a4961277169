//! Feature gates: a component ends at its start with one that its version does not have (`unrecognized feature gate`), and with a value
//! that it does not take (`feature is locked`).

use super::removed_flags::minors_of;
use super::values::parse_switch;
use super::versions::{NEWEST_MINOR, OLDEST_MINOR};
use crate::api::cluster::ClusterSpec;
use crate::api::kubelet::KubeletConfigSpec;
use crate::read::path::field_path;
use crate::read::{Problem, nearest};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The gates of every component: all register those of the others too, in one set.
static GATES: LazyLock<BTreeMap<&str, Gate>> = LazyLock::new(|| {
    let lines = include_str!("../../data/feature-gates.txt").lines();
    lines.filter_map(parse_line).collect()
});

/// A gate by minors of Kubernetes 1.
#[derive(Debug)]
struct Gate {
    first: u32,
    last: u32,
    /// Its only value, and the first minor in which it has no other.
    lock: Option<(bool, u32)>,
}

impl Gate {
    fn is_in(&self, minor: u32) -> bool {
        (self.first..=self.last).contains(&minor)
    }

    /// The only value that it takes in a minor.
    fn only_value(&self, minor: u32) -> Option<bool> {
        let lock = self.lock.filter(|(_, from)| *from <= minor);
        lock.map(|(value, _)| value)
    }
}

/// `33-37 NAME` or `33-37 NAME true@35`. None: a comment.
fn parse_line(line: &'static str) -> Option<(&'static str, Gate)> {
    let mut words = line.split(' ');
    let (first, last) = words.next()?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let name = words.next()?;
    let lock = match words.next() {
        None => None,
        Some(lock) => {
            let (value, from) = lock.split_once('@')?;
            Some((value.parse().ok()?, from.parse().ok()?))
        }
    };
    Some((name, Gate { first, last, lock }))
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
    for (gate, value) in gates.into_iter().flatten() {
        let path = field_path(at, gate);
        let none = |minor: u32| format!("Kubernetes 1.{minor} has no feature gate {gate}");
        let problem = match GATES.get(gate.as_str()) {
            Some(known) if known.is_in(oldest) && known.is_in(newest) => {
                // What is no value is found by another rule.
                let asked = parse_switch(value);
                let locked = [oldest, newest].into_iter().find_map(|minor| {
                    let only = known.only_value(minor)?;
                    asked
                        .is_some_and(|asked| asked != only)
                        .then_some((minor, only))
                });
                let Some((minor, only)) = locked else {
                    continue;
                };
                let message =
                    format!("feature gate {gate} of Kubernetes 1.{minor} is locked to {only}");
                Problem::error(path, message).hint("remove it")
            }
            Some(Gate { first, .. }) if oldest < *first => {
                let none = none(oldest);
                Problem::error(path, format!("{none} yet; the first with it is 1.{first}"))
                    .hint("remove it until then")
            }
            Some(Gate { last, .. }) => Problem::error(
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
    let known = known.filter(|(_, gate)| gate.is_in(minor));
    nearest::nearest_name(gate, known.map(|(name, _)| *name)).map_or_else(
        || "remove it".to_owned(),
        |near| format!("did you mean \"{near}\"?"),
    )
}

#[cfg(test)]
mod tests {
    use super::{GATES, Gate};
    use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR};

    #[test]
    fn every_line_is_read_and_every_minor_has_gates() {
        let text = include_str!("../../data/feature-gates.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), GATES.len());
        for minor in OLDEST_MINOR..=NEWEST_MINOR {
            let count = GATES.values().filter(|gate| gate.is_in(minor)).count();
            assert!(count > 150, "1.{minor}: {count}");
        }
        for (name, gate) in GATES.iter() {
            let Gate { first, last, lock } = gate;
            assert!(
                OLDEST_MINOR <= *first && first <= last && *last <= NEWEST_MINOR,
                "{name}"
            );
            assert!(
                lock.is_none_or(|(_, from)| (*first..=*last).contains(&from)),
                "{name}"
            );
        }
    }
}
