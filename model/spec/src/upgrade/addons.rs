//! Which Kubernetes the vendors of addons support with which of their versions, where they say so.

use crate::api::cluster::ClusterSpec;
use crate::expand::METRICS_SERVER;
use crate::validate::versions::Version;
use full::addons::CERT_MANAGER;

/// An addon's support by its vendor.
struct Support {
    name: &'static str,
    /// Where the vendor says so.
    page: &'static str,
    /// First and last minor of Kubernetes 1 by minor of the addon; without an end, until the vendor says otherwise.
    versions: Versions,
}

enum Versions {
    /// Minor of the addon, first and last minor of Kubernetes.
    Ranges(&'static [(&'static str, u32, Option<u32>)]),
    /// Version 1.N is for Kubernetes 1.N.
    Same,
}

const CERT_MANAGER_SUPPORT: Support = Support {
    name: "cert-manager",
    page: "https://cert-manager.io/docs/releases/",
    versions: Versions::Ranges(&[
        ("1.18", 29, Some(33)),
        ("1.19", 31, Some(35)),
        ("1.20", 32, Some(35)),
    ]),
};

const METRICS_SERVER_SUPPORT: Support = Support {
    name: "metrics-server",
    page: "https://github.com/kubernetes-sigs/metrics-server#compatibility-matrix",
    versions: Versions::Ranges(&[("0.6", 25, None), ("0.7", 27, None), ("0.8", 31, None)]),
};

const AUTOSCALER_SUPPORT: Support = Support {
    name: "cluster autoscaler",
    page: "https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler#releases",
    versions: Versions::Same,
};

const CLOUD_CONTROLLER_SUPPORT: Support = Support {
    name: "AWS cloud controller manager",
    page: "https://github.com/kubernetes/cloud-provider-aws#compatibility-with-kubernetes",
    versions: Versions::Same,
};

/// What speaks against this version of Kubernetes with the cluster's addons.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddonFindings {
    /// The vendor excludes it: the addon needs a newer Kubernetes, or is of another minor.
    pub problems: Vec<String>,
    /// The vendor does not say that it was tested.
    pub warnings: Vec<String>,
}

/// Compares the addons of a spec with a version of Kubernetes. Versions that kctl chooses by the version of Kubernetes fit it.
pub fn check_addons(spec: &ClusterSpec, target: &Version) -> AddonFindings {
    let mut findings = AddonFindings::default();
    for (support, tag) in chosen_versions(spec) {
        let Some(addon) = Version::parse(&tag) else {
            continue;
        };
        let Some((first, last)) = support.supported_minors(&addon) else {
            continue;
        };
        let said = |words: &str| {
            let Support { name, page, .. } = support;
            format!("{name} {tag} {words} ({page})")
        };
        let same = matches!(support.versions, Versions::Same);
        if same && target.minor != first {
            findings.problems.push(said(&format!(
                "is for Kubernetes 1.{first}: remove its image from the spec, and it follows the cluster's version"
            )));
        } else if target.minor < first {
            findings
                .problems
                .push(said(&format!("needs Kubernetes 1.{first} or newer")));
        } else if let Some(last) = last.filter(|last| target.minor > *last) {
            findings.warnings.push(said(&format!(
                "is tested by its vendor with Kubernetes 1.{first} to 1.{last}"
            )));
        }
    }
    findings
}

impl Support {
    fn supported_minors(&self, addon: &Version) -> Option<(u32, Option<u32>)> {
        match self.versions {
            Versions::Same => Some((addon.minor, Some(addon.minor))),
            Versions::Ranges(ranges) => {
                let minor = format!("{}.{}", addon.major, addon.minor);
                let row = ranges.iter().find(|(version, ..)| *version == minor);
                row.map(|(_, first, last)| (*first, *last))
            }
        }
    }
}

/// The addons whose version does not follow that of Kubernetes, with the tags of their images.
fn chosen_versions(spec: &ClusterSpec) -> Vec<(&'static Support, String)> {
    let tag = |image: &str| {
        let tag = image.split('@').next().unwrap_or_default();
        tag.rsplit_once(':').map(|(_, tag)| tag.to_owned())
    };
    let mut found = Vec::new();
    let mut add = |support, image: Option<&str>, default: Option<&str>| {
        let tag = image.map_or_else(|| default.map(ToOwned::to_owned), tag);
        found.extend(tag.map(|tag| (support, tag)));
    };
    if let Some(manager) = spec.cert_manager.as_ref()
        && manager.enabled == Some(true)
        && manager.managed != Some(false)
    {
        add(
            &CERT_MANAGER_SUPPORT,
            manager.image.as_deref(),
            Some(CERT_MANAGER),
        );
    }
    if let Some(server) = spec.metrics_server.as_ref()
        && server.enabled == Some(true)
    {
        add(
            &METRICS_SERVER_SUPPORT,
            server.image.as_deref(),
            Some(METRICS_SERVER),
        );
    }
    if let Some(autoscaler) = spec.cluster_autoscaler.as_ref()
        && autoscaler.enabled == Some(true)
    {
        add(&AUTOSCALER_SUPPORT, autoscaler.image.as_deref(), None);
    }
    if let Some(controller) = spec.cloud_controller_manager.as_ref() {
        add(&CLOUD_CONTROLLER_SUPPORT, controller.image.as_deref(), None);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::check_addons;
    use crate::api::cluster::ClusterSpec;
    use crate::validate::versions::Version;
    use serde_json::json;

    #[test]
    fn vendors_exclude_or_do_not_know_a_kubernetes() {
        let manager = |tag: &str| {
            let image = format!("mirror.example.com/cert-manager-controller:{tag}");
            json!({"certManager": {"enabled": true, "image": image}})
        };
        let autoscaler =
            json!({"clusterAutoscaler": {"enabled": true, "image": "a/b:v1.35.1@sha256:00"}});
        let (fine, warned, refused) = ((0, 0), (0, 1), (1, 0));
        for (spec, target, expected) in [
            (json!({}), "1.36.3", fine),
            (json!({"certManager": {"enabled": true}}), "1.35.0", fine),
            (json!({"certManager": {"enabled": true}}), "1.36.3", warned),
            (
                json!({"certManager": {"enabled": true, "managed": false}}),
                "1.36.3",
                fine,
            ),
            (manager("v1.18.2"), "1.34.0", warned),
            (manager("v1.20.0"), "1.31.0", refused),
            // The vendor says nothing that is known here.
            (manager("v1.99.0"), "1.36.3", fine),
            (manager("latest"), "1.36.3", fine),
            (json!({"metricsServer": {"enabled": true}}), "1.36.3", fine),
            (
                json!({"metricsServer": {"enabled": true}}),
                "1.30.0",
                refused,
            ),
            (
                json!({"clusterAutoscaler": {"enabled": true}}),
                "1.36.3",
                fine,
            ),
            (autoscaler.clone(), "1.35.4", fine),
            (autoscaler, "1.36.3", refused),
        ] {
            let typed: ClusterSpec = serde_json::from_value(spec.clone()).unwrap();
            let found = check_addons(&typed, &Version::parse(target).unwrap());
            let counts = (found.problems.len(), found.warnings.len());
            assert_eq!(counts, expected, "{spec} {target}: {found:?}");
        }
    }
}
