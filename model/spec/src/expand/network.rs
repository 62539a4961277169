//! VPC and subnets: ranges, zones and types.

use super::fill::fill;
use super::{Found, Known};
use crate::api::SubnetType as Type;
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::cidr::{self, Share, Wanted};
use cloud::facts::SharedSubnet;
use full::{Network, Subnet, SubnetType};
use ipnet::Ipv4Net;

/// The range of VPCs whose spec names none, as kOps.
pub(crate) const DEFAULT_NETWORK: &str = "172.20.0.0/16";

/// The allocation id of an Elastic IP that nobody could look up.
pub const STAND_IN_ADDRESS: &str = "eipalloc-00000000000000000";

/// The VPC's range, and zone, type and range of each subnet.
pub(super) fn complete(spec: &mut ClusterSpec, known: &Known, found: &mut Found) {
    network_cidr(spec, known, found);
    for index in 0..spec.subnets.len() {
        if let Some(subnet) = spec.subnets.get_mut(index) {
            let path = format!("spec.subnets[{index}]");
            as_shared(subnet, &path, known, found);
            fill(&mut subnet.type_, Type::Public);
            if subnet.zone.is_empty() && subnet.id.is_none() {
                found.error(format!("{path}.zone"), "a subnet needs a zone", "set it");
            }
        }
    }
    if spec.subnets.is_empty() {
        found.error(
            "spec.subnets",
            "a cluster needs a subnet",
            "add one per zone",
        );
    }
    assign(spec, found);
}

fn network_cidr(spec: &mut ClusterSpec, known: &Known, found: &mut Found) {
    let Some(id) = &spec.network_id else {
        fill(&mut spec.network_cidr, DEFAULT_NETWORK);
        return;
    };
    match known.facts.vpcs.get(id) {
        Some(vpc) => fill(&mut spec.network_cidr, vpc.cidr.as_str()),
        None if known.facts.stand_in => fill(&mut spec.network_cidr, DEFAULT_NETWORK),
        None => found.error(
            "spec.networkID",
            format!("{id} is not in this account and region"),
            "name a VPC of the cluster's region",
        ),
    }
}

/// What AWS knows of a subnet of the user's goes into the spec, or must agree with it.
fn as_shared(subnet: &mut ClusterSubnetSpec, path: &str, known: &Known, found: &mut Found) {
    let Some(id) = subnet.id.clone() else { return };
    let Some(real) = known.facts.subnets.get(&id) else {
        if !known.facts.stand_in {
            found.error(
                format!("{path}.id"),
                format!("{id} is not in this account and region"),
                "name a subnet of the cluster's VPC",
            );
        }
        return;
    };
    agree(subnet, &id, real, path, found);
    fill(&mut subnet.cidr, real.cidr.as_str());
    if subnet.zone.is_empty() {
        subnet.zone.clone_from(&real.zone);
    }
}

fn agree(subnet: &ClusterSubnetSpec, id: &str, real: &SharedSubnet, path: &str, found: &mut Found) {
    let hint = "correct it, or leave it out";
    if let Some(cidr) = subnet.cidr.as_ref().filter(|cidr| **cidr != real.cidr) {
        let message = format!("{id} has the range {}, not {cidr}", real.cidr);
        found.error(format!("{path}.cidr"), message, hint);
    }
    if !subnet.zone.is_empty() && subnet.zone != real.zone {
        let message = format!("{id} is in {}, not in {}", real.zone, subnet.zone);
        found.error(format!("{path}.zone"), message, hint);
    }
}

/// Ranges of the subnets that have none.
fn assign(spec: &mut ClusterSpec, found: &mut Found) {
    if spec.subnets.iter().all(|subnet| subnet.cidr.is_some()) {
        return;
    }
    let Some(network) = range(spec.network_cidr.as_deref(), "spec.networkCIDR", found) else {
        return;
    };
    match with_ranges(network, &spec.subnets) {
        Ok(ranges) => {
            for (subnet, range) in spec.subnets.iter_mut().zip(ranges) {
                fill(&mut subnet.cidr, range.to_string());
            }
        }
        Err(error) => found.error(
            "spec.subnets",
            error.to_string(),
            "set spec.subnets[].cidr, or a larger spec.networkCIDR",
        ),
    }
}

/// The range of each subnet, in order.
pub(crate) fn with_ranges(
    network: Ipv4Net,
    subnets: &[ClusterSubnetSpec],
) -> Result<Vec<Ipv4Net>, cidr::NoRoom> {
    let wanted: Vec<Wanted> = subnets
        .iter()
        .map(|subnet| Wanted {
            zone: &subnet.zone,
            share: match subnet.type_ {
                Some(Type::Utility) => Share::Little,
                _ => Share::Big,
            },
            preset: subnet.cidr.as_deref().and_then(|cidr| cidr.parse().ok()),
        })
        .collect();
    cidr::assign(network, &wanted)
}

/// A range in a spec; a problem if it is none.
fn range(text: Option<&str>, path: &str, found: &mut Found) -> Option<Ipv4Net> {
    let text = text?;
    let range = text.parse().ok();
    if range.is_none() {
        let message = format!("{text:?} is not an IPv4 range");
        found.error(path, message, "write it as 172.20.0.0/16");
    }
    range
}

/// The network of a completed spec.
pub(super) fn full(spec: &ClusterSpec, known: &Known, found: &mut Found) -> Option<Network> {
    let cidr = range(spec.network_cidr.as_deref(), "spec.networkCIDR", found);
    let more = spec.additional_network_cidrs.iter().enumerate();
    let additional_cidrs = more
        .filter_map(|(index, text)| {
            let path = format!("spec.additionalNetworkCIDRs[{index}]");
            range(Some(text), &path, found)
        })
        .collect();
    let mut subnets = Vec::with_capacity(spec.subnets.len());
    for (index, subnet) in spec.subnets.iter().enumerate() {
        subnets.extend(full_subnet(subnet, index, known, found));
    }
    let vpc = spec.network_id.as_ref();
    Some(Network {
        shared_vpc: vpc.cloned(),
        shared_internet_gateway: vpc
            .and_then(|id| known.facts.vpcs.get(id))
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
    known: &Known,
    found: &mut Found,
) -> Option<Subnet> {
    let cidr = range(
        subnet.cidr.as_deref(),
        &format!("spec.subnets[{index}].cidr"),
        found,
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
        egress: way_out(subnet, index, known, found),
        additional_routes: routes
            .map(|route| (route.cidr.clone(), route.target.clone()))
            .collect(),
    })
}

/// The public address of the user's that a NAT gateway of ours is to have: a way out that is there already wins.
pub(super) fn wanted_address(subnet: &ClusterSubnetSpec) -> Option<&String> {
    let own = subnet.egress.as_deref().unwrap_or_default().is_empty() && subnet.id.is_none();
    subnet.public_ip.as_ref().filter(|_| own)
}

/// How machines of the subnet reach the internet; an address of the user's as its allocation id.
fn way_out(
    subnet: &ClusterSubnetSpec,
    index: usize,
    known: &Known,
    found: &mut Found,
) -> Option<String> {
    let Some(address) = wanted_address(subnet) else {
        return subnet.egress.clone().filter(|egress| !egress.is_empty());
    };
    let allocation = known.facts.addresses.get(address);
    if allocation.is_none() && !known.facts.stand_in {
        found.error(
            format!("spec.subnets[{index}].publicIP"),
            format!("{address} is no Elastic IP of this account and region"),
            "name one that `aws ec2 describe-addresses` lists there, or leave publicIP out for a new one",
        );
        return None;
    }
    Some(
        allocation
            .map_or(STAND_IN_ADDRESS, String::as_str)
            .to_owned(),
    )
}
