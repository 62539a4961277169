//! A subnet.

use super::blockers::name_blockers;
use super::ec2::{filter, is_owned, read_tags, retag, tag_specification};
use super::{
    Found, Have, Verbs, after_effect, created_ready, desired_of_kind, find_same, observed_item,
    physical, vpc,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, not_yet, require_answer};
use aws_sdk_ec2::types::{
    self, AttributeBooleanValue, Filter, HostnameType, ResourceType, SubnetCidrBlockStateCode,
};
use cloud::{Cloud, Kind, Subnet, SubnetIpv6Range, Tags, Vpc, VpcIpv4CidrBlockAssociation};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use ipnet::{IpNet, Ipv4Net};
use node::names::logical_name;

/// Tags by which load balancers find subnets: if they are not ours to set, they are the user's.
const LOAD_BALANCER_TAGS: [&str; 2] = ["kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"];

pub(crate) async fn fetch(world: &AwsWorld, by: Filter) -> Result<Vec<types::Subnet>, Failure> {
    let call = world.clients.ec2.describe_subnets().filters(by);
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    found.classify_call("ec2:DescribeSubnets")
}

pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::Subnet,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let mut tags = read_tags(raw.tags());
    let name = logical_name(&tags)?;
    drop_tags_of_the_user(world, &name, &mut tags);
    let launch = raw.private_dns_name_options_on_launch();
    let hostnames = launch.and_then(|launch| launch.hostname_type());
    let records = launch.and_then(
        aws_sdk_ec2::types::PrivateDnsNameOptionsOnLaunch::enable_resource_name_dns_a_record,
    );
    let records_v6 = launch.and_then(
        aws_sdk_ec2::types::PrivateDnsNameOptionsOnLaunch::enable_resource_name_dns_aaaa_record,
    );
    let mut ipv6 = raw.ipv6_cidr_block_association_set().iter();
    let ipv6 = ipv6.find(|range| is_associated(range));
    let ipv6 = ipv6.and_then(|range| range.ipv6_cidr_block());
    let subnet = Subnet {
        name,
        vpc_id: names.reference::<Vpc>(raw.vpc_id()?),
        availability_zone: raw.availability_zone()?.to_owned(),
        cidr_block: raw.cidr_block().map(ToOwned::to_owned),
        ipv6_cidr_block: ipv6.and_then(|range| range.parse().ok()),
        assign_ipv6_address_on_creation: raw.assign_ipv6_address_on_creation() == Some(true),
        enable_dns64: raw.enable_dns64() == Some(true),
        private_dns_hostname_type_on_launch: hostnames
            .map_or("ip-name", HostnameType::as_str)
            .to_owned(),
        enable_resource_name_dns_a_record_on_launch: records.unwrap_or_default(),
        enable_resource_name_dns_aaaa_record_on_launch: records_v6.unwrap_or_default(),
        tags,
    };
    Some(observed_item(subnet, raw.subnet_id()?))
}

/// True if the range is the subnet's, or about to be.
pub(crate) fn is_associated(range: &types::SubnetIpv6CidrBlockAssociation) -> bool {
    matches!(
        state_of(range),
        Some(SubnetCidrBlockStateCode::Associated | SubnetCidrBlockStateCode::Associating)
    )
}

fn state_of(range: &types::SubnetIpv6CidrBlockAssociation) -> Option<&SubnetCidrBlockStateCode> {
    range.ipv6_cidr_block_state()?.state()
}

fn drop_tags_of_the_user(world: &AwsWorld, name: &str, tags: &mut Tags) {
    let wanted = desired_of_kind::<Subnet>(world).find(|one| one.name == name);
    if let Some(wanted) = wanted {
        let ours = |key: &str| wanted.tags.contains_key(key) || !LOAD_BALANCER_TAGS.contains(&key);
        tags.retain(|key, _| ours(key));
    }
}

impl Verbs for Subnet {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let vpc = physical(refs, &want.vpc_id, "ec2:DescribeSubnets")?;
        let found = fetch(world, filter("vpc-id", vpc)).await?;
        let ours = found
            .iter()
            .filter(|raw| is_owned(world, &read_tags(raw.tags())));
        Ok(find_same(
            ours.filter_map(|raw| observe(world, raw, &names)),
            &want.id(),
        ))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let Some(have) = have else {
            let subnet = create(world, want, refs).await?;
            // What AWS gives a new subnet.
            let fresh = Self {
                private_dns_hostname_type_on_launch: "ip-name".to_owned(),
                enable_resource_name_dns_a_record_on_launch: false,
                enable_resource_name_dns_aaaa_record_on_launch: false,
                assign_ipv6_address_on_creation: false,
                enable_dns64: false,
                ..want.clone()
            };
            after_effect(change(world, &subnet, &fresh, want).await)?;
            return Ok(created_ready(subnet));
        };
        if have.resource.ipv6_cidr_block.is_none() {
            associate(world, have.physical, want, refs).await?;
        }
        change(world, have.physical, have.resource, want).await?;
        retag(world, have.physical, &have.resource.tags, &want.tags).await?;
        Ok(created_ready(have.physical))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_subnet().subnet_id(have.physical);
        let done = call
            .send()
            .await
            .classify_call("ec2:DeleteSubnet")
            .map(drop);
        name_blockers(
            world,
            have.physical,
            filter("subnet-id", have.physical),
            done,
        )
        .await
    }
}

async fn create(world: &AwsWorld, want: &Subnet, refs: &Refs) -> Result<String, Failure> {
    const CALL: &str = "ec2:CreateSubnet";
    let vpc = physical(refs, &want.vpc_id, CALL)?;
    let call = world
        .clients
        .ec2
        .create_subnet()
        .vpc_id(&vpc)
        .availability_zone(&want.availability_zone)
        .set_cidr_block(want.cidr_block.clone())
        .set_ipv6_cidr_block(ipv6_range(world, want, &vpc, CALL).await?)
        .set_ipv6_native(want.cidr_block.is_none().then_some(true))
        .tag_specifications(tag_specification(ResourceType::Subnet, &want.tags));
    match call.send().await.classify_creation(CALL) {
        Ok(answer) => require_answer(answer.subnet.and_then(|one| one.subnet_id), CALL),
        Err(failure) if failure.class == Class::Exists => {
            Err(explain_conflict(world, want, &vpc, failure).await?)
        }
        Err(mut failure) => {
            if failure.code == "InvalidSubnet.Range" && in_more_ranges(world, want) {
                failure = not_yet(failure);
            }
            Err(failure)
        }
    }
}

/// The IPv6 range that a subnet gets. AWS gives the VPC its range some time after the VPC was made.
async fn ipv6_range(
    world: &AwsWorld,
    want: &Subnet,
    vpc_id: &str,
    call: &str,
) -> Result<Option<String>, Failure> {
    let range = match want.ipv6_cidr_block {
        None => return Ok(None),
        Some(SubnetIpv6Range::Net(range)) => return Ok(Some(range.to_string())),
        Some(part) => part,
    };
    let found = world
        .clients
        .ec2
        .describe_vpcs()
        .vpc_ids(vpc_id)
        .send()
        .await;
    let found = found.classify_call("ec2:DescribeVpcs")?;
    let associations = found.vpcs().iter();
    let associations = associations.flat_map(types::Vpc::ipv6_cidr_block_association_set);
    // AWS takes no part of a range that it is still giving the VPC.
    let mut associated = associations.filter(|range| vpc::has_range(range));
    let whole = associated.find_map(|range| range.ipv6_cidr_block()?.parse().ok());
    let Some(whole) = whole else {
        let message = "the VPC has no IPv6 range yet";
        return Err(local_failure(Class::NotYet, call, message));
    };
    match range.within(whole) {
        Some(net) => Ok(Some(net.to_string())),
        None => {
            let message = format!("{range} is no part of the VPC's range {whole}");
            Err(local_failure(Class::Invalid, call, message))
        }
    }
}

/// Gives a subnet that has none its IPv6 range.
async fn associate(
    world: &AwsWorld,
    subnet: &str,
    want: &Subnet,
    refs: &Refs,
) -> Result<(), Failure> {
    const CALL: &str = "ec2:AssociateSubnetCidrBlock";
    let vpc = physical(refs, &want.vpc_id, CALL)?;
    let Some(range) = ipv6_range(world, want, &vpc, CALL).await? else {
        return Ok(());
    };
    let call = world.clients.ec2.associate_subnet_cidr_block();
    let call = call.subnet_id(subnet).ipv6_cidr_block(range);
    call.send().await.classify_creation(CALL).map(drop)
}

/// Fails until the subnet has its IPv6 range, which AWS gives it some time after it was asked: attributes that need one are not
/// taken before.
async fn check_ipv6_range(world: &AwsWorld, subnet: &str) -> Result<(), Failure> {
    let found = fetch(world, filter("subnet-id", subnet)).await?;
    let mut ranges = found
        .iter()
        .flat_map(types::Subnet::ipv6_cidr_block_association_set);
    if ranges.any(|range| state_of(range) == Some(&SubnetCidrBlockStateCode::Associated)) {
        return Ok(());
    }
    let message = "the subnet has no IPv6 range yet";
    Err(local_failure(Class::NotYet, "ec2:DescribeSubnets", message))
}

/// True if the subnet lies in one of the VPC's further ranges: those come to it side by side with subnets.
fn in_more_ranges(world: &AwsWorld, want: &Subnet) -> bool {
    let range: Option<Ipv4Net> = want
        .cidr_block
        .as_deref()
        .and_then(|range| range.parse().ok());
    desired_of_kind::<VpcIpv4CidrBlockAssociation>(world).any(|one| {
        let more = one.cidr_block.parse().ok();
        range
            .zip(more)
            .is_some_and(|(range, more): (Ipv4Net, Ipv4Net)| more.contains(&range))
    })
}

/// Whose subnet takes one of the ranges: the wanted one itself is adopted, another of ours may be about to go, somebody else's stays.
async fn explain_conflict(
    world: &AwsWorld,
    want: &Subnet,
    vpc: &str,
    failure: Failure,
) -> Result<Failure, Failure> {
    let all = fetch(world, filter("vpc-id", vpc)).await?;
    let ipv6 = ipv6_range(world, want, vpc, &failure.call).await?;
    let own = parse_ranges(want.cidr_block.as_deref(), ipv6.as_deref());
    let taken = all.iter().find_map(|one| {
        let associated = one.ipv6_cidr_block_association_set().iter();
        let mut associated = associated.filter(|range| is_associated(range));
        let ipv6 = associated.find_map(|range| range.ipv6_cidr_block());
        let theirs = parse_ranges(one.cidr_block(), ipv6);
        let overlaps = |a: &IpNet| {
            let mut theirs = theirs.iter();
            theirs.any(|b| a.contains(&b.network()) || b.contains(&a.network()))
        };
        Some((one, *own.iter().find(|range| overlaps(range))?))
    });
    let Some((other, range)) = taken else {
        return Ok(failure);
    };
    let tags = read_tags(other.tags());
    let name = logical_name(&tags);
    if is_owned(world, &tags) && name.as_deref() == Some(&want.name) {
        return Ok(failure);
    }
    let class = if is_owned(world, &tags) {
        Class::Blocked
    } else {
        Class::Invalid
    };
    let what = [other.subnet_id(), name.as_deref(), other.cidr_block()];
    let what: Vec<&str> = what.into_iter().flatten().collect();
    let message = format!("{range} overlaps the subnet {}", what.join(" "));
    Ok(Failure {
        code: failure.code,
        request_id: failure.request_id,
        ..local_failure(class, &failure.call, message)
    })
}

/// The ranges of a subnet.
fn parse_ranges(ipv4: Option<&str>, ipv6: Option<&str>) -> Vec<IpNet> {
    let both = ipv4.into_iter().chain(ipv6);
    both.filter_map(|range| range.parse().ok()).collect()
}

/// AWS takes one attribute a call.
async fn change(
    world: &AwsWorld,
    subnet: &str,
    have: &Subnet,
    want: &Subnet,
) -> Result<(), Failure> {
    const CALL: &str = "ec2:ModifySubnetAttribute";
    let modify = || {
        world
            .clients
            .ec2
            .modify_subnet_attribute()
            .subnet_id(subnet)
    };
    let hostnames = &want.private_dns_hostname_type_on_launch;
    if have.private_dns_hostname_type_on_launch != *hostnames {
        let kind = HostnameType::from(hostnames.as_str());
        let call = modify().private_dns_hostname_type_on_launch(kind);
        call.send().await.classify_creation(CALL)?;
    }
    let switch = |value| AttributeBooleanValue::builder().value(value).build();
    let records = want.enable_resource_name_dns_a_record_on_launch;
    if have.enable_resource_name_dns_a_record_on_launch != records {
        let call = modify().enable_resource_name_dns_a_record_on_launch(switch(records));
        call.send().await.classify_creation(CALL)?;
    }
    let records = want.enable_resource_name_dns_aaaa_record_on_launch;
    if have.enable_resource_name_dns_aaaa_record_on_launch != records {
        let call = modify().enable_resource_name_dns_aaaa_record_on_launch(switch(records));
        call.send().await.classify_creation(CALL)?;
    }
    let assigns = want.assign_ipv6_address_on_creation;
    if (have.assign_ipv6_address_on_creation, have.enable_dns64) != (assigns, want.enable_dns64) {
        check_ipv6_range(world, subnet).await?;
    }
    if have.assign_ipv6_address_on_creation != assigns {
        let call = modify().assign_ipv6_address_on_creation(switch(assigns));
        call.send().await.classify_creation(CALL)?;
    }
    if have.enable_dns64 != want.enable_dns64 {
        let call = modify().enable_dns64(switch(want.enable_dns64));
        call.send().await.classify_creation(CALL)?;
    }
    Ok(())
}
