//! The network inside the cluster: pod and service ranges, and the network plugin.

use super::Findings;
use super::addon_values::full_addon_values;
use super::amazon_vpc::{self, chosen_amazon_vpc};
use super::calico::{complete_calico, full_calico};
use super::cilium::{complete_cilium, full_cilium, uses_interfaces};
use super::fill::fill;
use super::kindnet::{complete_kindnet, full_kindnet};
use super::kube_router::full_kube_router;
use crate::api::cluster::ClusterSpec;
use crate::api::networking::NetworkingSpec;
use crate::cidr;
use full::{Group, PodNetwork};
use ipnet::IpNet;
use node::config::Networking;
use std::collections::BTreeSet;

/// Fills in the network plugin, and the ranges of pods and services.
pub(super) fn complete_pod_network(spec: &mut ClusterSpec, findings: &mut Findings) {
    let networking = spec.networking.as_mut();
    if let Some(flannel) = networking.and_then(|networking| networking.flannel.as_mut()) {
        fill(&mut flannel.backend, "vxlan");
    }
    complete_calico(spec);
    complete_cilium(spec);
    fill(&mut spec.cluster_dns_domain, "cluster.local");
    let in_vpc = chosen_amazon_vpc(spec).is_some();
    if in_vpc {
        // As in kOps: pods' own ranges are those of the VPC.
        fill(&mut spec.service_cluster_ip_range, amazon_vpc::SERVICES);
        if let Some(vpc) = spec.network_cidr.clone() {
            fill(&mut spec.non_masquerade_cidr, vpc);
        }
    }
    fill(&mut spec.non_masquerade_cidr, "100.64.0.0/10");
    let Some(range) = parse_range(spec.non_masquerade_cidr.as_deref()) else {
        let path = "spec.nonMasqueradeCIDR";
        findings.add_error(path, "this is not a range", "write it as 100.64.0.0/10");
        return;
    };
    if let Some(pods) = cidr::pod_range(range) {
        fill(&mut spec.pod_cidr, pods.to_string());
    }
    if let Some(services) = cidr::service_range(range) {
        fill(&mut spec.service_cluster_ip_range, services.to_string());
    }
    complete_kindnet(spec);
}

/// What is wrong with a plugin that reaches pods of one subnet only, if these groups have instances in several.
pub(super) fn several_subnets<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<String> {
    let subnets = groups.flat_map(|one| one.subnets.iter().map(String::as_str));
    let names: Vec<&str> = subnets.collect::<BTreeSet<_>>().into_iter().collect();
    (names.len() > 1).then(|| {
        format!(
            "pods of different subnets could not reach each other, and instances are in {}",
            names.join(" and ")
        )
    })
}

/// True if pods have addresses of network interfaces that the plugin attaches to instances.
pub(super) fn are_pods_in_vpc(spec: &ClusterSpec) -> bool {
    chosen_amazon_vpc(spec).is_some() || uses_interfaces(spec)
}

fn parse_range(text: Option<&str>) -> Option<IpNet> {
    text?.parse().ok()
}

/// The address of the cluster's DNS service: the tenth of the service range.
pub(super) fn dns_address(spec: &ClusterSpec) -> Option<String> {
    let services = parse_range(spec.service_cluster_ip_range.as_deref())?;
    Some(cidr::nth_address(services, 10)?.to_string())
}

/// The pod network of a completed spec.
pub(super) fn full_pod_network(spec: &ClusterSpec, findings: &mut Findings) -> Option<PodNetwork> {
    let mut range = |text: &Option<String>, path: &str| {
        let range = parse_range(text.as_deref());
        if range.is_none() {
            let hint = "write a range such as 100.64.0.0/13";
            findings.add_error(path, "a range is needed here", hint);
        }
        range
    };
    let non_masquerade_cidr = parse_range(spec.non_masquerade_cidr.as_deref());
    let pod_cidr = match &spec.pod_cidr {
        None if spec.is_ipv6() => None,
        text => Some(range(text, "spec.podCIDR")?),
    };
    let service_cidr = range(&spec.service_cluster_ip_range, "spec.serviceClusterIPRange");
    let server = spec
        .kube_dns
        .as_ref()
        .and_then(|dns| dns.server_ip.as_deref());
    let dns_service_ip = server.and_then(|ip| ip.parse().ok());
    if service_cidr.is_some() && dns_service_ip.is_none() {
        let hint = "set it to an address of spec.serviceClusterIPRange";
        findings.add_error("spec.kubeDNS.serverIP", "an address is needed here", hint);
    }
    Some(PodNetwork {
        networking: full_networking(spec, findings),
        non_masquerade_cidr: non_masquerade_cidr?,
        pod_cidr,
        service_cidr: service_cidr?,
        dns_service_ip: dns_service_ip?,
        dns_domain: spec.cluster_dns_domain.clone().unwrap_or_default(),
    })
}

/// The network plugin of a completed spec.
fn full_networking(spec: &ClusterSpec, findings: &mut Findings) -> Networking {
    let default = NetworkingSpec::default();
    let networking = spec.networking.as_ref().unwrap_or(&default);
    if let Some(flannel) = &networking.flannel {
        return Networking::Flannel(flannel.backend.clone().unwrap_or_default());
    }
    if full_calico(spec).is_some() {
        return Networking::Calico;
    }
    if let Some(cilium) = full_cilium(spec) {
        return Networking::Cilium {
            digest: cilium.digest(&full_addon_values(spec)),
            in_vpc: cilium.eni,
        };
    }
    if networking.kubenet.is_some() {
        return Networking::Kubenet;
    }
    if networking.external.is_some() {
        return Networking::External;
    }
    if chosen_amazon_vpc(spec).is_some() {
        return Networking::AmazonVpc;
    }
    if full_kube_router(spec).is_some() {
        return Networking::KubeRouter;
    }
    if full_kindnet(spec).is_some() {
        return Networking::Kindnet;
    }
    if networking.cni.is_none() {
        findings.add_warning(
            "spec.networking",
            "kctl does not install this network plugin",
            "install it yourself once the API answers, as with \"cni: {}\"; nodes are not ready before",
        );
    }
    Networking::Cni
}
