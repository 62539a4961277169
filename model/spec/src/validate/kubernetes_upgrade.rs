//! The version before an upgrade that can be taken back (`spec.kubernetesUpgrade`).

use super::versions::{OLDEST_MINOR, Version};
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

pub(crate) const FROM: &str = "spec.kubernetesUpgrade.from";

pub(super) fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    problems.extend(find_problem(spec));
}

/// What is wrong with it. Emulation of more than one minor is not offered: control planes go up one minor at a time.
pub(crate) fn find_problem(spec: &ClusterSpec) -> Option<Problem> {
    let upgrade = spec.kubernetes_upgrade.as_ref()?;
    let text = upgrade.from.as_deref().unwrap_or_default();
    let to = spec.kubernetes_version.as_deref().and_then(Version::parse);
    let is_before = |from: &Version, to: &Version| {
        (from.major, from.minor.checked_add(1)) == (to.major, Some(to.minor))
    };
    let message = match (Version::parse(text), to) {
        (None, _) => format!("{text:?} is not a version"),
        (Some(_), None) => "spec.kubernetesVersion does not say to which version".to_owned(),
        (Some(from), Some(to)) if !is_before(&from, &to) => {
            format!("{from} is not of the minor before that of spec.kubernetesVersion, {to}")
        }
        (Some(from), Some(_)) if from.minor < OLDEST_MINOR => {
            format!("Kubernetes {from} is older than kctl can run")
        }
        _ => return None,
    };
    Some(Problem::error(FROM, message).hint(
        "write the version before the upgrade, such as 1.35.7; to finalize the upgrade, remove spec.kubernetesUpgrade",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cluster::KubernetesUpgrade;

    #[test]
    fn it_is_a_version_of_the_minor_before() {
        for (from, to, problem) in [
            ("1.35.7", Some("1.36.3"), ""),
            ("v1.35.0", Some("v1.36.0"), ""),
            ("1.34.1", Some("1.36.3"), "is not of the minor before"),
            ("1.36.2", Some("1.36.3"), "is not of the minor before"),
            ("1.36.0", Some("1.35.7"), "is not of the minor before"),
            (
                "1.4294967295.0",
                Some("1.0.0"),
                "is not of the minor before",
            ),
            ("1.31.4", Some("1.32.0"), "older than kctl can run"),
            ("1.35", Some("1.36.3"), "is not a version"),
            ("", Some("1.36.3"), "is not a version"),
            ("1.35.7", None, "does not say to which version"),
        ] {
            let spec = ClusterSpec {
                kubernetes_version: to.map(str::to_owned),
                kubernetes_upgrade: Some(KubernetesUpgrade {
                    from: Some(from.to_owned()),
                }),
                ..ClusterSpec::default()
            };
            let found = find_problem(&spec).map(|problem| problem.message);
            let found = found.unwrap_or_default();
            assert_eq!(found.is_empty(), problem.is_empty(), "{from}: {found}");
            assert!(found.contains(problem), "{from}: {found}");
        }
        assert_eq!(find_problem(&ClusterSpec::default()), None);
    }
}
