//! Reads what decides about packets in a VPC, whoever made it: security group rules, network ACLs, route tables. And the free
//! addresses of subnets.

use crate::CloudClients;
use crate::fleet::instance_addresses;
use crate::kinds::ec2::filter;
use crate::kinds::security_group_rule;
use crate::names::Names;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{self as ec2, Filter, RouteState, RuleAction};
use cloud::reach::{AclEntry, NetworkAcl, NetworkState, ObservedRoute, ObservedRouteTable};
use cloud::{Cloud, SecurityGroupRule, Subnet};
use engine::{Failure, Ref, Snapshot};
use futures::try_join;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};

/// The most values that a filter of EC2 takes.
const VALUES: usize = 200;

/// The state of a VPC, in the logical names of what is the cluster's. `groups`: the ids of the security groups whose rules are asked for.
pub async fn network_state(
    clients: &CloudClients,
    vpc: &str,
    groups: &BTreeSet<String>,
    snapshot: &Snapshot<Cloud>,
) -> Result<NetworkState, Failure> {
    let names = Names::from_items(&snapshot.items);
    let (rules, acls, tables) = try_join!(
        Box::pin(fetch_rules(clients, groups)),
        Box::pin(fetch_acls(clients, vpc)),
        Box::pin(fetch_tables(clients, vpc)),
    )?;
    let rules = rules.iter().filter_map(|raw| {
        let seen = security_group_rule::observe_any(raw, &names)?;
        match seen.resource {
            Cloud::SecurityGroupRule(rule) => Some(rule),
            _ => None,
        }
    });
    Ok(NetworkState {
        rules: rules.collect::<Vec<SecurityGroupRule>>(),
        acls: acls
            .iter()
            .filter_map(|raw| read_acl(raw, &names))
            .collect(),
        route_tables: tables
            .iter()
            .filter_map(|raw| read_table(raw, &names))
            .collect(),
    })
}

async fn fetch_rules(
    clients: &CloudClients,
    groups: &BTreeSet<String>,
) -> Result<Vec<ec2::SecurityGroupRule>, Failure> {
    let mut found = Vec::new();
    let groups: Vec<String> = groups.iter().cloned().collect();
    for some in groups.chunks(VALUES) {
        let of_groups = Filter::builder().name("group-id");
        let of_groups = of_groups.set_values(Some(some.to_vec())).build();
        let call = clients.ec2.describe_security_group_rules();
        let pages = call.filters(of_groups).into_paginator().items().send();
        let rules: Result<Vec<_>, _> = pages.collect().await;
        found.extend(rules.classify_call("ec2:DescribeSecurityGroupRules")?);
    }
    Ok(found)
}

async fn fetch_acls(clients: &CloudClients, vpc: &str) -> Result<Vec<ec2::NetworkAcl>, Failure> {
    let call = clients.ec2.describe_network_acls();
    let pages = call.filters(filter("vpc-id", vpc)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeNetworkAcls")
}

async fn fetch_tables(clients: &CloudClients, vpc: &str) -> Result<Vec<ec2::RouteTable>, Failure> {
    let call = clients.ec2.describe_route_tables();
    let pages = call.filters(filter("vpc-id", vpc)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeRouteTables")
}

fn read_acl(raw: &ec2::NetworkAcl, names: &Names) -> Option<NetworkAcl> {
    let used = raw.associations().iter();
    let subnets = used.filter_map(|one| Some(subnet_ref(one.subnet_id()?, names)));
    Some(NetworkAcl {
        id: raw.network_acl_id()?.to_owned(),
        subnets: subnets.collect(),
        entries: raw.entries().iter().filter_map(read_entry).collect(),
    })
}

fn read_entry(raw: &ec2::NetworkAclEntry) -> Option<AclEntry> {
    let range = raw.cidr_block().or(raw.ipv6_cidr_block())?;
    let (from, to) = match (raw.port_range(), raw.icmp_type_code()) {
        (Some(ports), _) => (ports.from(), ports.to()),
        (None, Some(icmp)) => (icmp.r#type(), icmp.code()),
        (None, None) => (None, None),
    };
    Some(AclEntry {
        number: raw.rule_number()?,
        is_egress: raw.egress()?,
        is_allow: raw.rule_action() == Some(&RuleAction::Allow),
        protocol: raw.protocol()?.to_owned(),
        range: range.parse::<IpNet>().ok()?.trunc(),
        from,
        to,
    })
}

fn read_table(raw: &ec2::RouteTable, names: &Names) -> Option<ObservedRouteTable> {
    let used = raw.associations().iter();
    let subnets = used.filter_map(|one| Some(subnet_ref(one.subnet_id()?, names)));
    let mut used = raw.associations().iter();
    Some(ObservedRouteTable {
        id: raw.route_table_id()?.to_owned(),
        subnets: subnets.collect(),
        is_main: used.any(|one| one.main() == Some(true)),
        routes: raw.routes().iter().filter_map(read_route).collect(),
    })
}

fn read_route(raw: &ec2::Route) -> Option<ObservedRoute> {
    let destination = raw
        .destination_cidr_block()
        .or(raw.destination_ipv6_cidr_block())
        .or(raw.destination_prefix_list_id())?;
    // An instance has an interface too.
    let targets = [
        raw.gateway_id(),
        raw.nat_gateway_id(),
        raw.instance_id(),
        raw.network_interface_id(),
        raw.transit_gateway_id(),
        raw.vpc_peering_connection_id(),
        raw.egress_only_internet_gateway_id(),
        raw.local_gateway_id(),
        raw.carrier_gateway_id(),
        raw.core_network_arn(),
    ];
    let mut targets = targets.into_iter().flatten();
    Some(ObservedRoute {
        destination: destination.to_owned(),
        target: targets.next().unwrap_or("an unknown target").to_owned(),
        is_blackhole: raw.state() == Some(&RouteState::Blackhole),
    })
}

fn subnet_ref(id: &str, names: &Names) -> Ref {
    names.reference::<Subnet>(id)
}

/// The addresses of a subnet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubnetAddresses {
    /// Those that nobody has.
    pub free: u64,
    /// Those of the cluster's instances.
    pub own: u64,
}

/// The IPv4 addresses of these subnets, by id.
pub async fn subnet_addresses(
    clients: &CloudClients,
    cluster: &str,
    subnets: &BTreeSet<String>,
) -> Result<BTreeMap<String, SubnetAddresses>, Failure> {
    if subnets.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = subnets.iter().cloned().collect();
    let by_id = Filter::builder().name("subnet-id").set_values(Some(ids));
    let call = clients.ec2.describe_subnets().filters(by_id.build());
    let found = call.into_paginator().items().send();
    let found = found.collect::<Result<Vec<ec2::Subnet>, _>>();
    let own = Box::pin(instance_addresses(clients, cluster));
    let (found, own) = futures::join!(found, own);
    let own = own?;
    let found = found.classify_call("ec2:DescribeSubnets")?.into_iter();
    let read = |subnet: ec2::Subnet| {
        let free = subnet.available_ip_address_count?;
        let id = subnet.subnet_id?;
        let addresses = SubnetAddresses {
            free: u64::try_from(free).unwrap_or_default(),
            own: own.get(&id).copied().unwrap_or_default(),
        };
        Some((id, addresses))
    };
    Ok(found.filter_map(read).collect())
}
