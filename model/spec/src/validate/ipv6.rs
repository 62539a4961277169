//! Rules of IPv6 clusters: those of kOps, and what could not work.

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{InstanceGroupRole, LoadBalancerType, SubnetType};
use crate::read::Problem;
use crate::read::path::field_path;
use cloud::SubnetIpv6Range;
use cloud::facts::Facts;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (index, subnet) in spec.subnets.iter().enumerate() {
        check_subnet(&format!("spec.subnets[{index}]"), subnet, spec, problems);
    }
    check_node_families(spec, problems);
    if !spec.is_ipv6() {
        return;
    }
    check_ranges(spec, problems);
    check_plugin(spec, problems);
    check_dns_cache(spec, problems);
    check_name_servers(spec, problems);
    check_proxy(spec, problems);
    check_api_server(spec, problems);
    check_load_balancer(spec, problems);
}

/// Instances that are Nodes need an address for themselves and a range for their pods.
pub fn check_group(group: &InstanceGroupSpec, cluster: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (index, message, hint) in subnet_faults(group, cluster, None) {
        let problem = Problem::error(format!("spec.subnets[{index}]"), message);
        problems.push(problem.hint(hint));
    }
}

/// The subnets of a group of an IPv6 cluster in which its instances could not be what they are for: position, message and hint.
/// Of users' subnets AWS says the ranges, which a completed spec has.
pub(crate) fn subnet_faults(
    group: &InstanceGroupSpec,
    cluster: &ClusterSpec,
    facts: Option<&Facts>,
) -> Vec<(usize, String, &'static str)> {
    let mut faults = Vec::new();
    if !cluster.is_ipv6() {
        return faults;
    }
    let balanced = match group.role {
        Some(InstanceGroupRole::Bastion) => true,
        // In private subnets they get a load balancer, unless the spec says DNS.
        Some(InstanceGroupRole::ControlPlane) => cluster
            .api
            .as_ref()
            .is_none_or(|api| api.load_balancer.is_some() || api.dns.is_none()),
        _ => false,
    };
    for (index, name) in group.subnets.iter().enumerate() {
        let mut subnets = cluster.subnets.iter();
        let Some(subnet) = subnets.find(|subnet| subnet.name == *name) else {
            continue;
        };
        if subnet.ipv6_cidr.is_none() && group.role != Some(InstanceGroupRole::Bastion) {
            faults.push((
                index,
                format!("{name} has no IPv6, and the cluster is an IPv6 cluster"),
                "set ipv6CIDR of the subnet, or use another one",
            ));
        }
        let said = |id: &String| facts.is_some_and(|facts| facts.subnets.contains_key(id));
        let known = subnet.id.as_ref().is_none_or(said);
        if balanced && known && has_ipv6_alone(subnet) {
            faults.push((
                index,
                format!("{name} has no IPv4, and load balancers reach instances at IPv4 addresses"),
                "use a subnet of type DualStack, or set cidr of this one",
            ));
        }
    }
    faults
}

/// True for a subnet that has no IPv4 range, and gets none.
fn has_ipv6_alone(subnet: &ClusterSubnetSpec) -> bool {
    subnet.cidr.is_none()
        && subnet.ipv6_cidr.is_some()
        && subnet.subnet_type() == SubnetType::Private
}

fn check_subnet(
    path: &str,
    subnet: &ClusterSubnetSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let range = subnet.ipv6_cidr.as_deref();
    let range = range.map(str::parse::<SubnetIpv6Range>);
    let range_path = format!("{path}.ipv6CIDR");
    let made = subnet.id.is_none();
    if let Some(Err(message)) = &range {
        problems.push(Problem::error(&range_path, message).hint(
            "write a range such as 2001:db8:0:1::/64, or /64#0, /64#1, ... for parts of the VPC's (in hexadecimal)",
        ));
    }
    if made && spec.network_id.is_none() && matches!(range, Some(Ok(SubnetIpv6Range::Net(_)))) {
        let message = "Amazon chooses the range of the cluster's VPC when it is made: this is no part of it, unless the VPC is there already";
        let problem = Problem::warning(&range_path, message);
        problems.push(problem.hint("write /64#0, /64#1, ... for parts of the VPC's range"));
    }
    let private = subnet.subnet_type() == SubnetType::Private;
    if made && private && range.is_some() && !spec.is_ipv6() {
        let message = "instances in private subnets of an IPv4 cluster get IPv6 addresses, and no way to the IPv6 internet";
        let problem = Problem::warning(range_path, message);
        problems.push(problem.hint("leave it out, or make an IPv6 cluster"));
    }
    if subnet.subnet_type() == SubnetType::DualStack && !spec.is_ipv6() {
        let problem = Problem::error(
            format!("{path}.type"),
            "only IPv6 clusters have subnets of type DualStack",
        );
        problems.push(problem.hint("use Private, or set spec.nonMasqueradeCIDR: ::/0"));
    }
    let egress = subnet.egress.as_deref().unwrap_or_default();
    if spec.is_ipv6() && egress.starts_with("i-") && subnet.id.is_none() {
        let problem = Problem::error(
            format!("{path}.egress"),
            "instances with IPv6 alone reach IPv4 addresses through a NAT gateway or a transit gateway only",
        );
        problems.push(problem.hint("use nat-..., eipalloc-... or tgw-..., or leave it out"));
    }
}

/// The families of which the cloud controller manager gives Nodes addresses.
fn check_node_families(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let families = spec.cloud_config.iter();
    let families = families.flat_map(|config| &config.node_ip_families);
    for (index, family) in families.enumerate() {
        let path = format!("spec.cloudConfig.nodeIPFamilies[{index}]");
        super::text::check_one_of(&path, family, &["ipv4", "ipv6"], problems);
        if index == 0 && spec.is_ipv6() && family != "ipv6" {
            let problem =
                Problem::error(path, "Nodes of an IPv6 cluster have IPv6 addresses first");
            problems.push(problem.hint("leave it out, or begin with ipv6"));
        }
    }
}

fn check_ranges(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let all = spec.non_masquerade_cidr.as_deref().unwrap_or_default();
    if all != "::/0" {
        let problem = Problem::error(
            "spec.nonMasqueradeCIDR",
            format!("an IPv6 cluster has ::/0 here, not {all}"),
        );
        problems.push(problem.hint("write ::/0: pods have addresses of their subnets"));
    }
    if spec.pod_cidr.is_some() {
        let problem = Problem::error(
            "spec.podCIDR",
            "pods of an IPv6 cluster have addresses of their subnets",
        );
        problems.push(problem.hint("leave it out"));
    }
}

/// The plugins that kOps refuses, and kindnet, which would put routes of its own in the place of the VPC's.
fn check_plugin(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(networking) = &spec.networking else {
        return;
    };
    let without = [
        ("amazonvpc", networking.amazonvpc.is_some()),
        ("flannel", networking.flannel.is_some()),
        ("kindnet", networking.kindnet.is_some()),
        ("kopeio", networking.kopeio.is_some()),
        ("kubenet", networking.kubenet.is_some()),
        ("kuberouter", networking.kuberouter.is_some()),
    ];
    for (name, _) in without.into_iter().filter(|(_, chosen)| *chosen) {
        let path = format!("spec.networking.{name}");
        let problem = Problem::error(path, format!("{name} does not do IPv6"));
        problems.push(problem.hint("use cilium or calico, or cni to install your own"));
    }
}

/// Pods ask the node-local DNS cache at an address that they can reach.
fn check_dns_cache(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let dns = spec.kube_dns.as_ref();
    let cache = dns.and_then(|dns| dns.node_local_dns.as_ref());
    let Some(cache) = cache.filter(|cache| cache.enabled == Some(true)) else {
        return;
    };
    let address = cache.local_ip.as_deref().unwrap_or_default();
    if address.parse::<Ipv6Addr>().is_err() {
        let problem = Problem::error(
            "spec.kubeDNS.nodeLocalDNS.localIP",
            "pods of an IPv6 cluster reach the cache at an IPv6 address only",
        );
        problems
            .push(problem.hint("set it to an address that nothing else has, such as fd00:ec1::10"));
    }
}

/// CoreDNS is a pod, and reaches IPv6 addresses only.
fn check_name_servers(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(dns) = &spec.kube_dns else {
        return;
    };
    let upstream = dns.upstream_nameservers.iter().enumerate();
    let upstream =
        upstream.map(|(at, server)| (format!("spec.kubeDNS.upstreamNameservers[{at}]"), server));
    let stubs = dns.stub_domains.iter().flat_map(|(domain, servers)| {
        let path = field_path("spec.kubeDNS.stubDomains", domain);
        let servers = servers.iter().enumerate();
        servers.map(move |(at, server)| (format!("{path}[{at}]"), server))
    });
    for (path, server) in upstream.chain(stubs) {
        if is_ipv4(server) {
            let problem = Problem::error(
                path,
                format!("{server} is an IPv4 address, which pods of an IPv6 cluster do not reach"),
            );
            problems.push(
                problem.hint("use a name server with an IPv6 address, such as fd00:ec2::253"),
            );
        }
    }
}

/// Instances with IPv6 alone reach IPv4 addresses by names only, which DNS64 translates.
fn check_proxy(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let egress = spec.egress_proxy.as_ref();
    let Some(proxy) = egress.and_then(|egress| egress.http_proxy.as_ref()) else {
        return;
    };
    if is_ipv4(&proxy.host) {
        let message = "instances with IPv6 alone do not reach an IPv4 address";
        let problem = Problem::error("spec.egressProxy.httpProxy.host", message);
        problems.push(problem.hint("write the proxy's name, or an IPv6 address"));
    }
}

/// True for an IPv4 address, with or without a port.
fn is_ipv4(address: &str) -> bool {
    address.parse::<Ipv4Addr>().is_ok() || address.parse::<SocketAddrV4>().is_ok()
}

/// The API server tells pods its address: it does not start if that is not of the family of Services.
fn check_api_server(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(api) = &spec.kube_api_server else {
        return;
    };
    for (field, address) in [
        ("advertiseAddress", &api.advertise_address),
        ("bindAddress", &api.bind_address),
    ] {
        if address.as_deref().is_some_and(is_ipv4) {
            let problem = Problem::error(
                format!("spec.kubeAPIServer.{field}"),
                "the API server of an IPv6 cluster needs an IPv6 address",
            );
            problems.push(
                problem.hint("leave it out: it then listens at all addresses of both families"),
            );
        }
    }
}

/// AWS takes a load balancer with IPv6 only in subnets with IPv6.
fn check_load_balancer(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let api = spec.api.as_ref();
    let Some(balancer) = api.and_then(|api| api.load_balancer.as_ref()) else {
        return;
    };
    let internal = balancer.type_ == Some(LoadBalancerType::Internal);
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let named = balancer.subnets.iter().any(|one| one.name == subnet.name);
        let suits = subnet.subnet_type().is_private() == internal;
        let used = named || (balancer.subnets.is_empty() && suits);
        if used && subnet.ipv6_cidr.is_none() {
            let problem = Problem::error(
                format!("spec.subnets[{index}].ipv6CIDR"),
                "the API's load balancer has IPv6 addresses, and can be in no subnet without",
            );
            problems.push(problem.hint("add it, such as /64#0"));
        }
    }
}
