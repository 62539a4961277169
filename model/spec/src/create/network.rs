//! VPC, zones and subnets of a new cluster.

use super::options::{CreateOptions, Topology};
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::topology::{BastionSpec, DNSSpec, TopologySpec};
use crate::api::{DnsType, SubnetType};
use crate::cidr::ranges_overlap;
use crate::expand::{DEFAULT_NETWORK, plan_subnet_ranges};
use crate::read::Problem;
use cloud::SubnetIpv6Range;
use cloud::facts::Facts;
use ipnet::Ipv6Net;
use node::names::dns;
use std::collections::BTreeMap;

/// Names of the subnets of each zone, the zone's main one first.
pub(super) type SubnetsByZone = BTreeMap<String, Vec<String>>;

/// VPC and subnets: one per zone, named as the zone, and one per further range of the VPC, named
/// `ZONE-N`, going round the zones.
pub(super) fn plan_vpc(
    options: &CreateOptions,
    facts: &Facts,
    spec: &mut ClusterSpec,
    problems: &mut Vec<Problem>,
) -> SubnetsByZone {
    spec.network_id = options.network_id.clone().or_else(|| {
        let first = facts.subnets.get(options.subnets.first()?)?;
        Some(first.vpc.clone())
    });
    if let Some((first, more)) = options.network_cidrs.split_first() {
        spec.network_cidr = Some(first.clone());
        spec.additional_network_cidrs = more.to_vec();
    } else {
        spec.network_cidr = Some(default_range(spec.network_id.as_deref(), facts, problems));
    }
    let shared = shared_subnets(
        &options.subnets,
        "--subnets",
        options,
        facts,
        spec,
        problems,
    );
    let mut placed = SubnetsByZone::new();
    let mut add = |name: String, zone: &str, cidr: Option<String>, id: Option<String>| {
        placed
            .entry(zone.to_owned())
            .or_default()
            .push(name.clone());
        spec.subnets.push(ClusterSubnetSpec {
            name,
            zone: zone.to_owned(),
            cidr,
            id,
            egress: options.egress.clone(),
            ..ClusterSubnetSpec::default()
        });
    };
    for zone in options.all_zones() {
        add(zone.to_owned(), zone, None, shared.get(zone).cloned());
    }
    let further = options.network_cidrs.iter().skip(1);
    for (index, (cidr, zone)) in further.zip(options.zones.iter().cycle()).enumerate() {
        add(
            format!("{zone}-{}", index + 1),
            zone,
            Some(cidr.clone()),
            None,
        );
    }
    placed
}

/// The range of the user's VPC, or the default one.
fn default_range(vpc: Option<&str>, facts: &Facts, problems: &mut Vec<Problem>) -> String {
    match vpc.map(|id| (id, facts.vpcs.get(id))) {
        Some((_, Some(vpc))) => vpc.cidr.clone(),
        Some((id, None)) if !facts.stand_in => {
            let message = format!("{id} is not in this account and region");
            let hint = "name a VPC of the zones' region";
            problems.push(Problem::error("--network-id", message).hint(hint));
            DEFAULT_NETWORK.to_owned()
        }
        _ => DEFAULT_NETWORK.to_owned(),
    }
}

/// The user's subnets by zone. Those that nobody could look up take the zones in order.
fn shared_subnets(
    ids: &[String],
    flag: &str,
    options: &CreateOptions,
    facts: &Facts,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, String> {
    let mut by_zone = BTreeMap::new();
    let mut zones = options.all_zones().into_iter();
    for id in ids {
        let known = facts.subnets.get(id);
        let zone = match known {
            Some(subnet) => Some(subnet.zone.as_str()),
            None if facts.stand_in => zones.next(),
            None => None,
        };
        let elsewhere = known.is_some_and(|subnet| {
            let vpc = spec.network_id.as_ref();
            vpc.is_some_and(|vpc| *vpc != subnet.vpc)
        });
        let message = match zone {
            None => format!("{id} is not in this account and region"),
            Some(_) if elsewhere => format!("{id} is in another VPC"),
            Some(zone) => match by_zone.insert(zone.to_owned(), id.clone()) {
                Some(other) => format!("{other} and {id} are both in {zone}"),
                None => continue,
            },
        };
        let hint = "name one subnet per zone, all of one VPC";
        problems.push(Problem::error(flag, message).hint(hint));
    }
    by_zone
}

/// Types of the subnets, utility subnets, DNS and the bastion's name.
pub(super) fn set_topology(
    options: &CreateOptions,
    facts: &Facts,
    spec: &mut ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let dns = options.dns.unwrap_or(match options.dns_zone {
        Some(_) => DnsType::Public,
        None => DnsType::None,
    });
    let private = options.topology == Topology::Private;
    spec.topology = Some(TopologySpec {
        dns: Some(DNSSpec { type_: Some(dns) }),
        bastion: (private && options.bastion && dns != DnsType::None).then(|| BastionSpec {
            bastion_public_name: Some(dns::bastion_name(&options.name)),
            ..BastionSpec::default()
        }),
        ..TopologySpec::default()
    });
    let kind = if private {
        SubnetType::Private
    } else {
        SubnetType::Public
    };
    for subnet in &mut spec.subnets {
        subnet.type_ = Some(kind);
    }
    if !private {
        return;
    }
    let ids = &options.utility_subnets;
    let shared = shared_subnets(ids, "--utility-subnets", options, facts, spec, problems);
    let dual_stack = |subnet: &ClusterSubnetSpec| ClusterSubnetSpec {
        name: dual_stack_name(&subnet.name),
        zone: subnet.zone.clone(),
        type_: Some(SubnetType::DualStack),
        egress: subnet.egress.clone(),
        ..ClusterSubnetSpec::default()
    };
    let utility = |subnet: &ClusterSubnetSpec| ClusterSubnetSpec {
        name: format!("utility-{}", subnet.name),
        zone: subnet.zone.clone(),
        type_: Some(SubnetType::Utility),
        id: shared.get(&subnet.zone).cloned(),
        ..ClusterSubnetSpec::default()
    };
    let private = spec.subnets.iter().filter(|_| options.ipv6);
    let dual_stacks: Vec<_> = private.map(dual_stack).collect();
    let utilities: Vec<_> = spec.subnets.iter().map(utility).collect();
    spec.subnets.extend(dual_stacks);
    spec.subnets.extend(utilities);
}

/// The name of the subnet with IPv4 and IPv6 beside a private one with IPv6 alone.
pub(super) fn dual_stack_name(private: &str) -> String {
    format!("dualstack-{private}")
}

/// Makes it an IPv6 cluster: each subnet gets the next /64 of the VPC's range that no subnet has, in the order of the spec.
pub(super) fn set_ipv6(options: &CreateOptions, facts: &Facts, spec: &mut ClusterSpec) {
    if !options.ipv6 {
        return;
    }
    spec.non_masquerade_cidr = Some("::/0".to_owned());
    spec.cloud_controller_manager.get_or_insert_default();
    let vpc = spec.network_id.as_ref().and_then(|id| facts.vpcs.get(id));
    let whole: Option<Ipv6Net> = vpc.and_then(|vpc| vpc.ipv6_cidrs.first()?.parse().ok());
    let taken = vpc.iter().flat_map(|vpc| &vpc.subnets);
    let taken: Vec<Ipv6Net> = taken
        .filter_map(|one| one.ipv6_cidr.as_ref()?.parse().ok())
        .collect();
    let is_free = |part: &SubnetIpv6Range| {
        let range = whole.and_then(|whole| part.within(whole));
        range.is_none_or(|own| !taken.iter().any(|one| ranges_overlap(*one, own)))
    };
    let parts = (0..).map(|number| SubnetIpv6Range::Part {
        prefix_len: 64,
        number,
    });
    for (subnet, part) in spec.subnets.iter_mut().zip(parts.filter(is_free)) {
        subnet.ipv6_cidr = Some(part.to_string());
    }
}

/// Ranges: of the user's subnets as AWS says, of the others by kOps' arithmetic.
pub(super) fn assign_ranges(spec: &mut ClusterSpec, facts: &Facts, problems: &mut Vec<Problem>) {
    for subnet in &mut spec.subnets {
        let known = subnet.id.as_ref().and_then(|id| facts.subnets.get(id));
        if let Some(known) = known {
            subnet.cidr.clone_from(&known.cidr);
        }
    }
    let mut refuse = |message: String| {
        let hint = "name a larger range, such as 172.20.0.0/16";
        problems.push(Problem::error("--network-cidr", message).hint(hint));
    };
    let text = spec.network_cidr.clone().unwrap_or_default();
    let Ok(network) = text.parse() else {
        let problem = Problem::error("--network-cidr", format!("{text:?} is not an IPv4 range"));
        problems.push(problem.hint("write address and prefix length, for example 10.0.0.0/16"));
        return;
    };
    match plan_subnet_ranges(network, &spec.subnets) {
        Ok(ranges) => {
            for (subnet, range) in spec.subnets.iter_mut().zip(ranges) {
                subnet.cidr = subnet.cidr.take().or(range.map(|range| range.to_string()));
            }
        }
        Err(error) => refuse(error.to_string()),
    }
}
