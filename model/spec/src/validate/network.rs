//! The VPC's ranges, the cluster's own ranges and the CNI.

use ipnet::Ipv4Net;

use crate::api::cluster::ClusterSpec;
use crate::api::networking::NetworkingSpec;
use crate::read::Problem;

use super::cidr::{parse_range, ranges_overlap, vpc_range};
use super::text::is_id;

/// The range of a VPC whose spec names none.
const USUAL: &str = "172.20.0.0/16";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_vpc(spec, problems);
    check_cluster_ranges(spec, problems);
    check_plugin(spec, problems);
}

fn check_vpc(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let mut ranges: Vec<Ipv4Net> = Vec::new();
    let said = spec.network_cidr.as_deref().unwrap_or(USUAL);
    // What an existing VPC has, it has.
    let primary = said.parse::<Ipv4Net>().ok();
    let primary = primary.filter(|_| spec.network_id.is_none());
    let first = spec
        .network_cidr
        .as_ref()
        .map(|text| ("spec.networkCIDR".to_owned(), text));
    let more = spec.additional_network_cidrs.iter().enumerate();
    let more = more.map(|(index, text)| (format!("spec.additionalNetworkCIDRs[{index}]"), text));
    for (path, text) in first.into_iter().chain(more) {
        // An existing VPC has the size it has.
        let read = if spec.network_id.is_some() {
            parse_range
        } else {
            vpc_range
        };
        let Some(net) = read(&path, text, problems) else {
            continue;
        };
        if let Some(other) = ranges.iter().find(|other| ranges_overlap(**other, net)) {
            let problem = Problem::error(
                &path,
                format!("{net} overlaps {other}, another range of the VPC"),
            );
            problems.push(problem.hint("ranges of a VPC must not overlap"));
        }
        if !is_private(net) {
            let problem = Problem::warning(&path, format!("{net} is not a private range"));
            problems.push(problem.hint("instances will not reach its owners; use a part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16"));
        }
        if let Some(why) = primary
            .filter(|primary| *primary != net)
            .and_then(|primary| not_beside(primary, net))
        {
            let problem = Problem::warning(&path, format!("AWS takes no {net} here: {why}"));
            problems.push(problem.hint(
                "take it from the private range that spec.networkCIDR is of, or from 100.64.0.0/10",
            ));
        }
        ranges.push(net);
    }
    if let Some(id) = spec.network_id.as_deref().filter(|id| !is_id("vpc", id)) {
        let problem = Problem::error("spec.networkID", format!("\"{id}\" is not the id of a VPC"));
        problems.push(
            problem.hint(
                "write an id such as vpc-0123456789abcdef0, or leave it out to get a VPC made",
            ),
        );
    }
}

/// Why AWS, by what it documents, associates no such range with a VPC of that first range; a warning, since documents change: Amazon VPC User Guide, "VPC CIDR blocks", "IPv4
/// CIDR block association restrictions".
fn not_beside(first: Ipv4Net, more: Ipv4Net) -> Option<&'static str> {
    let within = |net: Ipv4Net, address: [u8; 4], len: u8| {
        Ipv4Net::new(address.into(), len).is_ok_and(|home| home.contains(&net))
    };
    let private = |net: Ipv4Net| {
        [
            ([10, 0, 0, 0], 8),
            ([172, 16, 0, 0], 12),
            ([192, 168, 0, 0], 16),
        ]
        .into_iter()
        .position(|(address, len)| within(net, address, len))
    };
    if within(more, [198, 19, 0, 0], 16) {
        return Some("198.19.0.0/16 is AWS' own");
    }
    match (private(first), private(more)) {
        (None, Some(_)) => Some("a VPC outside the private ranges of RFC 1918 gets none of them"),
        (Some(first), Some(more)) if first != more => {
            Some("a VPC has ranges of one of the private ranges of RFC 1918 only")
        }
        (Some(1), Some(_)) if within(more, [172, 31, 0, 0], 16) => {
            Some("172.31.0.0/16 is that of default VPCs")
        }
        (Some(0), Some(_))
            if within(first, [10, 0, 0, 0], 15) && within(more, [10, 0, 0, 0], 16) =>
        {
            Some("a VPC in 10.0.0.0/15 gets nothing more of 10.0.0.0/16")
        }
        _ => None,
    }
}

/// RFC 1918, and RFC 6598 as AWS allows it too.
fn is_private(net: Ipv4Net) -> bool {
    let homes = [
        ([10, 0, 0, 0], 8),
        ([172, 16, 0, 0], 12),
        ([192, 168, 0, 0], 16),
        ([100, 64, 0, 0], 10),
    ];
    homes.iter().any(|(address, len)| {
        Ipv4Net::new((*address).into(), *len).is_ok_and(|home| home.contains(&net))
    })
}

/// Pods and services: inside `nonMasqueradeCIDR`, apart from each other and from the VPC.
fn check_cluster_ranges(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let uses_vpc_addresses = networking.is_some_and(|networking| {
        let cni = networking.cni.as_ref();
        let cilium = networking.cilium.as_ref();
        cni.and_then(|cni| cni.uses_secondary_ip) == Some(true)
            || cilium.is_some_and(|cilium| cilium.uses_interfaces())
    });
    // Pods have addresses of the VPC then, and Services others.
    let in_vpc = networking.is_some_and(|networking| networking.amazonvpc.is_some());
    let non_masquerade = spec
        .non_masquerade_cidr
        .as_deref()
        .filter(|text| !text.contains(':'));
    let home =
        non_masquerade.and_then(|text| parse_range("spec.nonMasqueradeCIDR", text, problems));
    let vpc = spec
        .network_cidr
        .as_deref()
        .and_then(|text| text.parse::<Ipv4Net>().ok());
    if let (Some(home), Some(vpc)) = (home, vpc)
        && ranges_overlap(home, vpc)
        && !uses_vpc_addresses
        && !in_vpc
    {
        let problem = Problem::error(
            "spec.nonMasqueradeCIDR",
            format!("{home} overlaps spec.networkCIDR {vpc}"),
        );
        problems.push(
            problem
                .hint("pods and instances need different addresses; the default is 100.64.0.0/10"),
        );
    }
    let mut inside = |path: &str, text: &Option<String>, home: Option<Ipv4Net>| {
        let net = text
            .as_deref()
            .filter(|text| !text.contains(':'))
            .and_then(|text| parse_range(path, text, problems))?;
        if let Some(home) = home.filter(|home| !home.contains(&net)) {
            let problem = Problem::error(
                path,
                format!("{net} is not inside spec.nonMasqueradeCIDR {home}"),
            );
            problems.push(problem.hint("leave it out, or use a part of that range"));
        }
        Some(net)
    };
    let services = inside(
        "spec.serviceClusterIPRange",
        &spec.service_cluster_ip_range,
        home.filter(|_| !in_vpc),
    );
    let pods = inside("spec.podCIDR", &spec.pod_cidr, home);
    if let (Some(services), Some(pods)) = (services, pods)
        && ranges_overlap(services, pods)
    {
        let problem = Problem::error(
            "spec.podCIDR",
            format!("{pods} overlaps spec.serviceClusterIPRange {services}"),
        );
        problems.push(problem.hint("pods and services need different addresses"));
    }
    if let Some(services) = services {
        check_dns_address(spec, services, problems);
    }
}

fn check_dns_address(spec: &ClusterSpec, services: Ipv4Net, problems: &mut Vec<Problem>) {
    let dns = spec.kube_dns.as_ref();
    let Some(text) = dns.and_then(|dns| dns.server_ip.as_deref()) else {
        return;
    };
    let address = text.parse::<std::net::Ipv4Addr>();
    if !address.is_ok_and(|address| services.contains(&address)) {
        let problem = Problem::error(
            "spec.kubeDNS.serverIP",
            format!("{text} is no address of spec.serviceClusterIPRange {services}"),
        );
        problems.push(problem.hint("leave it out to get the 10th address of the range"));
    }
}

/// Names of the plugins that are set.
fn plugin_names(networking: &NetworkingSpec) -> Vec<&'static str> {
    let all = [
        ("amazonvpc", networking.amazonvpc.is_some()),
        ("calico", networking.calico.is_some()),
        ("canal", networking.canal.is_some()),
        ("cilium", networking.cilium.is_some()),
        ("classic", networking.classic.is_some()),
        ("cni", networking.cni.is_some()),
        ("external", networking.external.is_some()),
        ("flannel", networking.flannel.is_some()),
        ("gce", networking.gce.is_some()),
        ("kindnet", networking.kindnet.is_some()),
        ("kopeio", networking.kopeio.is_some()),
        ("kubenet", networking.kubenet.is_some()),
        ("kuberouter", networking.kuberouter.is_some()),
        ("lyftvpc", networking.lyftvpc.is_some()),
        ("romana", networking.romana.is_some()),
        ("weave", networking.weave.is_some()),
    ];
    all.into_iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| name)
        .collect()
}

fn check_plugin(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let path = "spec.networking";
    let Some(networking) = &spec.networking else {
        let problem = Problem::error(path, "no network plugin is chosen");
        return problems.push(
            problem.hint(
                "add \"networking: {cilium: {}}\", another plugin, or cni to install your own",
            ),
        );
    };
    match plugin_names(networking).as_slice() {
        [] => problems.push(Problem::error(path, "no network plugin is chosen").hint(
            "add \"cilium: {}\" below it, another plugin, or \"cni: {}\" to install your own",
        )),
        [_] => {}
        several => {
            let message = format!("several network plugins are chosen: {}", several.join(", "));
            problems.push(Problem::error(path, message).hint("keep one of them"));
        }
    }
    if let Some(backend) = networking
        .flannel
        .as_ref()
        .and_then(|flannel| flannel.backend.as_deref())
    {
        super::text::check_one_of(
            "spec.networking.flannel.backend",
            backend,
            &["vxlan", "udp"],
            problems,
        );
    }
    let private = spec
        .subnets
        .iter()
        .any(|subnet| subnet.subnet_type().is_private());
    if networking.kubenet.is_some() && private {
        let problem = Problem::error(
            "spec.networking.kubenet",
            "kubenet does not work with private subnets",
        );
        problems.push(
            problem.hint(
                "its routes have room in one route table only; use flannel, or public subnets",
            ),
        );
    }
}
