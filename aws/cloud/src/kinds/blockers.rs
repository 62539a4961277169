//! What is in the way of a deletion that AWS refuses because something still uses the object.

use super::ec2::{is_owned, read_tags};
use crate::network_interfaces::delete_interface;
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{Filter, NetworkInterface, NetworkInterfaceStatus};
use engine::{Class, Failure, Removed};

/// The outcome of a deletion. After a few refusals the failure names the network interfaces that `inside`
/// selects: most of what blocks goes away by itself, what stays is usually an instance or balancer of the user's. Those that a network
/// plugin made and whose instance ended before it could delete them are deleted.
pub(crate) async fn name_blockers(
    world: &AwsWorld,
    physical: &str,
    inside: Filter,
    done: Result<(), Failure>,
) -> Result<Removed, Failure> {
    let mut failure = match done {
        Ok(()) => return Ok(Removed::Done),
        Err(failure) => failure,
    };
    if failure.class == Class::Blocked && world.asks_who_blocks(physical) {
        let found = describe_interfaces(world, inside).await?;
        let (left, others): (Vec<_>, Vec<_>) = found.iter().partition(|one| is_left(world, one));
        for id in left.iter().filter_map(|one| one.network_interface_id()) {
            match delete_interface(&world.clients, id).await {
                Err(refused) if refused.class != Class::Gone => return Err(refused),
                _ => {}
            }
        }
        if !others.is_empty() {
            let texts: Vec<String> = others.into_iter().map(interface_text).collect();
            failure.message = format!("{} In the way: {}", failure.message, texts.join(", "));
        }
    }
    Err(failure)
}

/// True for an interface of the cluster that is attached to nothing.
fn is_left(world: &AwsWorld, interface: &NetworkInterface) -> bool {
    is_owned(world, &read_tags(interface.tag_set()))
        && interface.status() == Some(&NetworkInterfaceStatus::Available)
}

async fn describe_interfaces(
    world: &AwsWorld,
    inside: Filter,
) -> Result<Vec<NetworkInterface>, Failure> {
    let call = world.clients.ec2.describe_network_interfaces();
    let pages = call.filters(inside).into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    found.classify_call("ec2:DescribeNetworkInterfaces")
}

/// The interface, and what it belongs to.
pub(crate) fn interface_text(interface: &NetworkInterface) -> String {
    let id = interface
        .network_interface_id()
        .unwrap_or("a network interface");
    let instance = interface.attachment().and_then(|one| one.instance_id());
    let what = instance
        .or(interface.description().filter(|text| !text.is_empty()))
        .or(interface.requester_id());
    what.map_or_else(|| id.to_owned(), |what| format!("{id} of {what}"))
}
