//! How the API is reached: by DNS names of the control planes, or through a load balancer.

use super::fill::fill;
use super::network::is_ipv6_only;
use super::{Findings, dns};
use crate::api::api_access::{DNSAccessSpec, LoadBalancerAccessSpec, LoadBalancerSubnetSpec};
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{
    InstanceGroup, InstanceGroupRole, LoadBalancerClass, LoadBalancerType, SubnetType,
};
use full::{Api, ApiLoadBalancer, ApiLoadBalancerSubnet, DnsKind};
use std::collections::{BTreeMap, BTreeSet};

/// The TLS policy of load balancers with a certificate, as in kOps.
const SSL_POLICY: &str = "ELBSecurityPolicy-2016-08";

/// Chooses between DNS names and a load balancer, and the load balancer's subnets.
pub(super) fn complete_api(
    spec: &mut ClusterSpec,
    groups: &[InstanceGroup],
    findings: &mut Findings,
) {
    if spec.kubernetes_api_access.is_empty() {
        findings.add_warning(
            "spec.kubernetesApiAccess",
            "no address outside the VPC is allowed to reach the API",
            "add the ranges from which kubectl is used, such as 203.0.113.0/24",
        );
    }
    let unreachable_by_name = dns::dns_kind(spec) == DnsKind::None;
    let private = control_planes_are_private(spec, groups);
    let api = spec.api.get_or_insert_default();
    if api.load_balancer.is_none() && api.dns.is_none() {
        if unreachable_by_name || private {
            api.load_balancer = Some(LoadBalancerAccessSpec {
                class: Some(LoadBalancerClass::Network),
                ..LoadBalancerAccessSpec::default()
            });
        } else {
            api.dns = Some(DNSAccessSpec {});
        }
    }
    let subnets = spec.subnets.clone();
    if let Some(balancer) = &mut api.load_balancer {
        // Without DNS names, workers know only the load balancer, so it must reach every control plane.
        fill(&mut balancer.cross_zone_load_balancing, unreachable_by_name);
        complete_load_balancer(balancer, &subnets, groups, findings);
    }
}

fn control_planes_are_private(spec: &ClusterSpec, groups: &[InstanceGroup]) -> bool {
    let names = control_plane_subnets(groups);
    spec.subnets
        .iter()
        .any(|subnet| names.contains(subnet.name.as_str()) && is_private(subnet))
}

fn control_plane_subnets(groups: &[InstanceGroup]) -> BTreeSet<&str> {
    groups
        .iter()
        .filter(|group| group.spec.role == Some(InstanceGroupRole::ControlPlane))
        .flat_map(|group| group.spec.subnets.iter().map(String::as_str))
        .collect()
}

fn complete_load_balancer(
    balancer: &mut LoadBalancerAccessSpec,
    subnets: &[ClusterSubnetSpec],
    groups: &[InstanceGroup],
    findings: &mut Findings,
) {
    fill(&mut balancer.class, LoadBalancerClass::Network);
    fill(&mut balancer.type_, LoadBalancerType::Public);
    fill(&mut balancer.use_for_internal_api, false);
    if balancer.ssl_certificate.is_some() {
        fill(&mut balancer.ssl_policy, SSL_POLICY);
    }
    if balancer.subnets.is_empty() {
        let internal = balancer.type_ == Some(LoadBalancerType::Internal);
        balancer.subnets = load_balancer_subnets(internal, subnets, groups);
        if balancer.subnets.is_empty() {
            findings.add_error(
                "spec.api.loadBalancer.subnets",
                "no subnet is suitable for this load balancer",
                "add a Public or Utility subnet, or make the load balancer Internal",
            );
        }
    }
}

/// The best subnet of each zone, of those with IPv4. Public load balancers are in utility or public subnets, internal
/// ones in private subnets, or in public ones where there are no others. In a zone, utility
/// subnets and those of control planes are preferred, then the first by name.
fn load_balancer_subnets(
    internal: bool,
    subnets: &[ClusterSubnetSpec],
    groups: &[InstanceGroup],
) -> Vec<LoadBalancerSubnetSpec> {
    let has_private = subnets.iter().any(is_private);
    let control_planes = control_plane_subnets(groups);
    let mut best: BTreeMap<&str, (i32, &str)> = BTreeMap::new();
    for subnet in subnets {
        if is_private(subnet) != (internal && has_private) || is_ipv6_only(subnet) {
            continue;
        }
        let utility = subnet.type_ == Some(SubnetType::Utility);
        let preferred = control_planes.contains(subnet.name.as_str());
        // Smaller is better: then names in their order break ties.
        let rank = (
            -i32::from(utility) - i32::from(preferred),
            subnet.name.as_str(),
        );
        let best_of_zone = best.entry(&subnet.zone).or_insert(rank);
        *best_of_zone = rank.min(*best_of_zone);
    }
    best.into_values()
        .map(|(_, name)| LoadBalancerSubnetSpec {
            name: name.to_owned(),
            ..LoadBalancerSubnetSpec::default()
        })
        .collect()
}

fn is_private(subnet: &ClusterSubnetSpec) -> bool {
    subnet.type_.is_some_and(SubnetType::is_private)
}

/// API access of a completed spec.
pub(super) fn full_api(spec: &ClusterSpec) -> Api {
    let api = spec.api.as_ref();
    let balancer = api.and_then(|api| api.load_balancer.as_ref());
    Api {
        access: spec.kubernetes_api_access.clone(),
        load_balancer: balancer.map(full_load_balancer),
        additional_names: spec.additional_sans.clone(),
        node_proxy: api.is_some_and(|api| api.node_proxy.is_some()),
    }
}

fn full_load_balancer(balancer: &LoadBalancerAccessSpec) -> ApiLoadBalancer {
    let log = balancer.access_log.as_ref();
    ApiLoadBalancer {
        internal: balancer.type_ == Some(LoadBalancerType::Internal),
        subnets: balancer
            .subnets
            .iter()
            .map(|subnet| ApiLoadBalancerSubnet {
                name: subnet.name.clone(),
                allocation_id: subnet.allocation_id.clone(),
                private_ipv4_address: subnet.private_ipv4_address.clone(),
            })
            .collect(),
        cross_zone: balancer.cross_zone_load_balancing == Some(true),
        additional_security_groups: balancer.additional_security_groups.clone(),
        security_group_override: balancer.security_group_override.clone(),
        ssl_certificate: balancer.ssl_certificate.clone(),
        ssl_policy: balancer.ssl_policy.clone(),
        access_log: log.and_then(|log| Some((log.bucket.clone()?, log.bucket_prefix.clone()))),
        use_for_internal_api: balancer.use_for_internal_api == Some(true),
    }
}
