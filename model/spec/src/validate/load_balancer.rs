//! How the API is reached: names or a load balancer, and the proxy of nodes.

use ipnet::Ipv4Net;
use node::ports::API_PROXY;

use crate::api::api_access::{LoadBalancerAccessSpec, LoadBalancerSubnetSpec};
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{DnsType, LoadBalancerClass, LoadBalancerType};
use crate::read::Problem;

use super::components::parse_port_range;
use super::text::{check_unique, is_arn, is_id};

const PATH: &str = "spec.api.loadBalancer";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(api) = &spec.api else { return };
    let dns_type = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.dns.as_ref())
        .and_then(|dns| dns.type_);
    if api.dns.is_some() && api.load_balancer.is_some() {
        let problem = Problem::error("spec.api", "both dns and loadBalancer are given");
        problems.push(problem.hint("keep loadBalancer; the names of the API point at it"));
    }
    if api.dns.is_some() && dns_type == Some(DnsType::None) {
        let problem = Problem::error(
            "spec.api.dns",
            "with topology.dns.type None there are no names that could lead to the API",
        );
        problems.push(problem.hint("use \"loadBalancer: {class: Network, type: Public}\" instead"));
    }
    if api.node_proxy.is_some() {
        check_node_ports(spec, problems);
    }
    if let Some(balancer) = &api.load_balancer {
        check_class(balancer, problems);
        check_certificate(balancer, problems);
        check_security_groups(balancer, problems);
        check_placement(balancer, spec, problems);
        check_internal_api(balancer, dns_type, problems);
        if balancer
            .access_log
            .as_ref()
            .is_some_and(|log| log.bucket.as_deref().unwrap_or_default().is_empty())
        {
            let problem = Problem::error(
                format!("{PATH}.accessLog.bucket"),
                "the access log has no bucket",
            );
            problems.push(
                problem.hint("add the name of an S3 bucket that the load balancer may write to"),
            );
        }
    }
}

/// A Service with the port of the proxy would get what is meant for the API.
fn check_node_ports(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let config = spec.kube_api_server.as_ref();
    let range = config.and_then(|config| config.service_node_port_range.as_deref());
    let Some((first, last)) = range.and_then(parse_port_range) else {
        return;
    };
    if (first..=last).contains(&API_PROXY) {
        let problem = Problem::error(
            "spec.kubeAPIServer.serviceNodePortRange",
            format!("it has port {API_PROXY}, at which spec.api.nodeProxy listens on every node"),
        );
        problems.push(problem.hint("use another range, such as 30000-32767"));
    }
}

fn check_class(balancer: &LoadBalancerAccessSpec, problems: &mut Vec<Problem>) {
    match balancer.class {
        Some(LoadBalancerClass::Network) => {}
        Some(LoadBalancerClass::Classic) => {
            let message =
                "AWS retires classic load balancers, kctl makes network load balancers only";
            problems.push(Problem::error(format!("{PATH}.class"), message).hint("write Network"));
        }
        None => {
            let message = "no class is given: kctl makes a network load balancer, kOps refuses it since 1.37 and made a classic one before";
            problems.push(
                Problem::warning(format!("{PATH}.class"), message).hint("write \"class: Network\""),
            );
        }
    }
}

/// Nodes would arrive at a public balancer from public addresses, theirs or their NAT gateway's: no rule that names their
/// security group lets those in. Without DNS they use its private addresses anyway.
fn check_internal_api(
    balancer: &LoadBalancerAccessSpec,
    dns_type: Option<DnsType>,
    problems: &mut Vec<Problem>,
) {
    let public = balancer.type_ != Some(LoadBalancerType::Internal);
    if balancer.use_for_internal_api == Some(true) && public && dns_type != Some(DnsType::None) {
        let problem = Problem::error(
            format!("{PATH}.useForInternalApi"),
            "nodes cannot be let in at a public load balancer by their security group",
        );
        problems.push(problem.hint("write type: Internal, or leave it out: nodes then reach the control planes by api.internal"));
    }
}

fn check_certificate(balancer: &LoadBalancerAccessSpec, problems: &mut Vec<Problem>) {
    let certificate = balancer
        .ssl_certificate
        .as_deref()
        .filter(|arn| !arn.is_empty());
    if let Some(arn) = certificate.filter(|arn| !is_arn("acm", arn) && !is_arn("iam", arn)) {
        let problem = Problem::error(
            format!("{PATH}.sslCertificate"),
            format!("\"{arn}\" is not the ARN of a certificate"),
        );
        problems.push(problem.hint("write arn:aws:acm:REGION:ACCOUNT:certificate/ID"));
    }
    if balancer.ssl_policy.is_some() && certificate.is_none() {
        let problem = Problem::error(
            format!("{PATH}.sslPolicy"),
            "a TLS policy without a certificate has no effect",
        );
        problems.push(problem.hint("add sslCertificate, or remove the policy"));
    }
}

fn check_security_groups(balancer: &LoadBalancerAccessSpec, problems: &mut Vec<Problem>) {
    let own = balancer
        .security_group_override
        .iter()
        .map(|id| (format!("{PATH}.securityGroupOverride"), id));
    let more = balancer.additional_security_groups.iter().enumerate();
    let more = more.map(|(index, id)| (format!("{PATH}.additionalSecurityGroups[{index}]"), id));
    for (path, id) in own.chain(more) {
        super::instances::check_security_group(path, id, problems);
    }
}

fn check_placement(
    balancer: &LoadBalancerAccessSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let at = |index: usize| format!("{PATH}.subnets[{index}]");
    let named = balancer.subnets.iter().enumerate();
    check_unique(
        named.map(|(index, subnet)| (format!("{}.name", at(index)), subnet.name.as_str())),
        problems,
    );
    let mut zones: Vec<(&str, &str)> = Vec::new();
    for (index, wanted) in balancer.subnets.iter().enumerate() {
        let Some(subnet) = spec
            .subnets
            .iter()
            .find(|subnet| subnet.name == wanted.name)
        else {
            let names: Vec<&str> = spec
                .subnets
                .iter()
                .map(|subnet| subnet.name.as_str())
                .collect();
            let message = format!("\"{}\" is not a subnet of the cluster", wanted.name);
            problems.push(
                Problem::error(format!("{}.name", at(index)), message)
                    .hint(crate::read::nearest::hint(&wanted.name, &names)),
            );
            continue;
        };
        match zones
            .iter()
            .find(|(zone, name)| *zone == subnet.zone && *name != subnet.name)
        {
            Some((zone, other)) => {
                let message = format!("{} and {other} are both in {zone}", subnet.name);
                let problem = Problem::error(format!("{}.name", at(index)), message);
                problems.push(problem.hint("a network load balancer has one subnet per zone"));
            }
            None => zones.push((&subnet.zone, &subnet.name)),
        }
        check_addresses(&at(index), wanted, subnet, balancer, problems);
    }
}

fn check_addresses(
    path: &str,
    wanted: &LoadBalancerSubnetSpec,
    subnet: &ClusterSubnetSpec,
    balancer: &LoadBalancerAccessSpec,
    problems: &mut Vec<Problem>,
) {
    let public = balancer.type_ != Some(LoadBalancerType::Internal);
    if public && subnet.subnet_type().is_private() {
        let problem = Problem::error(
            format!("{path}.name"),
            format!("{} is private, the load balancer is public", subnet.name),
        );
        problems.push(problem.hint("use the utility subnet of the zone, or type: Internal"));
    }
    if let Some(address) = &wanted.private_ipv4_address {
        let range = subnet
            .cidr
            .as_deref()
            .and_then(|text| text.parse::<Ipv4Net>().ok());
        let inside = address.parse().is_ok_and(|address: std::net::Ipv4Addr| {
            range.is_none_or(|range| range.contains(&address))
        });
        let path = format!("{path}.privateIPv4Address");
        if public {
            let problem = Problem::error(
                path,
                "only internal load balancers have fixed private addresses",
            );
            problems.push(problem.hint("use allocationId, or type: Internal"));
        } else if !inside {
            let problem = Problem::error(
                path,
                format!("\"{address}\" is not an address of subnet {}", subnet.name),
            );
            problems.push(problem.hint(format!(
                "use an address of {}",
                subnet.cidr.as_deref().unwrap_or("its range")
            )));
        } else if let Some(range) = range.filter(|range| is_reserved(*range, address)) {
            let message =
                format!("{address} is one of the five addresses of a subnet that AWS keeps");
            let problem = Problem::error(path, message);
            problems.push(problem.hint(format!(
                "use another address of {range} than the first four and the last"
            )));
        }
    }
    if let Some(id) = &wanted.allocation_id {
        let path = format!("{path}.allocationId");
        if !public {
            let problem = Problem::error(path, "only public load balancers have Elastic IPs");
            problems.push(problem.hint("use privateIPv4Address, or type: Public"));
        } else if !is_id("eipalloc", id) {
            let problem = Problem::error(path, format!("\"{id}\" is not the id of an Elastic IP"));
            problems.push(problem.hint("write an id such as eipalloc-0123456789abcdef0"));
        }
    }
}

/// True of the first four addresses of a subnet and the last (Amazon VPC User Guide, "Subnet CIDR blocks").
fn is_reserved(range: Ipv4Net, address: &str) -> bool {
    let Ok(address) = address.parse::<std::net::Ipv4Addr>() else {
        return false;
    };
    u32::from(address) - u32::from(range.network()) < 4 || address == range.broadcast()
}
