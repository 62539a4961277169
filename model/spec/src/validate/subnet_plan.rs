//! All subnets together: their ranges, and what private ones need.

use ipnet::Ipv4Net;
use std::collections::BTreeMap;

use crate::api::SubnetType;
use crate::api::cluster::ClusterSpec;
use crate::read::{MOST, Problem};

use super::cidr::{free_hint, parse_range, ranges_overlap, vpc_range};
use super::subnets::uses_nat;

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_ranges(spec, problems);
    check_utility_subnets(spec, problems);
    one_way_out_per_zone(spec, problems);
}

fn check_ranges(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let homes: Vec<Ipv4Net> = spec
        .network_cidr
        .iter()
        .chain(&spec.additional_network_cidrs)
        .filter_map(|text| text.parse().ok())
        .collect();
    let all: Vec<Ipv4Net> = spec
        .subnets
        .iter()
        .filter_map(|subnet| subnet.cidr.as_ref()?.parse().ok())
        .collect();
    let mut before: Vec<(usize, Ipv4Net)> = Vec::new();
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let path = format!("spec.subnets[{index}].cidr");
        // An existing subnet has the size it has.
        let read = if subnet.id.is_some() {
            parse_range
        } else {
            vpc_range
        };
        let Some(net) = subnet
            .cidr
            .as_deref()
            .and_then(|text| read(&path, text, problems))
        else {
            continue;
        };
        // Looking for room takes long where there are very many: nobody reads that many hints.
        let hint = || {
            if index < MOST {
                free_hint(&homes, &all, net.prefix_len())
            } else {
                "give it a range of its own".to_owned()
            }
        };
        if spec.network_cidr.is_some()
            && !homes.is_empty()
            && !homes.iter().any(|home| home.contains(&net))
        {
            let names = homes
                .iter()
                .map(Ipv4Net::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            problems.push(
                Problem::error(&path, format!("{net} is not inside the VPC's {names}"))
                    .hint(hint()),
            );
        } else if let Some((other, taken)) =
            before.iter().find(|(_, taken)| ranges_overlap(*taken, net))
        {
            let name = spec
                .subnets
                .get(*other)
                .map_or("", |other| other.name.as_str());
            problems.push(
                Problem::error(&path, format!("{net} overlaps subnet {name} ({taken})"))
                    .hint(hint()),
            );
        }
        before.push((index, net));
    }
}

/// A private subnet of ours reaches the internet through a NAT gateway, which stands in a utility
/// subnet of the same zone.
fn check_utility_subnets(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let private = subnet.subnet_type().is_private();
        let leaves_by_nat =
            subnet.egress.as_deref().unwrap_or_default().is_empty() && subnet.id.is_none();
        if !private || !leaves_by_nat || subnet.zone.is_empty() {
            continue;
        }
        let has_utility = spec
            .subnets
            .iter()
            .any(|other| other.subnet_type() == SubnetType::Utility && other.zone == subnet.zone);
        if !has_utility {
            let message = format!(
                "private subnet {} has no utility subnet in {} for its NAT gateway",
                subnet.name, subnet.zone
            );
            let hint = format!(
                "add a subnet utility-{} of type Utility in that zone, or give this one an egress",
                subnet.zone
            );
            problems.push(Problem::error(format!("spec.subnets[{index}]"), message).hint(hint));
        }
    }
}

/// Private subnets of one zone share a route table and the way out.
fn one_way_out_per_zone(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let mut by_zone: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let egress = subnet.egress.as_deref().filter(|egress| !egress.is_empty());
        let (field, said) = match (egress, subnet.public_ip.as_deref()) {
            (Some(egress), _) => ("egress", egress),
            (None, Some(address)) => ("publicIP", address),
            (None, None) => continue,
        };
        let private = uses_nat(subnet, spec);
        if !private || subnet.id.is_some() || said == "External" {
            continue;
        }
        let (name, first) = *by_zone.entry(&subnet.zone).or_insert((&subnet.name, said));
        if first != said {
            let message = format!(
                "{} and {name} are in {}, whose private subnets have one way out: {first}",
                subnet.name, subnet.zone
            );
            problems.push(
                Problem::error(format!("spec.subnets[{index}].{field}"), message)
                    .hint("give both the same one"),
            );
        }
    }
}
