//! What is in the way of a deletion that AWS refuses because something still uses the object.

use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{Filter, NetworkInterface};
use engine::{Class, Failure, Removed};

/// The outcome of a deletion. After a few refusals the failure names the network interfaces that `inside`
/// selects: most of what blocks goes away by itself, what stays is usually an instance or balancer of the user's.
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
        if !found.is_empty() {
            failure.message = format!("{} In the way: {}", failure.message, found.join(", "));
        }
    }
    Err(failure)
}

async fn describe_interfaces(world: &AwsWorld, inside: Filter) -> Result<Vec<String>, Failure> {
    let call = world.clients.ec2.describe_network_interfaces();
    let pages = call.filters(inside).into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    let found = found.classify_call("ec2:DescribeNetworkInterfaces")?;
    Ok(found.iter().map(interface_text).collect())
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
