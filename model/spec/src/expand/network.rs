//! VPC and subnets: ranges, zones and types.

use super::fill::fill;
use super::{Context, Findings};
use crate::api::SubnetType as Type;
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::cidr::{self, Share, SubnetRequest};
use cloud::SubnetIpv6Range;
use cloud::facts::{SharedSubnet, SharedVpc};
use full::{Network, Subnet, SubnetType};
use ipnet::{Ipv4Net, Ipv6Net};

/// The default range of VPCs, as in kOps.
pub(crate) const DEFAULT_NETWORK: &str = "172.20.0.0/16";

/// Placeholder for the allocation id of an Elastic IP if AWS was not queried.
pub const STAND_IN_ADDRESS: &str = "eipalloc-00000000000000000";

/// Fills in the VPC's range, and zone, type and range of each subnet.
pub(super) fn complete_network(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    fill_network_cidr(spec, context, findings);
    let ipv6 = spec.is_ipv6();
    for index in 0..spec.subnets.len() {
        if let Some(subnet) = spec.subnets.get_mut(index) {
            let path = format!("spec.subnets[{index}]");
            fill_from_shared(subnet, &path, ipv6, context, findings);
            fill(&mut subnet.type_, Type::Public);
            if subnet.zone.is_empty() && subnet.id.is_none() {
                findings.add_error(format!("{path}.zone"), "a subnet needs a zone", "set it");
            }
        }
    }
    if spec.subnets.is_empty() {
        findings.add_error(
            "spec.subnets",
            "a cluster needs a subnet",
            "add one per zone",
        );
    }
    assign_ranges(spec, findings);
}

fn fill_network_cidr(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    let Some(id) = &spec.network_id else {
        fill(&mut spec.network_cidr, DEFAULT_NETWORK);
        return;
    };
    match context.facts.vpcs.get(id) {
        Some(vpc) => fill(&mut spec.network_cidr, vpc.cidr.as_str()),
        None if context.facts.stand_in => fill(&mut spec.network_cidr, DEFAULT_NETWORK),
        None => findings.add_error(
            "spec.networkID",
            format!("{id} is not in this account and region"),
            "name a VPC of the cluster's region",
        ),
    }
}

/// Fills in range and zone of an existing subnet from AWS. Values in the spec must agree.
fn fill_from_shared(
    subnet: &mut ClusterSubnetSpec,
    path: &str,
    ipv6: bool,
    context: &Context,
    findings: &mut Findings,
) {
    let Some(id) = subnet.id.clone() else { return };
    let Some(real) = context.facts.subnets.get(&id) else {
        if !context.facts.stand_in {
            findings.add_error(
                format!("{path}.id"),
                format!("{id} is not in this account and region"),
                "name a subnet of the cluster's VPC",
            );
        }
        return;
    };
    check_shared(subnet, &id, real, path, findings);
    if ipv6 && real.cidr.is_none() && !real.dns64 {
        let message = format!(
            "{id} has IPv6 alone and no DNS64: instances would not reach what has IPv4 addresses only, such as S3"
        );
        let hint = format!(
            "aws ec2 modify-subnet-attribute --subnet-id {id} --enable-dns64, and route 64:ff9b::/96 to a NAT gateway"
        );
        findings.add_error(format!("{path}.id"), message, &hint);
    }
    if let Some(cidr) = &real.cidr {
        fill(&mut subnet.cidr, cidr.as_str());
    }
    if subnet.zone.is_empty() {
        subnet.zone.clone_from(&real.zone);
    }
}

fn check_shared(
    subnet: &ClusterSubnetSpec,
    id: &str,
    real: &SharedSubnet,
    path: &str,
    findings: &mut Findings,
) {
    let hint = "correct it, or leave it out";
    let ranges = [
        ("cidr", &subnet.cidr, &real.cidr),
        ("ipv6CIDR", &subnet.ipv6_cidr, &real.ipv6_cidr),
    ];
    for (field, said, real) in ranges {
        if let Some(said) = said.as_ref().filter(|said| Some(*said) != real.as_ref()) {
            let real = real.as_deref().unwrap_or("none");
            let message = format!("{id} has the range {real}, not {said}");
            findings.add_error(format!("{path}.{field}"), message, hint);
        }
    }
    if !subnet.zone.is_empty() && subnet.zone != real.zone {
        let message = format!("{id} is in {}, not in {}", real.zone, subnet.zone);
        findings.add_error(format!("{path}.zone"), message, hint);
    }
}

/// Assigns ranges to the subnets that have none.
fn assign_ranges(spec: &mut ClusterSpec, findings: &mut Findings) {
    let done = |subnet: &ClusterSubnetSpec| subnet.cidr.is_some() || is_ipv6_only(subnet);
    if spec.subnets.iter().all(done) {
        return;
    }
    let Some(network) = parse_range(spec.network_cidr.as_deref(), "spec.networkCIDR", findings)
    else {
        return;
    };
    match plan_subnet_ranges(network, &spec.subnets) {
        Ok(ranges) => {
            for (subnet, range) in spec.subnets.iter_mut().zip(ranges) {
                subnet.cidr = subnet.cidr.take().or(range.map(|range| range.to_string()));
            }
        }
        Err(error) => findings.add_error(
            "spec.subnets",
            error.to_string(),
            "set spec.subnets[].cidr, or a larger spec.networkCIDR",
        ),
    }
}

/// True for private subnets with an IPv6 range and no IPv4 range: kOps gives them none.
pub(super) fn is_ipv6_only(subnet: &ClusterSubnetSpec) -> bool {
    subnet.cidr.is_none() && subnet.ipv6_cidr.is_some() && subnet.type_ == Some(Type::Private)
}

/// The IPv4 range of each subnet, in order; `None`: IPv6 only.
pub(crate) fn plan_subnet_ranges(
    network: Ipv4Net,
    subnets: &[ClusterSubnetSpec],
) -> Result<Vec<Option<Ipv4Net>>, cidr::NoRoom> {
    let wanted: Vec<SubnetRequest> = subnets
        .iter()
        .filter(|subnet| !is_ipv6_only(subnet))
        .map(|subnet| SubnetRequest {
            zone: &subnet.zone,
            share: match subnet.type_ {
                Some(Type::Utility) => Share::Little,
                _ => Share::Big,
            },
            preset: subnet.cidr.as_deref().and_then(|cidr| cidr.parse().ok()),
        })
        .collect();
    let ipv6_only = subnets.len() - wanted.len();
    let mut ranges = cidr::assign_ranges(network, &wanted, ipv6_only)?.into_iter();
    let range = |subnet: &ClusterSubnetSpec| {
        if is_ipv6_only(subnet) {
            None
        } else {
            ranges.next()
        }
    };
    Ok(subnets.iter().map(range).collect())
}

/// Parses a range of the spec; an error is added to the findings if it is not one.
fn parse_range(text: Option<&str>, path: &str, findings: &mut Findings) -> Option<Ipv4Net> {
    let text = text?;
    let range = text.parse().ok();
    if range.is_none() {
        let message = format!("{text:?} is not an IPv4 range");
        findings.add_error(path, message, "write it as 172.20.0.0/16");
    }
    range
}

/// The network of a completed spec.
pub(super) fn full_network(
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<Network> {
    let cidr = parse_range(spec.network_cidr.as_deref(), "spec.networkCIDR", findings);
    let more = spec.additional_network_cidrs.iter().enumerate();
    let additional_cidrs = more
        .filter_map(|(index, text)| {
            let path = format!("spec.additionalNetworkCIDRs[{index}]");
            parse_range(Some(text), &path, findings)
        })
        .collect();
    let mut subnets = Vec::with_capacity(spec.subnets.len());
    for (index, subnet) in spec.subnets.iter().enumerate() {
        subnets.extend(full_subnet(spec, subnet, index, context, findings));
    }
    let vpc = spec.network_id.as_ref();
    Some(Network {
        shared_vpc: vpc.cloned(),
        shared_internet_gateway: vpc
            .and_then(|id| context.facts.vpcs.get(id))
            .and_then(|vpc| vpc.internet_gateway.clone()),
        shared_egress_only_internet_gateway: shared_egress_only_gateway(spec, context, findings),
        cidr: cidr?,
        additional_cidrs,
        subnets,
        disable_subnet_tags: spec.disable_subnet_tags == Some(true),
    })
}

/// The egress-only internet gateway of the user's VPC, if private subnets of ours need it.
fn shared_egress_only_gateway(
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<String> {
    let vpc = context.facts.vpcs.get(spec.network_id.as_ref()?)?;
    let needs = |subnet: &ClusterSubnetSpec| {
        let private = subnet.subnet_type().is_private();
        private && subnet.id.is_none() && subnet.egress.as_deref() != Some("External")
    };
    let gateway = vpc.egress_only_internet_gateway.clone();
    if gateway.is_none() && spec.is_ipv6() && spec.subnets.iter().any(needs) {
        findings.add_error(
            "spec.networkID",
            "the VPC has no egress-only internet gateway, through which private subnets reach the IPv6 internet",
            "create one in the VPC, or set egress: External and route the subnets yourself",
        );
    }
    gateway
}

/// The IPv6 range of a subnet. In a VPC of the user's, whose range is known, what it is a part of is computed here.
fn ipv6_range(
    subnet: &ClusterSubnetSpec,
    path: &str,
    vpc: Option<&SharedVpc>,
    findings: &mut Findings,
) -> Option<SubnetIpv6Range> {
    let path = format!("{path}.ipv6CIDR");
    let hint = "write a range of the VPC, or /64#0, /64#1, ... for parts of it";
    let range: SubnetIpv6Range = match subnet.ipv6_cidr.as_deref()?.parse() {
        Ok(range) => range,
        Err(message) => {
            findings.add_error(path, message, hint);
            return None;
        }
    };
    let Some(vpc) = vpc else { return Some(range) };
    let wholes = vpc.ipv6_cidrs.iter();
    let mut wholes = wholes.filter_map(|whole| whole.parse().ok());
    let found = wholes.find_map(|whole: Ipv6Net| match range {
        SubnetIpv6Range::Net(net) => whole.contains(&net).then_some(net),
        SubnetIpv6Range::Part { .. } => range.within(whole),
    });
    if found.is_none() {
        let wholes = match &vpc.ipv6_cidrs[..] {
            [] => "no IPv6 range".to_owned(),
            all => all.join(" and "),
        };
        let message = format!("{range} is not in the VPC, which has {wholes}");
        findings.add_error(path, message, hint);
    }
    found.map(SubnetIpv6Range::Net)
}

fn full_subnet(
    spec: &ClusterSpec,
    subnet: &ClusterSubnetSpec,
    index: usize,
    context: &Context,
    findings: &mut Findings,
) -> Option<Subnet> {
    let path = format!("spec.subnets[{index}]");
    let cidr = match &subnet.cidr {
        None if !is_ipv6_only(subnet) => return None,
        None if spec.is_ipv6() => None,
        None => {
            let hint = "set it: only private subnets of IPv6 clusters have IPv6 alone";
            findings.add_error(format!("{path}.cidr"), "an IPv4 range is needed here", hint);
            return None;
        }
        Some(text) => Some(parse_range(
            Some(text.as_str()),
            &format!("{path}.cidr"),
            findings,
        )?),
    };
    let vpc = spec.network_id.as_ref();
    let vpc = vpc.and_then(|id| context.facts.vpcs.get(id));
    let routes = subnet.additional_routes.iter();
    Some(Subnet {
        name: subnet.name.clone(),
        zone: subnet.zone.clone(),
        cidr,
        ipv6_cidr: ipv6_range(subnet, &path, vpc, findings),
        kind: match subnet.type_? {
            Type::Public => SubnetType::Public,
            Type::Private => SubnetType::Private,
            Type::DualStack => SubnetType::DualStack,
            Type::Utility => SubnetType::Utility,
        },
        shared: subnet.id.clone(),
        egress: egress_target(subnet, index, context, findings),
        additional_routes: routes
            .map(|route| (route.cidr.clone(), route.target.clone()))
            .collect(),
    })
}

/// The public address that the user chose for the cluster's NAT gateway. `egress` and existing subnets win over it.
pub(super) fn nat_address(subnet: &ClusterSubnetSpec) -> Option<&String> {
    let own = subnet.egress.as_deref().unwrap_or_default().is_empty() && subnet.id.is_none();
    subnet.public_ip.as_ref().filter(|_| own)
}

/// How instances in the subnet reach the internet: `egress`, or the allocation id of the user's public address.
fn egress_target(
    subnet: &ClusterSubnetSpec,
    index: usize,
    context: &Context,
    findings: &mut Findings,
) -> Option<String> {
    let Some(address) = nat_address(subnet) else {
        return subnet.egress.clone().filter(|egress| !egress.is_empty());
    };
    let allocation = context.facts.addresses.get(address);
    if allocation.is_none() && !context.facts.stand_in {
        findings.add_error(
            format!("spec.subnets[{index}].publicIP"),
            format!("{address} is not an Elastic IP of this account and region"),
            "use one that `aws ec2 describe-addresses` lists there, or remove publicIP to get a new one",
        );
        return None;
    }
    Some(
        allocation
            .map_or(STAND_IN_ADDRESS, String::as_str)
            .to_owned(),
    )
}
