//! An upgrade that can be taken back (`spec.kubernetesUpgrade`): kube-apiserver, kube-controller-manager and kube-scheduler are of the new
//! version and emulate the minor before, and everything else is of the version before (Kubernetes' KEP-4330).

use crate::api::Cluster;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;
use crate::validate::kubernetes_upgrade::FROM;
use crate::validate::versions::Version;
use serde::Serialize;

/// The version before an upgrade that can be taken back; `None` without one.
pub fn version_before(spec: &ClusterSpec) -> Option<Version> {
    let upgrade = spec.kubernetes_upgrade.as_ref()?;
    Version::parse(upgrade.from.as_deref()?)
}

/// The version of nodes, etcd and addons, whose minor API servers serve; `None` if the spec names none.
pub fn nodes_version(spec: &ClusterSpec) -> Option<Version> {
    let version = || Version::parse(spec.kubernetes_version.as_deref()?);
    version_before(spec).or_else(version)
}

/// What the control plane's components emulate: the value of `--emulated-version`. Every minor that kctl runs can emulate the one before
/// it: Kubernetes has the flag since 1.31.
pub(crate) fn emulated_version(spec: &ClusterSpec) -> Option<String> {
    version_before(spec).map(|version| format!("{}.{}", version.major, version.minor))
}

/// An upgrade that can be taken back: neither finalized nor taken back, or no update has followed that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenUpgrade {
    /// The version before, which nodes, etcd and addons keep.
    pub from: String,
    /// The version of the control plane's components.
    pub to: String,
    /// The minor that they emulate: `1.35`.
    pub emulates: String,
    /// How far it is.
    pub message: String,
    /// The commands that may come next.
    pub next: Vec<String>,
}

impl OpenUpgrade {
    /// The upgrade that a spec has.
    pub fn of_spec(cluster: &Cluster) -> Option<Self> {
        Self::find(cluster, cluster)
    }

    /// The upgrade that the stored spec has, or the completed spec of the last update.
    pub fn find(stored: &Cluster, last: &Cluster) -> Option<Self> {
        let (wanted, given) = (versions_of(&stored.spec), versions_of(&last.spec));
        let (from, to) = wanted.as_ref().or(given.as_ref())?;
        let name = stored.name();
        let emulates = format!("1.{}", from.minor);
        let reconcile = format!("kctl reconcile {name} --yes");
        let (message, next) = match &wanted {
            _ if wanted == given => (
                format!(
                    "control planes get Kubernetes {to} and emulate {emulates}, and all else keeps {from}, until the upgrade is finalized \
                     or taken back"
                ),
                vec![
                    format!("kctl upgrade {name} --finalize"),
                    format!("kctl upgrade {name} --rollback"),
                ],
            ),
            Some(_) => (
                format!("no update has begun the upgrade of Kubernetes from {from} to {to}"),
                vec![reconcile],
            ),
            None => (
                format!(
                    "the upgrade of Kubernetes from {from} to {to} has ended in the spec, and control planes emulate {emulates} until an \
                     update"
                ),
                vec![reconcile],
            ),
        };
        Some(Self {
            from: from.to_string(),
            to: to.to_string(),
            emulates,
            message,
            next,
        })
    }

    /// How far it is, and what may come next.
    pub fn describe(&self) -> String {
        format!("{}: `{}`", self.message, self.next.join("` or `"))
    }
}

/// The versions before and after an upgrade that can be taken back.
fn versions_of(spec: &ClusterSpec) -> Option<(Version, Version)> {
    let to = spec.kubernetes_version.as_deref()?;
    Some((version_before(spec)?, Version::parse(to)?))
}

/// A problem if API servers of the completed spec `wanted` are to serve an older minor than those of the last update, which may have
/// stored what it cannot read. An API server that emulates a minor stores nothing that this minor cannot read.
pub fn find_version_change(wanted: &Cluster, last: &Cluster) -> Option<Problem> {
    let (new, old) = (nodes_version(&wanted.spec)?, nodes_version(&last.spec)?);
    let (new, old) = (new.minor, old.minor);
    if new >= old {
        return None;
    }
    let (path, hint) = match wanted.spec.kubernetes_upgrade {
        Some(_) => (FROM, "remove spec.kubernetesUpgrade".to_owned()),
        None => (
            "spec.kubernetesVersion",
            format!("set it to a version of Kubernetes 1.{old}"),
        ),
    };
    let message = format!(
        "API servers of the cluster serve Kubernetes 1.{old}, and may have stored what 1.{new} cannot read"
    );
    Some(Problem::error(path, message).hint(format!(
        "{hint}: an upgrade that is finalized cannot be taken back"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cluster::KubernetesUpgrade;
    use proptest::prelude::*;

    /// A minor, and whether the one before it is emulated.
    fn cluster(minor: u32, emulates: bool) -> Cluster {
        let mut cluster = Cluster::default();
        cluster.spec.kubernetes_version = Some(format!("1.{minor}.2"));
        cluster.spec.kubernetes_upgrade = emulates.then(|| KubernetesUpgrade {
            from: Some(format!("1.{}.9", minor - 1)),
        });
        cluster
    }

    proptest! {
        #[test]
        fn api_servers_never_serve_an_older_minor_than_before(
            wanted in (33_u32..38, any::<bool>()), last in (33_u32..38, any::<bool>()),
        ) {
            let serves = |(minor, emulates): (u32, bool)| minor - u32::from(emulates);
            let of = |(minor, emulates)| cluster(minor, emulates);
            let problem = find_version_change(&of(wanted), &of(last));
            prop_assert_eq!(problem.is_some(), serves(wanted) < serves(last));
        }
    }

    #[test]
    fn an_upgrade_is_open_until_an_update_has_followed_its_end() {
        let (ways, reconcile) = (["--finalize", "--rollback"], ["reconcile"]);
        let nothing: [&str; 0] = [];
        for (stored, last, next) in [
            ((36, true), (36, true), &ways[..]),
            ((36, true), (35, false), &reconcile[..]),
            ((36, false), (36, true), &reconcile[..]),
            ((35, false), (36, true), &reconcile[..]),
            ((36, false), (36, false), &nothing[..]),
        ] {
            let of = |(minor, emulates)| cluster(minor, emulates);
            let found = OpenUpgrade::find(&of(stored), &of(last));
            assert_eq!(found.is_some(), !next.is_empty(), "{stored:?} {last:?}");
            let Some(found) = found else { continue };
            let said = (&*found.from, &*found.to, &*found.emulates);
            assert_eq!(said, ("1.35.9", "1.36.2", "1.35"));
            assert_eq!(found.next.len(), next.len(), "{found:?}");
            for word in next {
                assert!(found.describe().contains(word), "{word}: {found:?}");
            }
        }
    }

    #[test]
    fn the_refusal_says_what_leads_back_and_that_it_is_finalized() {
        for (wanted, expected) in [
            (
                (36, true),
                "spec.kubernetesUpgrade.from: API servers of the cluster serve Kubernetes 1.36, and may have stored what 1.35 cannot \
                 read; remove spec.kubernetesUpgrade: an upgrade that is finalized cannot be taken back",
            ),
            (
                (35, false),
                "spec.kubernetesVersion: API servers of the cluster serve Kubernetes 1.36, and may have stored what 1.35 cannot read; \
                 set it to a version of Kubernetes 1.36: an upgrade that is finalized cannot be taken back",
            ),
        ] {
            let (minor, emulates) = wanted;
            let problem =
                find_version_change(&cluster(minor, emulates), &cluster(36, false)).unwrap();
            let hint = problem.hint.unwrap_or_default();
            let text = format!("{}: {}; {hint}", problem.path, problem.message);
            assert_eq!(text, expected);
        }
    }
}
