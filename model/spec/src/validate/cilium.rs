//! Rules of cilium.

use crate::api::cilium::CiliumNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// The minor version whose settings kctl writes.
const MINOR: &str = "v1.20.";

/// Most clusters of a mesh.
const MAX_ID: i64 = 255;

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let Some(cilium) = networking.and_then(|networking| networking.cilium.as_ref()) else {
        return;
    };
    check_version(cilium, problems);
    check_proxy(cilium, spec, problems);
    let id = cilium.cluster_id.unwrap_or_default();
    if id > MAX_ID {
        let problem = Problem::error(
            "spec.networking.cilium.clusterID",
            format!("{id} is no number of a cluster"),
        );
        problems.push(problem.hint("use 1 to 255, or 0 for none"));
    }
    if id != 0
        && cilium
            .cluster_name
            .as_deref()
            .is_none_or(|name| name == "default")
    {
        let problem = Problem::error(
            "spec.networking.cilium.clusterID",
            "a cluster of a mesh needs a name other than default",
        );
        problems.push(problem.hint("set spec.networking.cilium.clusterName"));
    }
}

/// As in kOps: one minor version, whose objects and settings are known.
fn check_version(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let version = cilium.version.as_deref();
    if let Some(version) = version.filter(|version| !version.starts_with(MINOR)) {
        let problem = Problem::error(
            "spec.networking.cilium.version",
            format!("kctl installs cilium {MINOR}x, not {version}"),
        );
        problems.push(problem.hint("remove it to get the version that kctl has been tried with"));
    }
}

/// Two programs must not answer for the same Services, nor none.
fn check_proxy(cilium: &CiliumNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let proxy = spec.kube_proxy.as_ref().and_then(|proxy| proxy.enabled) != Some(false);
    let replaced = cilium.enable_node_port == Some(true);
    if proxy && replaced {
        let problem = Problem::error(
            "spec.networking.cilium.enableNodePort",
            "cilium replaces kube-proxy, which is enabled",
        );
        problems.push(problem.hint("set spec.kubeProxy.enabled: false"));
    }
    if !proxy && !replaced {
        let problem = Problem::error(
            "spec.kubeProxy.enabled",
            "nothing would answer for Services: cilium replaces kube-proxy only if it is told to",
        );
        problems.push(problem.hint("set spec.networking.cilium.enableNodePort: true"));
    }
}
