//! Address ranges against each other: instances, pods, services and the DNS address. All values are filled in here, so a range that the
//! spec leaves to a default, or that an existing VPC has, counts as well.

use super::Findings;
use crate::api::cluster::ClusterSpec;
use cloud::facts::Facts;
use full::{FullSpec, PodNetwork};
use ipnet::{IpNet, Ipv4Net};
use node::config::Networking;

const PODS: &str = "spec.podCIDR";
const SERVICES: &str = "spec.serviceClusterIPRange";
const NON_MASQUERADE: &str = "spec.nonMasqueradeCIDR";
const DNS: &str = "spec.kubeDNS.serverIP";

/// Adds an error for every two ranges that must not overlap, and for what is outside of the range that it belongs to.
pub(super) fn check_ranges(
    full: &FullSpec,
    spec: &ClusterSpec,
    facts: &Facts,
    findings: &mut Findings,
) {
    check_families(&full.pods, findings);
    check_pods_and_services(&full.pods, findings);
    check_dns_address(&full.pods, findings);
    check_instances(full, spec, findings);
    check_existing_subnets(full, facts, findings);
}

/// Instances of these clusters have IPv4 addresses.
fn check_families(pods: &PodNetwork, findings: &mut Findings) {
    let all = [
        (NON_MASQUERADE, pods.non_masquerade_cidr),
        (PODS, pods.pod_cidr),
        (SERVICES, pods.service_cidr),
    ];
    if all.iter().all(|(_, range)| is_v6(range)) {
        return; // An IPv6 cluster, which is told elsewhere.
    }
    for (path, range) in all {
        if is_v6(&range) {
            let message = format!("{range} is IPv6, and the cluster is an IPv4 cluster");
            findings.add_error(path, message, "leave it out, or use an IPv4 range");
        }
    }
}

fn is_v6(range: &IpNet) -> bool {
    matches!(range, IpNet::V6(_))
}

fn check_pods_and_services(pods: &PodNetwork, findings: &mut Findings) {
    let home = pods.non_masquerade_cidr;
    // The Amazon VPC CNI has its Services elsewhere.
    let services_inside = pods.networking != Networking::AmazonVpc;
    for (path, range, inside) in [
        (PODS, pods.pod_cidr, true),
        (SERVICES, pods.service_cidr, services_inside),
    ] {
        if inside && is_v6(&range) == is_v6(&home) && !home.contains(&range) {
            let message = format!("{range} is not inside {NON_MASQUERADE} {home}");
            findings.add_error(path, message, "leave it out, or use a part of that range");
        }
    }
    if overlap(pods.pod_cidr, pods.service_cidr) {
        let message = format!(
            "{} overlaps {SERVICES} {}",
            pods.pod_cidr, pods.service_cidr
        );
        findings.add_error(PODS, message, "pods and services need different addresses");
    }
}

fn check_dns_address(pods: &PodNetwork, findings: &mut Findings) {
    let (address, services) = (pods.dns_service_ip, pods.service_cidr);
    let hint = "leave it out to get the 10th address of the range";
    if !services.contains(&address) {
        let message = format!("{address} is no address of {SERVICES} {services}");
        findings.add_error(DNS, message, hint);
    } else if crate::cidr::nth_address(services, 1) == Some(address) {
        let message = format!("{address} is the address of the Service kubernetes");
        findings.add_error(DNS, message, hint);
    }
}

/// The VPC and its subnets, apart from what is inside the cluster.
fn check_instances(full: &FullSpec, spec: &ClusterSpec, findings: &mut Findings) {
    // Pods of these plugins have addresses of the VPC, and kOps takes the range of services out of it too.
    let plugins = spec.networking.as_ref();
    let in_vpc = plugins.is_some_and(|plugins| {
        full.pods.networking.attaches_interfaces()
            || plugins
                .cni
                .as_ref()
                .is_some_and(|cni| cni.uses_secondary_ip == Some(true))
    });
    let pods = &full.pods;
    for (path, range) in instance_ranges(full) {
        let range = IpNet::V4(range);
        let inside = [
            (SERVICES, pods.service_cidr, !in_vpc),
            (PODS, pods.pod_cidr, !in_vpc),
            (NON_MASQUERADE, pods.non_masquerade_cidr, !in_vpc),
        ];
        let clash = inside
            .into_iter()
            .find(|(_, other, counts)| *counts && overlap(range, *other));
        if let Some((what, other, _)) = clash {
            let message = format!("{range}, where instances are, overlaps {what} {other}");
            let hint = "pods, services and instances need different addresses: change one of them (the default of \
                        nonMasqueradeCIDR, with pods and services in it, is 100.64.0.0/10)";
            findings.add_error(path, message, hint);
        }
    }
}

/// The ranges of the VPC with the field that each comes from; subnets only where they are outside of these.
fn instance_ranges(full: &FullSpec) -> Vec<(String, Ipv4Net)> {
    let network = &full.network;
    let more = network.additional_cidrs.iter().enumerate();
    let more = more.map(|(at, range)| (format!("spec.additionalNetworkCIDRs[{at}]"), *range));
    let first = ("spec.networkCIDR".to_owned(), network.cidr);
    let mut all: Vec<(String, Ipv4Net)> = std::iter::once(first).chain(more).collect();
    for (at, subnet) in network.subnets.iter().enumerate() {
        if !all.iter().any(|(_, range)| range.contains(&subnet.cidr)) {
            all.push((format!("spec.subnets[{at}].cidr"), subnet.cidr));
        }
    }
    all
}

/// Subnets that kctl makes in a VPC of the user's, where others are.
fn check_existing_subnets(full: &FullSpec, facts: &Facts, findings: &mut Findings) {
    let vpc = full.network.shared_vpc.as_ref();
    let Some(vpc) = vpc.and_then(|id| facts.vpcs.get(id)) else {
        return;
    };
    let others = vpc
        .subnets
        .iter()
        .filter(|one| one.cluster.as_ref() != Some(&full.name));
    let others: Vec<(&str, Ipv4Net)> = others
        .filter_map(|one| Some((one.id.as_str(), one.cidr.parse().ok()?)))
        .collect();
    for (at, subnet) in full.network.subnets.iter().enumerate() {
        let taken = others
            .iter()
            .find(|(_, range)| subnet.shared.is_none() && overlap_v4(*range, subnet.cidr));
        if let Some((id, range)) = taken {
            let message = format!(
                "{} overlaps {range} of {id}, which is in the VPC already",
                subnet.cidr
            );
            let hint = format!("use a range that is free there, or the subnet itself: id: {id}");
            findings.add_error(format!("spec.subnets[{at}].cidr"), message, &hint);
        }
    }
}

fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

fn overlap_v4(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other) || other.contains(&one)
}
