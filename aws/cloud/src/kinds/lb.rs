//! A network load balancer.

use super::controllers::{goes_with_cluster, name_in_plan};
use super::lb_tags::{self, retag, write_tags};
use super::nat_gateway::needs_internet_gateway;
use super::{
    Found, Have, Verbs, after_effect, created_ready, lb_addresses, not_ours, observed_item,
    physical, physical_ids, rfc3339_time,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent, require_answer};
use aws_sdk_elasticloadbalancingv2::types::{
    self as elb, LoadBalancerAttribute, LoadBalancerSchemeEnum, LoadBalancerTypeEnum,
};
use cloud::{AccessLogs, Cloud, Kind, Lb, SecurityGroup, Subnet, SubnetMapping, Tags};
use engine::{Attrs, Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use std::collections::{BTreeMap, BTreeSet};

const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancers";
const CREATE: &str = "elasticloadbalancing:CreateLoadBalancer";

/// What a new balancer is waited for.
const WAITS_FOR_ADDRESSES: &str = "the load balancer to get its addresses";

const CROSS_ZONE: &str = "load_balancing.cross_zone.enabled";
const LOGS: &str = "access_logs.s3.enabled";
const LOGS_BUCKET: &str = "access_logs.s3.bucket";
const LOGS_PREFIX: &str = "access_logs.s3.prefix";

/// A balancer with its attributes and tags.
pub(crate) struct Raw {
    pub(crate) balancer: elb::LoadBalancer,
    attributes: BTreeMap<String, String>,
    addresses: BTreeSet<String>,
    tags: Tags,
}

/// Every balancer that may be the cluster's by its name; every one if the cluster is deleted, because controllers name theirs otherwise.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<elb::LoadBalancer>, Failure> {
    let call = world.clients.elb.describe_load_balancers();
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<elb::LoadBalancer>, _> = pages.collect().await;
    let prefixes = &world.scope.balancer_prefixes;
    let mut found = found.classify_call(DESCRIBE)?;
    found.retain(|one| {
        let name = one.load_balancer_name().unwrap_or_default();
        world.scope.is_deletion() || prefixes.iter().any(|prefix| name.starts_with(prefix))
    });
    Ok(found)
}

/// Those that the cluster owns, with their attributes.
pub(crate) async fn read_owned_attributes(
    world: &AwsWorld,
    found: Vec<elb::LoadBalancer>,
    tags: &BTreeMap<String, Tags>,
) -> Result<Vec<Raw>, Failure> {
    let owned = |balancer: &elb::LoadBalancer| {
        let arn = balancer.load_balancer_arn()?;
        tags.get(arn)
            .filter(|tags| goes_with_cluster(world, tags))
            .cloned()
    };
    let (balancers, tags): (Vec<_>, Vec<_>) = found
        .into_iter()
        .filter_map(|balancer| Some((owned(&balancer)?, balancer)))
        .map(|(tags, balancer)| (balancer, tags))
        .unzip();
    let mut addresses = lb_addresses::fetch(world, &balancers).await?;
    let all = balancers.into_iter().zip(tags).map(|(balancer, tags)| {
        let arn = balancer.load_balancer_arn().unwrap_or_default();
        let addresses = addresses.remove(arn).unwrap_or_default();
        with_attributes(world, balancer, addresses, tags)
    });
    try_join_all(all).await
}

async fn with_attributes(
    world: &AwsWorld,
    balancer: elb::LoadBalancer,
    addresses: BTreeSet<String>,
    tags: Tags,
) -> Result<Raw, Failure> {
    let call = world.clients.elb.describe_load_balancer_attributes();
    let call = call.set_load_balancer_arn(balancer.load_balancer_arn.clone());
    let answer = call.send().await;
    let answer = answer.classify_call("elasticloadbalancing:DescribeLoadBalancerAttributes")?;
    let attributes = answer.attributes.unwrap_or_default().into_iter();
    Ok(Raw {
        balancer,
        attributes: attributes
            .filter_map(|one| Some((one.key?, one.value?)))
            .collect(),
        addresses,
        tags,
    })
}

pub(crate) fn observe(world: &AwsWorld, raw: &Raw, names: &Names) -> Option<Observed<Cloud>> {
    let balancer = &raw.balancer;
    let set = |key: &str| raw.attributes.get(key).filter(|value| !value.is_empty());
    let on = |key: &str| set(key).is_some_and(|value| value == "true");
    let logs = set(LOGS_BUCKET).filter(|_| on(LOGS));
    let groups = balancer.security_groups().iter().map(String::as_str);
    let lb = Lb {
        logical_name: name_in_plan(world, &raw.tags, balancer.load_balancer_name()?)?,
        name: balancer.load_balancer_name()?.to_owned(),
        lb_type: balancer.r#type()?.as_str().to_owned(),
        scheme: balancer.scheme()?.as_str().to_owned(),
        ip_address_type: balancer
            .ip_address_type()
            .map_or("ipv4", elb::IpAddressType::as_str)
            .to_owned(),
        security_groups: names.references::<SecurityGroup>(groups),
        subnet_mappings: subnet_mappings(balancer, names),
        cross_zone_enabled: on(CROSS_ZONE),
        access_logs: logs.map(|bucket| AccessLogs {
            bucket: bucket.clone(),
            prefix: set(LOGS_PREFIX).cloned(),
        }),
        tags: raw.tags.clone(),
    };
    Some(Observed {
        attrs: observed_attrs(balancer, &raw.addresses),
        created: rfc3339_time(balancer.created_time()),
        ..observed_item(lb, balancer.load_balancer_arn()?)
    })
}

fn subnet_mappings(balancer: &elb::LoadBalancer, names: &Names) -> Vec<SubnetMapping> {
    let one = |zone: &elb::AvailabilityZone| {
        let address = zone.load_balancer_addresses().first();
        let text = |value: Option<&str>| value.map(ToOwned::to_owned);
        Some(SubnetMapping {
            subnet_id: names.reference::<Subnet>(zone.subnet_id()?),
            allocation_id: text(address.and_then(|one| one.allocation_id())),
            private_ipv4_address: text(address.and_then(|one| one.private_ipv4_address())),
        })
    };
    let mut all: Vec<_> = balancer
        .availability_zones()
        .iter()
        .filter_map(one)
        .collect();
    all.sort();
    all
}

fn observed_attrs(balancer: &elb::LoadBalancer, addresses: &BTreeSet<String>) -> Attrs {
    let joined = addresses.iter().map(String::as_str).collect::<Vec<_>>();
    let joined = Some(joined.join(",")).filter(|joined| !joined.is_empty());
    let known = [
        ("arn", balancer.load_balancer_arn()),
        (
            "canonical_hosted_zone_id",
            balancer.canonical_hosted_zone_id(),
        ),
        ("dns_name", balancer.dns_name()),
        (cloud::used_load_balancers::ADDRESSES, joined.as_deref()),
    ];
    known
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
        .collect()
}

impl Verbs for Lb {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let call = world.clients.elb.describe_load_balancers();
        let answer = call.names(&want.name).send().await.classify_call(DESCRIBE);
        let found = none_if_absent(answer)?.and_then(|answer| answer.load_balancers);
        let found = found.unwrap_or_default();
        let arns: Vec<String> = found
            .iter()
            .filter_map(|one| one.load_balancer_arn.clone())
            .collect();
        let tags = lb_tags::fetch(&world.clients, &arns).await?;
        let taken = !found.is_empty();
        let raw = read_owned_attributes(world, found, &tags).await?;
        let names = Names::for_references(&want.refs(), refs);
        match raw.first() {
            None if taken => {
                let what = format!("the load balancer {}", want.name);
                Err(not_ours(world, DESCRIBE, &what))
            }
            raw => Ok(raw.and_then(|raw| observe(world, raw, &names))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let Some(have) = have else {
            let balancer = create(world, want, refs).await?;
            let arn = require_answer(balancer.load_balancer_arn.clone(), CREATE)?;
            // What AWS gives a new network load balancer.
            let fresh = Self {
                cross_zone_enabled: false,
                access_logs: None,
                ..want.clone()
            };
            after_effect(change_attributes(world, &arn, &fresh, want).await)?;
            return Ok(Put {
                attrs: observed_attrs(&balancer, &BTreeSet::new()),
                waiting_for: Some(WAITS_FOR_ADDRESSES.to_owned()),
                ..created_ready(arn)
            });
        };
        change(world, &have, want, refs).await?;
        change_attributes(world, have.physical, have.resource, want).await?;
        retag(world, have.physical, &have.resource.tags, &want.tags).await?;
        let moved = have.resource.subnet_mappings != want.subnet_mappings
            || have.resource.ip_address_type != want.ip_address_type;
        Ok(Put {
            waiting_for: moved.then(|| WAITS_FOR_ADDRESSES.to_owned()),
            ..created_ready(have.physical)
        })
    }

    /// Instances are given its private addresses, which it gets some time after it was made, or given a subnet: one of each family
    /// for each subnet.
    async fn ready(world: &AwsWorld, want: &Self, physical: &str) -> Result<Put, Failure> {
        let call = world.clients.elb.describe_load_balancers();
        let answer = call.load_balancer_arns(physical).send().await;
        let found = answer
            .classify_call(DESCRIBE)?
            .load_balancers
            .unwrap_or_default();
        let mut addresses = lb_addresses::fetch(world, &found).await?;
        let addresses = addresses.remove(physical).unwrap_or_default();
        let all = addresses.len() == want.subnet_mappings.len() * want.addresses_per_subnet();
        let attrs = found
            .first()
            .map(|balancer| observed_attrs(balancer, &addresses));
        Ok(Put {
            attrs: attrs.unwrap_or_default(),
            waiting_for: (!all).then(|| WAITS_FOR_ADDRESSES.to_owned()),
            ..created_ready(physical)
        })
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.elb.delete_load_balancer();
        let call = call.load_balancer_arn(have.physical).send();
        call.await
            .classify_call("elasticloadbalancing:DeleteLoadBalancer")?;
        Ok(Removed::Done)
    }
}

async fn create(world: &AwsWorld, want: &Lb, refs: &Refs) -> Result<elb::LoadBalancer, Failure> {
    let scheme = LoadBalancerSchemeEnum::from(want.scheme.as_str());
    if scheme == LoadBalancerSchemeEnum::InternetFacing {
        needs_internet_gateway(world, refs, CREATE)?;
    }
    let groups = physical_ids(refs, &want.security_groups, CREATE)?;
    let call = world
        .clients
        .elb
        .create_load_balancer()
        .name(&want.name)
        .r#type(LoadBalancerTypeEnum::from(want.lb_type.as_str()))
        .scheme(scheme)
        .ip_address_type(elb::IpAddressType::from(want.ip_address_type.as_str()))
        .set_security_groups(Some(groups))
        .set_subnet_mappings(Some(write_mappings(want, refs)?))
        .set_tags(Some(write_tags(&want.tags)));
    let made = call.send().await.classify_creation(CREATE)?.load_balancers;
    require_answer(made.and_then(|all| all.into_iter().next()), CREATE)
}

fn write_mappings(want: &Lb, refs: &Refs) -> Result<Vec<elb::SubnetMapping>, Failure> {
    let one = |mapping: &SubnetMapping| {
        Ok(elb::SubnetMapping::builder()
            .subnet_id(physical(refs, &mapping.subnet_id, CREATE)?)
            .set_allocation_id(mapping.allocation_id.clone())
            .set_private_ipv4_address(mapping.private_ipv4_address.clone())
            .build())
    };
    want.subnet_mappings.iter().map(one).collect()
}

async fn change(
    world: &AwsWorld,
    have: &Have<'_, Lb>,
    want: &Lb,
    refs: &Refs,
) -> Result<(), Failure> {
    if have.resource.security_groups != want.security_groups {
        const CALL: &str = "elasticloadbalancing:SetSecurityGroups";
        let groups = physical_ids(refs, &want.security_groups, CALL)?;
        let call = world.clients.elb.set_security_groups();
        let call = call.load_balancer_arn(have.physical);
        let done = call.set_security_groups(Some(groups)).send().await;
        done.classify_creation(CALL)?;
    }
    if have.resource.subnet_mappings != want.subnet_mappings {
        const CALL: &str = "elasticloadbalancing:SetSubnets";
        let mappings = write_mappings(want, refs)?;
        let call = world.clients.elb.set_subnets();
        let call = call.load_balancer_arn(have.physical);
        let done = call.set_subnet_mappings(Some(mappings)).send().await;
        done.classify_creation(CALL)?;
    }
    // After its subnets: all of them must have IPv6 for `dualstack`.
    if have.resource.ip_address_type != want.ip_address_type {
        const CALL: &str = "elasticloadbalancing:SetIpAddressType";
        let families = elb::IpAddressType::from(want.ip_address_type.as_str());
        let call = world.clients.elb.set_ip_address_type();
        let call = call.load_balancer_arn(have.physical);
        let done = call.ip_address_type(families).send().await;
        done.classify_creation(CALL)?;
    }
    Ok(())
}

async fn change_attributes(
    world: &AwsWorld,
    arn: &str,
    have: &Lb,
    want: &Lb,
) -> Result<(), Failure> {
    let (before, after) = (attribute_values(have), attribute_values(want));
    let changed = after.into_iter().filter(|one| !before.contains(one));
    let changed: Vec<LoadBalancerAttribute> = changed
        .map(|(key, value)| {
            LoadBalancerAttribute::builder()
                .key(key)
                .value(value)
                .build()
        })
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let call = world.clients.elb.modify_load_balancer_attributes();
    let call = call.load_balancer_arn(arn);
    let done = call.set_attributes(Some(changed)).send().await;
    done.classify_creation("elasticloadbalancing:ModifyLoadBalancerAttributes")
        .map(drop)
}

fn attribute_values(of: &Lb) -> Vec<(&'static str, String)> {
    let mut all = vec![
        (CROSS_ZONE, of.cross_zone_enabled.to_string()),
        (LOGS, of.access_logs.is_some().to_string()),
    ];
    if let Some(logs) = &of.access_logs {
        all.push((LOGS_BUCKET, logs.bucket.clone()));
        all.push((LOGS_PREFIX, logs.prefix.clone().unwrap_or_default()));
    }
    all
}
