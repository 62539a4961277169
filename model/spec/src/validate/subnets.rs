//! Each subnet by itself: name, zone, range, ids.

use crate::api::SubnetType;
use crate::api::cluster::ClusterSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::read::Problem;
use ipnet::IpNet;

use super::cidr::parse_range;
use super::text::{check_unique, is_dns_label, is_id};

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if spec.subnets.is_empty() {
        let problem = Problem::error("spec.subnets", "the cluster has no subnets");
        return problems.push(problem.hint("add one per zone, each with name, type and zone"));
    }
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let path = format!("spec.subnets[{index}]");
        check_name_and_ids(&path, subnet, problems);
        check_existing(&path, subnet, spec, problems);
        check_egress(&path, subnet, spec, problems);
        check_routes(&path, subnet, problems);
    }
    let checks_name = spec
        .subnets
        .iter()
        .enumerate()
        .filter(|(_, subnet)| !subnet.name.is_empty());
    check_unique(
        checks_name
            .map(|(index, subnet)| (format!("spec.subnets[{index}].name"), subnet.name.as_str())),
        problems,
    );
    check_regions(spec, problems);
}

fn check_name_and_ids(path: &str, subnet: &ClusterSubnetSpec, problems: &mut Vec<Problem>) {
    if subnet.name.is_empty() {
        problems.push(
            Problem::error(format!("{path}.name"), "the subnet has no name")
                .hint("name it after its zone"),
        );
    } else if !is_dns_label(&subnet.name) {
        let message = format!("\"{}\" is not a name of a subnet", subnet.name);
        problems.push(
            Problem::error(format!("{path}.name"), message)
                .hint("use lowercase letters, digits and dashes"),
        );
    }
    if subnet.zone.is_empty() && subnet.id.is_none() {
        problems.push(
            Problem::error(format!("{path}.zone"), "the subnet has no zone")
                .hint("add \"zone: ...\", such as eu-west-1a"),
        );
    }
    if !subnet.zone.is_empty() && region_of(&subnet.zone).is_none() {
        let message = format!("\"{}\" is not an availability zone", subnet.zone);
        problems.push(
            Problem::error(format!("{path}.zone"), message)
                .hint("write a region and a letter, such as eu-west-1a"),
        );
    }
}

/// `us-east-1` of `us-east-1a` and of the local zone `us-east-1-bos-1a`.
pub fn region_of(zone: &str) -> Option<&str> {
    let mut end = 0;
    for part in zone.split('-') {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            let local = part.len() == digits;
            // The zone's own letter, or the rest of a local zone.
            return (end > 0 && zone.len() > end + digits && (local || part.len() == digits + 1))
                .then(|| zone.get(..end + digits))
                .flatten();
        }
        end += part.len() + 1;
    }
    None
}

fn check_regions(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let mut first: Option<(&str, &str)> = None;
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let Some(region) = region_of(&subnet.zone) else {
            continue;
        };
        match first {
            None => first = Some((region, &subnet.zone)),
            Some((expected, zone)) if expected != region => {
                let message = format!(
                    "{} is in {region}, but {zone} is in {expected}",
                    subnet.zone
                );
                let problem = Problem::error(format!("spec.subnets[{index}].zone"), message);
                problems.push(problem.hint("all zones of a cluster are in one region"));
            }
            Some(_) => {}
        }
    }
}

fn check_existing(
    path: &str,
    subnet: &ClusterSubnetSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let Some(id) = &subnet.id else { return };
    if !is_id("subnet", id) {
        let problem = Problem::error(
            format!("{path}.id"),
            format!("\"{id}\" is not the id of a subnet"),
        );
        problems.push(
            problem.hint(
                "write an id such as subnet-0123456789abcdef0, or leave it out to get one made",
            ),
        );
    }
    if spec.network_id.is_none() {
        let problem = Problem::error(
            format!("{path}.id"),
            "an existing subnet needs its existing VPC",
        );
        problems.push(problem.hint("add \"networkID: vpc-...\" to the spec"));
    }
}

/// True if the subnet has a NAT gateway, or another way to the IPv4 internet: private ones, and public ones with IPv6 in an IPv6
/// cluster.
pub(super) fn uses_nat(subnet: &ClusterSubnetSpec, spec: &ClusterSpec) -> bool {
    let public = subnet.subnet_type() == SubnetType::Public && subnet.ipv6_cidr.is_some();
    subnet.subnet_type().is_private() || (spec.is_ipv6() && public)
}

fn check_egress(
    path: &str,
    subnet: &ClusterSubnetSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let private = uses_nat(subnet, spec);
    if let Some(egress) = subnet.egress.as_deref().filter(|egress| !egress.is_empty()) {
        let known = ["nat", "eipalloc", "i", "tgw"]
            .iter()
            .any(|prefix| is_id(prefix, egress))
            || egress == "External";
        if !known {
            let problem = Problem::error(
                format!("{path}.egress"),
                format!("\"{egress}\" is no way out that kctl knows"),
            );
            problems.push(problem.hint("use nat-..., eipalloc-..., i-..., tgw-... or External"));
        }
        // As kOps: `External` says who routes, of a subnet of any type.
        if !private && egress != "External" {
            let problem = Problem::error(
                format!("{path}.egress"),
                "only private subnets have an egress",
            );
            problems.push(problem.hint("remove it: public subnets use the internet gateway"));
        }
    }
    if subnet.public_ip.is_some() && !private {
        let problem = Problem::error(
            format!("{path}.publicIP"),
            "only private subnets have a NAT gateway, whose address this is",
        );
        problems.push(problem.hint("remove it: public subnets use the internet gateway"));
    }
    if let Some(address) = subnet.public_ip.as_deref()
        && address.parse::<std::net::Ipv4Addr>().is_err()
    {
        let problem = Problem::error(
            format!("{path}.publicIP"),
            format!("\"{address}\" is not an IPv4 address"),
        );
        problems
            .push(problem.hint("write the address of an Elastic IP, or use egress: eipalloc-..."));
    }
}

fn check_routes(path: &str, subnet: &ClusterSubnetSpec, problems: &mut Vec<Problem>) {
    for (index, route) in subnet.additional_routes.iter().enumerate() {
        let path = format!("{path}.additionalRoutes[{index}]");
        let range_path = format!("{path}.cidr");
        match route.cidr.parse() {
            Ok(IpNet::V6(range)) if range.trunc().to_string() != route.cidr => {
                let message = format!("{} is not how AWS writes the range", route.cidr);
                let problem = Problem::error(range_path, message);
                problems.push(problem.hint(format!("did you mean {}?", range.trunc())));
            }
            Ok(IpNet::V6(_)) => {}
            _ => {
                if parse_range(&range_path, &route.cidr, problems).is_some()
                    && is_id("eigw", &route.target)
                {
                    let message = "an egress-only internet gateway is for IPv6 only";
                    let problem = Problem::error(format!("{path}.target"), message);
                    problems.push(problem.hint("use an IPv6 range such as ::/0 for cidr"));
                }
            }
        }
        let targets = ["pcx", "i", "nat", "tgw", "igw", "eigw"];
        if !targets.iter().any(|prefix| is_id(prefix, &route.target)) {
            let problem = Problem::error(
                format!("{path}.target"),
                format!("\"{}\" is no target of a route", route.target),
            );
            problems
                .push(problem.hint("use pcx-..., i-..., nat-..., tgw-..., igw-... or eigw-..."));
        }
    }
    if !subnet.additional_routes.is_empty() && subnet.subnet_type() != SubnetType::Private {
        let problem = Problem::error(
            format!("{path}.additionalRoutes"),
            "only private subnets have routes of their own",
        );
        problems.push(problem.hint("remove them: public subnets share one route table"));
    }
}

#[cfg(test)]
mod tests {
    use super::region_of;

    #[test]
    fn a_zone_names_its_region() {
        for (zone, region) in [
            ("us-test-1a", Some("us-test-1")),
            ("us-gov-west-1b", Some("us-gov-west-1")),
            ("us-west-2-lax-1a", Some("us-west-2")),
            ("ap-southeast-12c", Some("ap-southeast-12")),
            ("us-east-1", None),
            ("1a", None),
            ("nowhere", None),
            ("us-east-1ab", None),
        ] {
            assert_eq!(region_of(zone), region, "{zone}");
        }
    }
}
