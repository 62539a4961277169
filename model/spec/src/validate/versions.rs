//! Versions of Kubernetes and etcd.

use std::fmt;

use crate::api::cluster::ClusterSpec;
use crate::catalog::recommended_patch;
use crate::read::Problem;

/// A version as far as it is compared: `v1.36.0-rc.1` is 1.36.0 before its release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 1
    pub major: u32,
    /// 36
    pub minor: u32,
    /// 0
    pub patch: u32,
    /// `rc.1`; none for a release.
    pub pre: Option<String>,
}

impl Version {
    /// Reads `1.36.0`, `v1.36.0` or `1.36.0-rc.1`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text
            .split_once('+')
            .map_or(text, |(version, _build)| version);
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre.to_owned())),
            None => (text, None),
        };
        if pre.as_deref() == Some("") {
            return None;
        }
        let mut parts = numbers.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits)
        });
        let version = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
            pre,
        };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        self.pre.as_ref().map_or(Ok(()), |pre| write!(f, "-{pre}"))
    }
}

/// The oldest minor of Kubernetes 1 whose specs are read.
pub const OLDEST_MINOR: u32 = 32;
/// The newest minor of Kubernetes 1 that is known.
pub const NEWEST_MINOR: u32 = 37;
/// The newest minor of etcd 3 that is known.
const NEWEST_ETCD_MINOR: u32 = 7;
/// Minor and patch of the first etcd 3 with `maintenance/hashkv` in its JSON gateway (etcd: pull request 16490). No snapshot of an older one is
/// verified.
const HASHES_FROM: (u32, u32) = (5, 10);
/// Minors that are supported, the newest one included; older ones get a warning.
pub const SUPPORTED_MINORS: u32 = 4;

pub(super) fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if let Some(text) = &spec.kubernetes_version {
        check_kubernetes(text, problems);
    }
    for (index, cluster) in spec.etcd_clusters.iter().enumerate() {
        if let Some(text) = &cluster.version {
            check_etcd(
                &format!("spec.etcdClusters[{index}].version"),
                text,
                problems,
            );
        }
    }
}

fn check_kubernetes(text: &str, problems: &mut Vec<Problem>) {
    let path = "spec.kubernetesVersion";
    let newest = format!("1.{NEWEST_MINOR}");
    let Some(version) = Version::parse(text) else {
        let message = format!("\"{text}\" is not a version");
        return problems.push(
            Problem::error(path, message).hint(format!("write three numbers, such as {newest}.0")),
        );
    };
    let minor = version.minor;
    if version.major != 1 || minor > NEWEST_MINOR {
        let problem = Problem::error(
            path,
            format!("Kubernetes {version} is newer than this kctl knows"),
        );
        let newest = recommended_patch(NEWEST_MINOR).unwrap_or(&newest);
        problems.push(problem.hint(format!("use {newest} or older, or upgrade kctl")));
    } else if minor < OLDEST_MINOR {
        let problem = Problem::error(
            path,
            format!("Kubernetes {version} is older than kctl can run"),
        );
        problems.push(problem.hint(format!(
            "use 1.{OLDEST_MINOR} or newer; a running cluster of kOps is upgraded with kOps, one minor at a time (docs/from-kops.md)"
        )));
    } else if minor + SUPPORTED_MINORS <= NEWEST_MINOR {
        let problem =
            Problem::warning(path, format!("Kubernetes {version} is no longer supported"));
        let oldest = NEWEST_MINOR + 1 - SUPPORTED_MINORS;
        problems.push(problem.hint(format!(
            "supported are 1.{oldest} to {newest}; upgrade one minor at a time"
        )));
    }
}

fn check_etcd(path: &str, text: &str, problems: &mut Vec<Problem>) {
    match Version::parse(text) {
        None => {
            let message = format!("\"{text}\" is not a version");
            problems
                .push(Problem::error(path, message).hint("write three numbers, such as 3.6.12"));
        }
        Some(version) if version.major == 3 && version.minor > NEWEST_ETCD_MINOR => {
            let message = format!("etcd {version} is newer than this kctl knows");
            problems.push(Problem::error(path, message).hint(format!(
                "leave it out, use 3.{NEWEST_ETCD_MINOR} or older, or upgrade kctl"
            )));
        }
        Some(version) if version.major != 3 || version.minor < 5 => {
            let message = format!(
                "etcd {version} is not one that Kubernetes 1.{OLDEST_MINOR} and newer work with"
            );
            problems.push(Problem::error(path, message).hint("leave it out, or use 3.5 or newer"));
        }
        Some(version) => problems.extend(hashes_problem(path, &version)),
    }
}

/// What is wrong with an etcd 3 that tells no hash.
pub(super) fn hashes_problem(path: &str, version: &Version) -> Option<Problem> {
    let message = format!("etcd {version} does not tell what a snapshot of it is compared with");
    let problem = Problem::error(path, message).hint("leave it out, or use 3.5.10 or newer");
    ((version.minor, version.patch) < HASHES_FROM).then_some(problem)
}

#[cfg(test)]
mod tests {
    use super::{Version, check_etcd};

    #[test]
    fn an_etcd_whose_snapshots_cannot_be_verified_is_refused() {
        for (version, is_refused) in [("3.5.9", true), ("3.5.10", false), ("3.6.0", false)] {
            let mut problems = Vec::new();
            check_etcd("path", version, &mut problems);
            assert_eq!(!problems.is_empty(), is_refused, "{version}");
        }
    }

    #[test]
    fn versions_are_read_with_and_without_v_and_written_without() {
        for text in ["1.36.0", "v1.32.13", "1.36.0-rc.1"] {
            assert_eq!(
                Version::parse(text).unwrap().to_string(),
                text.trim_start_matches('v')
            );
        }
        for text in [
            "1.36", "1.36.x", "1.2.3.4", "", "latest", "1.+2.3", "1.2.3-",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
