//! `spec.networking.kindnet`.

use super::Findings;
use super::fill::fill;
use super::pods::several_subnets;
use crate::api::cluster::ClusterSpec;
use full::{FullSpec, Kindnet};
use node::config::{Networking, Role};

/// The release of kOps 1.37.
const RELEASE: &str = "v1.0.1";

/// Fills in the defaults of kOps. Pods keep their addresses for the VPC, each other and Services, unless the spec says what they keep
/// them for.
pub(super) fn complete_kindnet(spec: &mut ClusterSpec) {
    let ranges = [
        &spec.network_cidr,
        &spec.pod_cidr,
        &spec.service_cluster_ip_range,
    ];
    let ranges: Vec<String> = ranges.into_iter().flatten().cloned().collect();
    let networking = spec.networking.as_mut();
    let Some(kindnet) = networking.and_then(|networking| networking.kindnet.as_mut()) else {
        return;
    };
    fill(&mut kindnet.version, RELEASE);
    fill(&mut kindnet.fast_path_threshold, 0);
    fill(&mut kindnet.log_level, 2);
    if kindnet.masquerade.is_none() {
        let masquerade = kindnet.masquerade.get_or_insert_default();
        masquerade.enabled = Some(true);
        masquerade.non_masquerade_cidrs = ranges;
    }
}

/// kindnet of a completed spec; `None` where another network plugin is chosen.
pub(super) fn full_kindnet(spec: &ClusterSpec) -> Option<Kindnet> {
    let kindnet = spec.networking.as_ref()?.kindnet.as_ref()?;
    let version = kindnet.version.as_deref().unwrap_or_default();
    let masquerade = kindnet.masquerade.clone().unwrap_or_default();
    let containerd = spec.containerd.as_ref();
    let nri = containerd.and_then(|containerd| containerd.nri.as_ref());
    Some(Kindnet {
        image: format!("registry.k8s.io/networking/kindnet:{version}"),
        network_policies: kindnet.network_policies,
        nat64: kindnet.nat64 == Some(true),
        fast_path_threshold: kindnet.fast_path_threshold.unwrap_or_default(),
        masquerade: masquerade.enabled != Some(false),
        non_masquerade_cidrs: masquerade.non_masquerade_cidrs,
        log_level: kindnet.log_level.unwrap_or_default(),
        nri: nri.and_then(|nri| nri.enabled) != Some(false),
    })
}

/// kindnet makes routes to instances of its own subnet only: a packet to a pod elsewhere would reach nobody.
pub(super) fn check_kindnet(full: &FullSpec, findings: &mut Findings) {
    if full.pods.networking != Networking::Kindnet {
        return;
    }
    let nodes = full.groups.iter().filter(|one| one.role != Role::Bastion);
    if let Some(message) = several_subnets(nodes) {
        let hint = "put all groups into one subnet, or use flannel, cilium or kube-router";
        findings.add_error("spec.networking.kindnet", message, hint);
    }
}
