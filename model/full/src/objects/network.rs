//! The VPC, its address ranges, DHCP options, internet gateways and subnets. For a shared VPC, only the subnets without an id are built.

use crate::{FullSpec, SubnetType, cluster_tags};
use cloud::{
    Cloud, EgressOnlyInternetGateway, InternetGateway, Subnet, Tags, Vpc, VpcDhcpOptions,
    VpcDhcpOptionsAssociation, VpcIpv4CidrBlockAssociation,
};
use node::names;

pub(super) fn build_network(full: &FullSpec) -> Vec<Cloud> {
    let mut all: Vec<Cloud> = Vec::new();
    if full.network.shared_vpc.is_none() {
        all.push(own_vpc(full).into());
        all.extend(dhcp_options(full));
        all.extend(additional_cidr_blocks(full));
        if super::routing::any_managed(full) {
            all.push(internet_gateway(full).into());
        }
        if full.is_ipv6() && super::routing::any_private_managed(full) {
            all.push(egress_only_internet_gateway(full).into());
        }
    }
    let own_subnets = full
        .network
        .subnets
        .iter()
        .filter(|one| one.shared.is_none());
    all.extend(own_subnets.map(|one| Cloud::from(own_subnet(full, one))));
    all
}

fn own_vpc(full: &FullSpec) -> Vpc {
    Vpc {
        name: full.name.clone(),
        cidr_block: full.network.cidr.to_string(),
        amazon_provided_ipv6_cidr_block: true,
        enable_dns_hostnames: true,
        enable_dns_support: true,
        tags: cluster_tags(full, &full.name),
    }
}

fn dhcp_options(full: &FullSpec) -> [Cloud; 2] {
    // us-east-1 has its own domain for historical reasons.
    let domain_name = match full.placement.region.as_str() {
        "us-east-1" => "ec2.internal".to_owned(),
        region => format!("{region}.compute.internal"),
    };
    let options = VpcDhcpOptions {
        name: full.name.clone(),
        domain_name,
        domain_name_servers: vec!["AmazonProvidedDNS".into()],
        tags: cluster_tags(full, &full.name),
    };
    let association = VpcDhcpOptionsAssociation {
        name: full.name.clone(),
        vpc_id: super::vpc_ref(full),
        dhcp_options_id: super::own_ref::<VpcDhcpOptions>(&full.name),
    };
    [options.into(), association.into()]
}

fn additional_cidr_blocks(full: &FullSpec) -> impl Iterator<Item = Cloud> {
    full.network.additional_cidrs.iter().map(|range| {
        Cloud::from(VpcIpv4CidrBlockAssociation {
            vpc_id: super::vpc_ref(full),
            cidr_block: range.to_string(),
        })
    })
}

fn internet_gateway(full: &FullSpec) -> InternetGateway {
    InternetGateway {
        name: full.name.clone(),
        vpc_id: Some(super::vpc_ref(full)),
        tags: cluster_tags(full, &full.name),
    }
}

fn egress_only_internet_gateway(full: &FullSpec) -> EgressOnlyInternetGateway {
    EgressOnlyInternetGateway {
        name: full.name.clone(),
        vpc_id: super::vpc_ref(full),
        tags: cluster_tags(full, &full.name),
    }
}

/// Instances in a subnet without IPv4 reach IPv4 addresses through the NAT gateway, at the addresses that DNS64 makes of them.
fn own_subnet(full: &FullSpec, subnet: &crate::Subnet) -> Subnet {
    let name = names::subnet_name(&full.name, &subnet.name);
    let ipv6 = subnet.ipv6_cidr.is_some();
    Subnet {
        vpc_id: super::vpc_ref(full),
        availability_zone: subnet.zone.clone(),
        cidr_block: subnet.cidr.map(|range| range.to_string()),
        ipv6_cidr_block: subnet.ipv6_cidr,
        assign_ipv6_address_on_creation: ipv6,
        enable_dns64: subnet.cidr.is_none(),
        private_dns_hostname_type_on_launch: "resource-name".into(),
        enable_resource_name_dns_a_record_on_launch: subnet.cidr.is_some(),
        enable_resource_name_dns_aaaa_record_on_launch: ipv6,
        tags: subnet_tags(full, subnet, &name),
        name,
    }
}

/// The tags of a subnet, with those by which controllers find subnets for load balancers. Internal load balancers use public
/// subnets only if there are no private ones, and of a zone's private subnets those with IPv4 if there are such.
fn subnet_tags(full: &FullSpec, subnet: &crate::Subnet, name: &str) -> Tags {
    let mut tags = cluster_tags(full, name);
    tags.insert("SubnetType".into(), subnet_type_name(subnet.kind).into());
    if full.network.disable_subnet_tags {
        return tags;
    }
    let mut all = full.network.subnets.iter();
    let internal = match subnet.kind {
        SubnetType::DualStack => true,
        SubnetType::Private => {
            !all.any(|one| one.kind == SubnetType::DualStack && one.zone == subnet.zone)
        }
        SubnetType::Public => !all.any(|one| one.kind.is_private()),
        SubnetType::Utility => false,
    };
    if !subnet.kind.is_private() {
        tags.insert("kubernetes.io/role/elb".into(), "1".into());
    }
    if internal {
        tags.insert("kubernetes.io/role/internal-elb".into(), "1".into());
    }
    tags
}

fn subnet_type_name(kind: SubnetType) -> &'static str {
    match kind {
        SubnetType::Public => "Public",
        SubnetType::Private => "Private",
        SubnetType::DualStack => "DualStack",
        SubnetType::Utility => "Utility",
    }
}
