//! The VPC, its address ranges, DHCP options, internet gateway and subnets. Nothing of a shared VPC is ours.

use crate::{FullSpec, SubnetType, tags};
use cloud::{
    Cloud, InternetGateway, Subnet, Tags, Vpc, VpcDhcpOptions, VpcDhcpOptionsAssociation,
    VpcIpv4CidrBlockAssociation,
};
use node::names;

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    let mut all: Vec<Cloud> = Vec::new();
    if full.network.shared_vpc.is_none() {
        all.push(vpc(full).into());
        all.extend(dhcp_options(full));
        all.extend(more_ranges(full));
        if super::routing::any_managed(full) {
            all.push(internet_gateway(full).into());
        }
    }
    let ours = full
        .network
        .subnets
        .iter()
        .filter(|one| one.shared.is_none());
    all.extend(ours.map(|one| Cloud::from(subnet(full, one))));
    all
}

fn vpc(full: &FullSpec) -> Vpc {
    Vpc {
        name: full.name.clone(),
        cidr_block: full.network.cidr.to_string(),
        amazon_provided_ipv6_cidr_block: true,
        enable_dns_hostnames: true,
        enable_dns_support: true,
        tags: tags(full, &full.name),
    }
}

fn dhcp_options(full: &FullSpec) -> [Cloud; 2] {
    // The first region is older than the rule.
    let domain_name = match full.placement.region.as_str() {
        "us-east-1" => "ec2.internal".to_owned(),
        region => format!("{region}.compute.internal"),
    };
    let options = VpcDhcpOptions {
        name: full.name.clone(),
        domain_name,
        domain_name_servers: vec!["AmazonProvidedDNS".into()],
        tags: tags(full, &full.name),
    };
    let association = VpcDhcpOptionsAssociation {
        name: full.name.clone(),
        vpc_id: super::vpc(full),
        dhcp_options_id: super::own::<VpcDhcpOptions>(&full.name),
    };
    [options.into(), association.into()]
}

fn more_ranges(full: &FullSpec) -> impl Iterator<Item = Cloud> {
    full.network.additional_cidrs.iter().map(|range| {
        Cloud::from(VpcIpv4CidrBlockAssociation {
            vpc_id: super::vpc(full),
            cidr_block: range.to_string(),
        })
    })
}

fn internet_gateway(full: &FullSpec) -> InternetGateway {
    InternetGateway {
        name: full.name.clone(),
        vpc_id: Some(super::vpc(full)),
        tags: tags(full, &full.name),
    }
}

fn subnet(full: &FullSpec, subnet: &crate::Subnet) -> Subnet {
    let name = names::subnet(&full.name, &subnet.name);
    Subnet {
        vpc_id: super::vpc(full),
        availability_zone: subnet.zone.clone(),
        cidr_block: subnet.cidr.to_string(),
        private_dns_hostname_type_on_launch: "resource-name".into(),
        enable_resource_name_dns_a_record_on_launch: true,
        tags: subnet_tags(full, subnet, &name),
        name,
    }
}

/// Tags by which load balancers find subnets: internal ones go into public subnets only where there are no private ones.
fn subnet_tags(full: &FullSpec, subnet: &crate::Subnet, name: &str) -> Tags {
    let mut tags = tags(full, name);
    tags.insert("SubnetType".into(), kind(subnet.kind).into());
    if full.network.disable_subnet_tags {
        return tags;
    }
    let private = |one: &crate::Subnet| one.kind == SubnetType::Private;
    let any_private = full.network.subnets.iter().any(private);
    if subnet.kind != SubnetType::Private {
        tags.insert("kubernetes.io/role/elb".into(), "1".into());
    }
    if private(subnet) || (subnet.kind == SubnetType::Public && !any_private) {
        tags.insert("kubernetes.io/role/internal-elb".into(), "1".into());
    }
    tags
}

fn kind(kind: SubnetType) -> &'static str {
    match kind {
        SubnetType::Public => "Public",
        SubnetType::Private => "Private",
        SubnetType::Utility => "Utility",
    }
}
