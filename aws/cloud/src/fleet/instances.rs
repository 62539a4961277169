//! Reads instances as EC2 describes them.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{self as ec2, Filter};
use engine::Failure;
use fleet::{Instance, TemplateVersion};
use node::names::{DETACHED_TAG, INSTANCE_GROUP_TAG};
use std::collections::BTreeMap;

/// The most that AWS gives at once.
const PAGE: i32 = 1000;

/// Every state but `terminated`: EC2 describes what is gone for about an hour.
const STATES: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];

/// On instances that Auto Scaling launched.
const SCALING_GROUP_TAG: &str = "aws:autoscaling:groupName";
/// Where AWS notes what an instance was launched from.
const TEMPLATE_TAG: &str = "aws:ec2launchtemplate:id";
const VERSION_TAG: &str = "aws:ec2launchtemplate:version";

/// Addresses of a prefix that is delegated to an interface (EC2 User Guide, "Prefix delegation").
const OF_PREFIX: u64 = 16;

pub(super) async fn fetch(clients: &CloudClients, owned: &str) -> Result<Vec<Instance>, Failure> {
    let found = fetch_raw(clients, owned).await?;
    let instances = found.iter().flat_map(ec2::Reservation::instances);
    Ok(instances.filter_map(parse_instance).collect())
}

/// IPv4 addresses of the instances' interfaces by subnet.
pub(super) async fn count_addresses(
    clients: &CloudClients,
    owned: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    let found = fetch_raw(clients, owned).await?;
    let instances = found.iter().flat_map(ec2::Reservation::instances);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for interface in instances.flat_map(ec2::Instance::network_interfaces) {
        let Some(subnet) = interface.subnet_id() else {
            continue;
        };
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let single = count(interface.private_ip_addresses().len());
        let prefixes = count(interface.ipv4_prefixes().len());
        *counts.entry(subnet.to_owned()).or_default() += single + prefixes * OF_PREFIX;
    }
    Ok(counts)
}

async fn fetch_raw(clients: &CloudClients, owned: &str) -> Result<Vec<ec2::Reservation>, Failure> {
    let owned = Filter::builder()
        .name(format!("tag:{owned}"))
        .values("owned");
    let states = Filter::builder()
        .name("instance-state-name")
        .set_values(Some(STATES.map(ToOwned::to_owned).to_vec()));
    let call = clients.ec2.describe_instances();
    let call = call.filters(owned.build()).filters(states.build());
    let pages = call.into_paginator().page_size(PAGE).items().send();
    let found: Result<Vec<ec2::Reservation>, _> = pages.collect().await;
    found.classify_call("ec2:DescribeInstances")
}

fn parse_instance(raw: &ec2::Instance) -> Option<Instance> {
    let text = |value: Option<&str>| value.filter(|text| !text.is_empty()).map(str::to_owned);
    let tags: BTreeMap<&str, &str> = raw
        .tags()
        .iter()
        .filter_map(|tag| Some((tag.key()?, tag.value()?)))
        .collect();
    let tag = |key: &str| tags.get(key).map(|value| (*value).to_owned());
    let template = tag(TEMPLATE_TAG).zip(tag(VERSION_TAG));
    let reason = raw.state_reason().and_then(|reason| reason.message());
    Some(Instance {
        id: raw.instance_id()?.to_owned(),
        scaling_group: tag(SCALING_GROUP_TAG),
        instance_group: tag(INSTANCE_GROUP_TAG),
        zone: text(raw.placement().and_then(|one| one.availability_zone())).unwrap_or_default(),
        machine_type: raw
            .instance_type()
            .map(|kind| kind.as_str().to_owned())
            .unwrap_or_default(),
        image: text(raw.image_id()),
        state: raw.state()?.name()?.as_str().to_owned(),
        state_reason: text(reason),
        lifecycle: None,
        launched: raw.launch_time().map(aws_smithy_types::DateTime::secs),
        private_ip: text(raw.private_ip_address()),
        ipv6_address: text(raw.ipv6_address()),
        public_ip: text(raw.public_ip_address()),
        private_dns_name: text(raw.private_dns_name()),
        template: template.map(|(id, version)| TemplateVersion { id, version }),
        detached: tags.contains_key(DETACHED_TAG),
    })
}
