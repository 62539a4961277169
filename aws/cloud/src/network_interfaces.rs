//! Network interfaces of a cluster that goes: those that controllers left behind, and those of others that are in its way.

use crate::CloudClients;
use crate::fleet::instance_ids;
use crate::kinds::blockers::interface_text;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{Filter, NetworkInterface, NetworkInterfaceStatus};
use engine::Failure;
use futures::future::try_join_all;
use node::names::ownership_tag;
use std::collections::BTreeSet;

/// The most values that a filter of EC2 takes.
const VALUES: usize = 200;

/// The ids of network interfaces that have the cluster's tag and are attached to nothing: a network plugin made them for an
/// instance that is gone.
pub async fn left_interfaces(
    clients: &CloudClients,
    cluster: &str,
) -> Result<Vec<String>, Failure> {
    let tag = Filter::builder()
        .name(format!("tag:{}", ownership_tag(cluster)))
        .values("owned");
    let found = describe(clients, tag.build()).await?;
    let free = found
        .into_iter()
        .filter(|one| one.status() == Some(&NetworkInterfaceStatus::Available));
    let mut ids: Vec<String> = free.filter_map(|one| one.network_interface_id).collect();
    ids.sort();
    Ok(ids)
}

/// Deletes a network interface that is attached to nothing.
pub async fn delete_interface(clients: &CloudClients, id: &str) -> Result<(), Failure> {
    let call = clients.ec2.delete_network_interface();
    let deleted = call.network_interface_id(id).send().await;
    deleted
        .classify_call("ec2:DeleteNetworkInterface")
        .map(drop)
}

/// Network interfaces of others in the VPC, the subnets or the security groups that are to be deleted, each with what it belongs
/// to. AWS deletes none of these as long as an interface uses it. `going`: the ids, ARNs and names of everything that is deleted.
pub async fn foreign_interfaces(
    clients: &CloudClients,
    cluster: &str,
    going: &BTreeSet<String>,
) -> Result<Vec<String>, Failure> {
    let with_prefix = |prefix: &str| -> Vec<String> {
        let ids = going.iter().filter(|id| id.starts_with(prefix));
        ids.cloned().collect()
    };
    let vpcs = with_prefix("vpc-");
    let wanted = if vpcs.is_empty() {
        vec![
            ("subnet-id", with_prefix("subnet-")),
            ("group-id", with_prefix("sg-")),
        ]
    } else {
        vec![("vpc-id", vpcs)]
    };
    let filters = wanted.iter().flat_map(|(name, values)| {
        let chunks = values.chunks(VALUES);
        chunks.map(|some| {
            let filter = Filter::builder().name(*name);
            filter.set_values(Some(some.to_vec())).build()
        })
    });
    let found = try_join_all(filters.map(|filter| describe(clients, filter))).await?;
    let mut others: Vec<NetworkInterface> = found.into_iter().flatten().collect();
    others.retain(|one| !belongs_to(one, going));
    if others.iter().any(|one| instance_of(one).is_some()) {
        let own = Box::pin(instance_ids(clients, cluster)).await?;
        others.retain(|one| instance_of(one).is_none_or(|id| !own.contains(id)));
    }
    let texts: BTreeSet<String> = others.iter().map(interface_text).collect();
    Ok(texts.into_iter().collect())
}

async fn describe(
    clients: &CloudClients,
    filter: Filter,
) -> Result<Vec<NetworkInterface>, Failure> {
    let call = clients.ec2.describe_network_interfaces().filters(filter);
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    found.classify_call("ec2:DescribeNetworkInterfaces")
}

fn instance_of(interface: &NetworkInterface) -> Option<&str> {
    interface.attachment()?.instance_id()
}

/// True for an interface that goes with its owner: AWS names NAT gateway, endpoint or load balancer at the end of the description
/// (`Interface for NAT Gateway nat-1`, `VPC Endpoint Interface vpce-1`, `ELB net/NAME/1`, `ELB NAME`).
fn belongs_to(interface: &NetworkInterface, going: &BTreeSet<String>) -> bool {
    let description = interface.description().unwrap_or_default();
    let owner = description.rsplit(' ').next().unwrap_or_default();
    let end = format!(":loadbalancer/{owner}");
    let id = interface.network_interface_id();
    id.is_some_and(|id| going.contains(id))
        || going.contains(owner)
        || (description.starts_with("ELB ") && going.iter().any(|one| one.ends_with(&end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_what_is_deleted_are_told_from_others_by_their_description() {
        let going = [
            "nat-1",
            "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/api/5f",
            "classic",
            "eni-9",
        ];
        let going = going.map(str::to_owned).into();
        let belongs = |id: &str, description: &str| {
            let interface = NetworkInterface::builder().network_interface_id(id);
            belongs_to(&interface.description(description).build(), &going)
        };
        assert!(belongs("eni-1", "Interface for NAT Gateway nat-1"));
        assert!(belongs("eni-1", "ELB net/api/5f"));
        assert!(belongs("eni-1", "ELB classic"));
        assert!(belongs("eni-9", ""));
        for other in [
            "Interface for NAT Gateway nat-2",
            "ELB net/api/60",
            "ELB app",
            "",
        ] {
            assert!(!belongs("eni-1", other), "{other}");
        }
    }
}
