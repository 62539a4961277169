//! AWS' rules: which names are unique, what blocks a removal, what takes its time.

use super::state::{Body, Object, State};
use cloud::{Cloud, RouteTarget};
use engine::{Class, Failure, Id, Resource};
use std::time::Duration;

/// How AWS tells one object of a kind from another when it is asked to make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Not at all: every call makes one more.
    Anonymous,
    /// By the caller's token: the same call again returns the same object.
    Token,
    /// By this key: a second one is refused.
    Taken(String),
    /// By its name: a second one overwrites the first.
    Overwrites,
}

/// The rule for that object; `refs` are the physical ids of what it refers to.
pub fn naming_rule(of: &Body) -> Naming {
    let within = |kind: &str| {
        let prefix = format!("{kind}-");
        let mut refs = of.refs.iter();
        refs.find(|physical| physical.strip_prefix(&prefix).is_some_and(is_number))
            .cloned()
            .unwrap_or_default()
    };
    let taken = |key: String| Naming::Taken(format!("{} {key}", of.resource.id().kind()));
    match &of.resource {
        Cloud::Vpc(_) | Cloud::InternetGateway(_) | Cloud::VpcDhcpOptions(_) | Cloud::Eip(_) => {
            Naming::Anonymous
        }
        Cloud::EbsVolume(_)
        | Cloud::EgressOnlyInternetGateway(_)
        | Cloud::NatGateway(_)
        | Cloud::RouteTable(_)
        | Cloud::VpcEndpoint(_) => Naming::Token,
        Cloud::AutoscalingLifecycleHook(_)
        | Cloud::AutoscalingWarmPool(_)
        | Cloud::CloudwatchEventRule(_)
        | Cloud::CloudwatchEventTarget(_)
        | Cloud::DiscoveryDocument(_)
        | Cloud::IamRolePolicy(_)
        | Cloud::IamRolePolicyAttachment(_)
        | Cloud::S3Object(_)
        | Cloud::VpcDhcpOptionsAssociation(_) => Naming::Overwrites,
        Cloud::Subnet(subnet) => {
            let ipv6 = subnet.ipv6_cidr_block.map(|range| range.to_string());
            let range = subnet.cidr_block.clone().or(ipv6).unwrap_or_default();
            taken(format!("{} {range}", within("vpc")))
        }
        Cloud::SecurityGroup(group) => taken(format!("{} {}", within("vpc"), group.group_name)),
        Cloud::VpcIpv4CidrBlockAssociation(range) => {
            taken(format!("{} {}", within("vpc"), range.cidr_block))
        }
        Cloud::Route(route) => taken(format!("{} {}", within("route_table"), route.destination)),
        Cloud::RouteTableAssociation(_) => taken(within("subnet")),
        Cloud::LbListener(listener) => taken(format!("{} {}", within("lb"), listener.port)),
        Cloud::SecurityGroupRule(rule) => taken(format!("{:?} {:?}", rule.rule_key(), of.refs)),
        Cloud::Route53Record(record) => taken(format!("{} {}", record.record_type, record.name)),
        Cloud::Lb(balancer) => taken(balancer.name.clone()),
        Cloud::AutoscalingGroup(_)
        | Cloud::IamInstanceProfile(_)
        | Cloud::IamOpenidConnectProvider(_)
        | Cloud::IamRole(_)
        | Cloud::KeyPair(_)
        | Cloud::LaunchTemplate(_)
        | Cloud::LbTargetGroup(_)
        | Cloud::Route53ZoneAssociation(_)
        | Cloud::SqsQueue(_) => taken(of.resource.id().name().to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Who is in the way of removing that object: whatever refers to it and does not go with it.
pub fn find_blocker<'a>(state: &'a State, physical: &str, now: Duration) -> Option<&'a Object> {
    state.objects.iter().find(|object| {
        object.lingering_body(now).is_some_and(|body| {
            body.refs.contains(physical) && !goes_with(&body.resource, physical)
        })
    })
}

/// Routes go with their table, rules with their group, listeners, hooks and warm pools with what they hang on.
pub fn goes_with(resource: &Cloud, physical: &str) -> bool {
    let goes = matches!(
        resource,
        Cloud::Route(_)
            | Cloud::LbListener(_)
            | Cloud::AutoscalingLifecycleHook(_)
            | Cloud::AutoscalingWarmPool(_)
    );
    let whole = resource.part_of().map(|part| part.id);
    let prefix = whole.map(|id| format!("{}-", id.kind()));
    let hangs_on = |prefix: String| physical.strip_prefix(&prefix).is_some_and(is_number);
    goes && prefix.is_some_and(hangs_on)
}

/// Another gateway of the same VPC, of which there can be one.
pub fn find_rival<'a>(
    state: &'a State,
    physical: &str,
    body: &Body,
    now: Duration,
) -> Option<&'a Object> {
    let is_gateway = |resource: &Cloud| matches!(resource, Cloud::InternetGateway(_));
    state.objects.iter().find(|object| {
        let other = object
            .lingering_body(now)
            .filter(|other| is_gateway(&other.resource));
        let same = other.is_some_and(|other| !other.refs.is_disjoint(&body.refs));
        same && object.physical != physical && is_gateway(&body.resource)
    })
}

/// What is being waited for until it can be used, if it takes a while.
pub fn slow_start(kind: &Cloud) -> Option<&'static str> {
    if matches!(kind, Cloud::NatGateway(_)) {
        Some("the NAT gateway to become available")
    } else if matches!(kind, Cloud::Lb(_)) {
        Some("the load balancer to become active")
    } else {
        None
    }
}

/// What is being waited for until it is gone, if it takes a while.
pub fn slow_end(kind: &Cloud) -> Option<&'static str> {
    if matches!(kind, Cloud::NatGateway(_)) {
        Some("the NAT gateway to be deleted")
    } else if matches!(kind, Cloud::AutoscalingGroup(_)) {
        Some("the instances to terminate")
    } else {
        None
    }
}

/// True if `want` cannot be made before what it refers to is usable, not just there.
pub fn needs_usable(want: &Cloud) -> bool {
    matches!(want, Cloud::Route(route) if matches!(route.target, RouteTarget::NatGatewayId(_)))
}

/// Kinds that AWS makes in two calls, as after the first of them.
pub fn half_made(want: &Cloud) -> Option<Cloud> {
    let mut half = want.clone();
    if let Cloud::InternetGateway(gateway) = &mut half {
        gateway.vpc_id = None;
    } else if let Cloud::IamInstanceProfile(profile) = &mut half {
        profile.role_name = None;
    } else {
        return None;
    }
    Some(half)
}

/// The failure of a call that AWS refuses.
pub fn refusal_failure(class: Class, call: &str, id: &Id, message: &str) -> Failure {
    Failure {
        class,
        call: format!("sim:{call}"),
        code: format!("{class:?}"),
        message: format!("{id}: {message}"),
        hint: None,
        request_id: None,
    }
}
