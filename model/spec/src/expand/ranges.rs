//! Address ranges against each other: instances, pods, services and the DNS address. All values are filled in here, so a range that the
//! spec leaves to a default, or that an existing VPC has, counts as well.

use super::Findings;
use crate::api::cluster::ClusterSpec;
use crate::cidr::ranges_overlap;
use cloud::SubnetIpv6Range;
use cloud::facts::Facts;
use full::{FullSpec, PodNetwork};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use node::config::Networking;

const PODS: &str = "spec.podCIDR";
const SERVICES: &str = "spec.serviceClusterIPRange";
const NON_MASQUERADE: &str = "spec.nonMasqueradeCIDR";
const DNS: &str = "spec.kubeDNS.serverIP";

/// Stands for the range that AWS gives a VPC, which is not known before.
const AMAZON: Ipv6Net = Ipv6Net::new_assert(std::net::Ipv6Addr::UNSPECIFIED, cloud::AMAZON_PREFIX);

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
    check_size_of_services(full, findings);
    check_instances(full, spec, findings);
    check_existing_subnets(full, facts, findings);
    check_ipv6_subnets(full, findings);
}

/// IPv6 ranges of subnets. Parts of the VPC's range are compared as such: Services have none of them.
fn check_ipv6_subnets(full: &FullSpec, findings: &mut Findings) {
    let hint = "use another part of the VPC's range, such as /64#0, /64#1, ... (in hexadecimal)";
    let mut before: Vec<(&str, Ipv6Net)> = Vec::new();
    for (at, subnet) in full.network.subnets.iter().enumerate() {
        let Some(range) = subnet.ipv6_cidr else {
            continue;
        };
        let path = format!("spec.subnets[{at}].ipv6CIDR");
        let Some(net) = range.within(AMAZON) else {
            let message = format!("{range} is no part of a /{}", AMAZON.prefix_len());
            findings.add_error(path, message, hint);
            continue;
        };
        if !(44..=64).contains(&net.prefix_len()) || net.prefix_len() % 4 != 0 {
            let message = format!("{range} is of a size that AWS does not take");
            findings.add_error(
                path,
                message,
                "use a prefix length of 44 to 64 that 4 divides",
            );
        } else if ranges_overlap(net, full.pods.service_cidr) {
            let message = format!("{range} overlaps {SERVICES} {}", full.pods.service_cidr);
            findings.add_error(path, message, hint);
        } else if let Some((other, _)) =
            before.iter().find(|(_, taken)| ranges_overlap(*taken, net))
        {
            let message = format!("{range} overlaps the range of subnet {other}");
            findings.add_error(path, message, hint);
        }
        before.push((&subnet.name, net));
    }
}

/// Pods and Services are of one family, which is that of the range that is not masqueraded.
fn check_families(pods: &PodNetwork, findings: &mut Findings) {
    let home = pods.non_masquerade_cidr;
    let family = |v6| if v6 { "IPv6" } else { "IPv4" };
    let services = Some(pods.service_cidr);
    for (path, range) in [(PODS, pods.pod_cidr), (SERVICES, services)] {
        if let Some(range) = range.filter(|range| is_v6(range) != is_v6(&home)) {
            let (own, cluster) = (family(is_v6(&range)), family(is_v6(&home)));
            let message = format!("{range} is {own}, and the cluster is an {cluster} cluster");
            let hint = format!("leave it out, or use an {cluster} range");
            findings.add_error(path, message, &hint);
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
    let services = Some(pods.service_cidr).filter(|_| services_inside);
    for (path, range) in [(PODS, pods.pod_cidr), (SERVICES, services)] {
        let Some(range) = range else { continue };
        if is_v6(&range) == is_v6(&home) && !home.contains(&range) {
            let message = format!("{range} is not inside {NON_MASQUERADE} {home}");
            findings.add_error(path, message, "leave it out, or use a part of that range");
        }
    }
    let clash = pods
        .pod_cidr
        .filter(|range| ranges_overlap(*range, pods.service_cidr));
    if let Some(range) = clash {
        let message = format!("{range} overlaps {SERVICES} {}", pods.service_cidr);
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

/// API servers before 1.33 do not start with more than 2^20 addresses of Services (kube-apiserver's `validateMaxCIDRRange`).
fn check_size_of_services(full: &FullSpec, findings: &mut Findings) {
    const BITS: u8 = 20;
    let services = full.pods.service_cidr;
    let smallest = services.max_prefix_len() - BITS;
    if services.prefix_len() < smallest && !full.is_at_least(33) {
        findings.add_error(
            SERVICES,
            format!(
                "{services} has more addresses than API servers of Kubernetes {} take",
                full.kubernetes_version
            ),
            &format!("use a /{smallest} or smaller, or Kubernetes 1.33"),
        );
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
            (SERVICES, Some(pods.service_cidr)),
            (PODS, pods.pod_cidr),
            (NON_MASQUERADE, Some(pods.non_masquerade_cidr)),
        ];
        let inside = inside
            .into_iter()
            .filter_map(|(what, other)| Some((what, other?)));
        let clash = inside
            .filter(|_| !in_vpc)
            .find(|(_, other)| ranges_overlap(range, *other));
        if let Some((what, other)) = clash {
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
        let own = subnet.cidr;
        if let Some(own) = own.filter(|own| !all.iter().any(|(_, range)| range.contains(own))) {
            all.push((format!("spec.subnets[{at}].cidr"), own));
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
    let others: Vec<(&str, IpNet)> = others
        .flat_map(|one| {
            let ranges = one.cidr.iter().chain(&one.ipv6_cidr);
            ranges.filter_map(|range| Some((one.id.as_str(), range.parse().ok()?)))
        })
        .collect();
    let own = full.network.subnets.iter().enumerate();
    for (at, subnet) in own.filter(|(_, subnet)| subnet.shared.is_none()) {
        let ipv6 = match subnet.ipv6_cidr {
            Some(SubnetIpv6Range::Net(range)) => Some(IpNet::V6(range)),
            _ => None,
        };
        let ranges = [("cidr", subnet.cidr.map(IpNet::V4)), ("ipv6CIDR", ipv6)];
        for (field, own) in ranges {
            let Some(own) = own else { continue };
            let taken = others.iter().find(|(_, range)| ranges_overlap(*range, own));
            if let Some((id, range)) = taken {
                let message =
                    format!("{own} overlaps {range} of {id}, which is in the VPC already");
                let hint =
                    format!("use a range that is free there, or the subnet itself: id: {id}");
                findings.add_error(format!("spec.subnets[{at}].{field}"), message, &hint);
            }
        }
    }
}
