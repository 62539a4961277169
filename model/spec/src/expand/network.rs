//! VPC and subnets: ranges, zones and types.

use super::fill::fill;
use super::{Context, Findings};
use crate::api::SubnetType as Type;
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::cidr::{self, Share, SubnetRequest};
use cloud::facts::SharedSubnet;
use full::{Network, Subnet, SubnetType};
use ipnet::Ipv4Net;

/// The default range of VPCs, as in kOps.
pub(crate) const DEFAULT_NETWORK: &str = "172.20.0.0/16";

/// Placeholder for the allocation id of an Elastic IP if AWS was not queried.
pub const STAND_IN_ADDRESS: &str = "eipalloc-00000000000000000";

/// Fills in the VPC's range, and zone, type and range of each subnet.
pub(super) fn complete_network(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    fill_network_cidr(spec, context, findings);
    for index in 0..spec.subnets.len() {
        if let Some(subnet) = spec.subnets.get_mut(index) {
            let path = format!("spec.subnets[{index}]");
            fill_from_shared(subnet, &path, context, findings);
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
    fill(&mut subnet.cidr, real.cidr.as_str());
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
    if let Some(cidr) = subnet.cidr.as_ref().filter(|cidr| **cidr != real.cidr) {
        let message = format!("{id} has the range {}, not {cidr}", real.cidr);
        findings.add_error(format!("{path}.cidr"), message, hint);
    }
    if !subnet.zone.is_empty() && subnet.zone != real.zone {
        let message = format!("{id} is in {}, not in {}", real.zone, subnet.zone);
        findings.add_error(format!("{path}.zone"), message, hint);
    }
}

/// Assigns ranges to the subnets that have none.
fn assign_ranges(spec: &mut ClusterSpec, findings: &mut Findings) {
    if spec.subnets.iter().all(|subnet| subnet.cidr.is_some()) {
        return;
    }
    let Some(network) = parse_range(spec.network_cidr.as_deref(), "spec.networkCIDR", findings)
    else {
        return;
    };
    match plan_subnet_ranges(network, &spec.subnets) {
        Ok(ranges) => {
            for (subnet, range) in spec.subnets.iter_mut().zip(ranges) {
                fill(&mut subnet.cidr, range.to_string());
            }
        }
        Err(error) => findings.add_error(
            "spec.subnets",
            error.to_string(),
            "set spec.subnets[].cidr, or a larger spec.networkCIDR",
        ),
    }
}

/// The range of each subnet, in order.
pub(crate) fn plan_subnet_ranges(
    network: Ipv4Net,
    subnets: &[ClusterSubnetSpec],
) -> Result<Vec<Ipv4Net>, cidr::NoRoom> {
    let wanted: Vec<SubnetRequest> = subnets
        .iter()
        .map(|subnet| SubnetRequest {
            zone: &subnet.zone,
            share: match subnet.type_ {
                Some(Type::Utility) => Share::Little,
                _ => Share::Big,
            },
            preset: subnet.cidr.as_deref().and_then(|cidr| cidr.parse().ok()),
        })
        .collect();
    cidr::assign_ranges(network, &wanted)
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
        subnets.extend(full_subnet(subnet, index, context, findings));
    }
    let vpc = spec.network_id.as_ref();
    Some(Network {
        shared_vpc: vpc.cloned(),
        shared_internet_gateway: vpc
            .and_then(|id| context.facts.vpcs.get(id))
            .and_then(|vpc| vpc.internet_gateway.clone()),
        cidr: cidr?,
        additional_cidrs,
        subnets,
        disable_subnet_tags: spec.disable_subnet_tags == Some(true),
    })
}

fn full_subnet(
    subnet: &ClusterSubnetSpec,
    index: usize,
    context: &Context,
    findings: &mut Findings,
) -> Option<Subnet> {
    let cidr = parse_range(
        subnet.cidr.as_deref(),
        &format!("spec.subnets[{index}].cidr"),
        findings,
    )?;
    let routes = subnet.additional_routes.iter();
    Some(Subnet {
        name: subnet.name.clone(),
        zone: subnet.zone.clone(),
        cidr,
        kind: match subnet.type_? {
            Type::Public => SubnetType::Public,
            Type::Private | Type::DualStack => SubnetType::Private,
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
