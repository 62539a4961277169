//! The private addresses of load balancers: those of their network interfaces, one for each zone, with IPv6 two. Instances of the VPC
//! reach a balancer there whatever its name means outside, and security groups know them by their groups.

use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::Filter;
use aws_sdk_elasticloadbalancingv2::types::LoadBalancer;
use engine::Failure;
use std::collections::{BTreeMap, BTreeSet};

const DESCRIBE: &str = "ec2:DescribeNetworkInterfaces";

/// Private addresses by a balancer's ARN; one call for all.
pub(crate) async fn fetch(
    world: &AwsWorld,
    balancers: &[LoadBalancer],
) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let arns = balancers.iter().filter_map(|one| one.load_balancer_arn());
    let described: BTreeMap<String, &str> = arns
        .filter_map(|arn| Some((interface_description(arn)?, arn)))
        .collect();
    if described.is_empty() {
        return Ok(BTreeMap::new());
    }
    let call = world.clients.ec2.describe_network_interfaces();
    let by = Filter::builder().name("description");
    let by = by.set_values(Some(described.keys().cloned().collect()));
    let pages = call.filters(by.build()).into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for interface in found.classify_call(DESCRIBE)? {
        let arn = interface.description().and_then(|text| described.get(text));
        let ipv6 = interface.ipv6_addresses().iter();
        let ipv6 = ipv6.filter_map(|one| one.ipv6_address());
        let own = interface.private_ip_address().into_iter().chain(ipv6);
        if let Some(arn) = arn {
            let addresses = all.entry((*arn).to_owned()).or_default();
            addresses.extend(own.map(ToOwned::to_owned));
        }
    }
    Ok(all)
}

/// How AWS describes the network interfaces of a balancer: `ELB net/NAME/ID`.
fn interface_description(arn: &str) -> Option<String> {
    let (_, name) = arn.split_once(":loadbalancer/")?;
    Some(format!("ELB {name}"))
}

#[cfg(test)]
mod tests {
    use super::interface_description;

    #[test]
    fn interfaces_are_described_by_the_end_of_the_arn() {
        let arn = "arn:aws:elasticloadbalancing:eu-west-1:1:loadbalancer/net/api-x/5cf9";
        assert_eq!(interface_description(arn).unwrap(), "ELB net/api-x/5cf9");
    }
}
