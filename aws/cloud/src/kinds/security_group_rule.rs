//! A rule of a security group. Ours are those that carry the cluster's tag: the cloud controller and the user
//! may add others to the same group.

use super::ec2::{filter, tag_specification, write_tags};
use super::{Found, Have, Verbs, created_ready, desired_of_kind, observed_item, physical};
use crate::names::{Names, tags};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{
    self, Filter, IpPermission, IpRange, Ipv6Range, PrefixListId, ResourceType, UserIdGroupPair,
};
use cloud::{Cloud, Kind, RuleSource, SecurityGroup, SecurityGroupRule, Tags};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use node::names::{CLUSTER_TAG, NAME_TAG};
use std::collections::BTreeSet;

/// The most that AWS gives at once.
const PAGE: i32 = 1000;

/// Attribute: the group's AWS id, for removing the rule.
const GROUP: &str = "group_id";

const INGRESS: &str = "ec2:AuthorizeSecurityGroupIngress";

/// The cluster's rules, and those of wanted rules' groups that are the user's.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::SecurityGroupRule>, Failure> {
    let ours = filter(format!("tag:{CLUSTER_TAG}"), &world.scope.cluster);
    let given: BTreeSet<&str> = desired_of_kind::<SecurityGroupRule>(world)
        .filter_map(given_group)
        .collect();
    let mut found = fetch_by(world, ours).await?;
    if given.is_empty() {
        return Ok(found);
    }
    let given = given.into_iter().map(ToOwned::to_owned).collect();
    let in_given = Filter::builder().name("group-id").set_values(Some(given));
    let theirs = fetch_by(world, in_given.build()).await?;
    found.extend(theirs.into_iter().filter(|rule| !is_ours(world, rule)));
    Ok(found)
}

/// The group of a rule, if it is the user's.
fn given_group(rule: &SecurityGroupRule) -> Option<&str> {
    match &rule.group_id {
        Ref::Given(id) => Some(id),
        Ref::Own { .. } => None,
    }
}

fn is_ours(world: &AwsWorld, rule: &types::SecurityGroupRule) -> bool {
    let mut tags = rule.tags().iter();
    tags.any(|tag| {
        tag.key() == Some(CLUSTER_TAG) && tag.value() == Some(world.scope.cluster.as_str())
    })
}

async fn fetch_by(world: &AwsWorld, by: Filter) -> Result<Vec<types::SecurityGroupRule>, Failure> {
    let call = world.clients.ec2.describe_security_group_rules();
    let pages = call.filters(by).into_paginator().page_size(PAGE);
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeSecurityGroupRules")
}

/// A rule of the user's counts where it is a wanted one: AWS takes no second of the same content. Nothing else of theirs is seen, so
/// nothing of theirs is ever deleted.
pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::SecurityGroupRule,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let seen = observe_any(raw, names)?;
    let Cloud::SecurityGroupRule(rule) = &seen.resource else {
        return None;
    };
    let is_wanted = || {
        let mut wanted = desired_of_kind::<SecurityGroupRule>(world);
        wanted.any(|want| want.rule_key() == rule.rule_key())
    };
    (is_ours(world, raw) || is_wanted()).then_some(seen)
}

/// A rule, whoever made it.
pub(crate) fn observe_any(
    raw: &types::SecurityGroupRule,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let protocol = raw.ip_protocol()?.to_owned();
    // Other protocols have no ports; AWS is not of one mind about how it says so.
    let ports = matches!(protocol.as_str(), "tcp" | "udp" | "icmp" | "icmpv6");
    let port = |port: Option<i32>| port.filter(|_| ports).unwrap_or(-1);
    let mut rule = SecurityGroupRule {
        name: String::new(),
        group_id: names.reference::<SecurityGroup>(raw.group_id()?),
        is_egress: raw.is_egress().unwrap_or_default(),
        from_port: port(raw.from_port()),
        to_port: port(raw.to_port()),
        ip_protocol: protocol,
        source: rule_source(raw, names)?,
    };
    rule.name = canonical_name(&rule);
    let mut seen = observed_item(rule, raw.security_group_rule_id()?);
    seen.attrs
        .insert(GROUP.to_owned(), raw.group_id()?.to_owned());
    Some(seen)
}

fn rule_source(raw: &types::SecurityGroupRule, names: &Names) -> Option<RuleSource> {
    let group = raw.referenced_group_info().and_then(|one| one.group_id());
    Some(if let Some(range) = raw.cidr_ipv4().or(raw.cidr_ipv6()) {
        RuleSource::parse_peer(range)
    } else if let Some(list) = raw.prefix_list_id() {
        RuleSource::PrefixListId(list.to_owned())
    } else {
        RuleSource::ReferencedGroupId(names.reference::<SecurityGroup>(group?))
    })
}

/// AWS keeps no names of rules. This one says all that tells rules apart; the planner gives a rule that is
/// wanted the name by which it is wanted.
fn canonical_name(rule: &SecurityGroupRule) -> String {
    let of = |group: &Ref| match group {
        Ref::Given(id) => id.clone(),
        Ref::Own { name, .. } => name.clone(),
    };
    let other = match &rule.source {
        RuleSource::CidrIpv4(other)
        | RuleSource::CidrIpv6(other)
        | RuleSource::PrefixListId(other) => other.clone(),
        RuleSource::ReferencedGroupId(group) => of(group),
    };
    let way = if rule.is_egress { "egress" } else { "ingress" };
    format!(
        "from-{other}-{way}-{}-{}to{}-{}",
        rule.ip_protocol,
        rule.from_port,
        rule.to_port,
        of(&rule.group_id)
    )
}

impl Verbs for SecurityGroupRule {
    /// The rule with the same content, ours or not: AWS makes a group with rules of its own, and a second rule
    /// of the same content cannot be. It becomes ours by being tagged, in a group of ours.
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let group = physical(refs, &want.group_id, "ec2:DescribeSecurityGroupRules")?;
        let found = fetch_by(world, filter("group-id", group)).await?;
        for raw in &found {
            let Some(mut seen) = observe_any(raw, &names) else {
                continue;
            };
            let Cloud::SecurityGroupRule(rule) = &mut seen.resource else {
                continue;
            };
            if rule.rule_key() == want.rule_key() {
                rule.name.clone_from(&want.name);
                if given_group(want).is_none() {
                    adopt(world, raw, want).await?;
                }
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// All of a rule is its identity, so there is nothing to change.
    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        match have {
            Some(have) => Ok(created_ready(have.physical)),
            None => authorize(world, want, refs).await.map(created_ready),
        }
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let ec2 = &world.clients.ec2;
        let (group, rule) = (have.attrs.get(GROUP).cloned(), have.physical);
        if have.resource.is_egress {
            let call = ec2.revoke_security_group_egress().set_group_id(group);
            let done = call.security_group_rule_ids(rule).send().await;
            done.classify_call("ec2:RevokeSecurityGroupEgress")?;
        } else {
            let call = ec2.revoke_security_group_ingress().set_group_id(group);
            let done = call.security_group_rule_ids(rule).send().await;
            done.classify_call("ec2:RevokeSecurityGroupIngress")?;
        }
        Ok(Removed::Done)
    }
}

async fn authorize(
    world: &AwsWorld,
    want: &SecurityGroupRule,
    refs: &Refs,
) -> Result<String, Failure> {
    let ec2 = &world.clients.ec2;
    let what = ip_permission(want, refs)?;
    let group = physical(refs, &want.group_id, INGRESS)?;
    let tags = tag_specification(ResourceType::SecurityGroupRule, &own_tags(world, want));
    let rules = if want.is_egress {
        let call = ec2.authorize_security_group_egress().group_id(group);
        let call = call.ip_permissions(what).tag_specifications(tags);
        let answer = call.send().await;
        answer
            .classify_creation("ec2:AuthorizeSecurityGroupEgress")?
            .security_group_rules
    } else {
        let call = ec2.authorize_security_group_ingress().group_id(group);
        let call = call.ip_permissions(what).tag_specifications(tags);
        call.send()
            .await
            .classify_creation(INGRESS)?
            .security_group_rules
    };
    let rule = rules.and_then(|rules| rules.into_iter().next());
    require_answer(rule.and_then(|rule| rule.security_group_rule_id), INGRESS)
}

fn ip_permission(want: &SecurityGroupRule, refs: &Refs) -> Result<IpPermission, Failure> {
    let of = IpPermission::builder()
        .ip_protocol(&want.ip_protocol)
        .from_port(want.from_port)
        .to_port(want.to_port);
    let of = match &want.source {
        RuleSource::CidrIpv4(range) => of.ip_ranges(IpRange::builder().cidr_ip(range).build()),
        RuleSource::CidrIpv6(range) => {
            of.ipv6_ranges(Ipv6Range::builder().cidr_ipv6(range).build())
        }
        RuleSource::PrefixListId(list) => {
            of.prefix_list_ids(PrefixListId::builder().prefix_list_id(list).build())
        }
        RuleSource::ReferencedGroupId(group) => {
            let group = physical(refs, group, INGRESS)?;
            of.user_id_group_pairs(UserIdGroupPair::builder().group_id(group).build())
        }
    };
    Ok(of.build())
}

/// What says that a rule is the cluster's.
fn own_tags(world: &AwsWorld, want: &SecurityGroupRule) -> Tags {
    tags([
        (CLUSTER_TAG.to_owned(), world.scope.cluster.clone()),
        (world.scope.owned_tag(), "owned".to_owned()),
        (NAME_TAG.to_owned(), want.name.chars().take(255).collect()),
    ])
}

async fn adopt(
    world: &AwsWorld,
    raw: &types::SecurityGroupRule,
    want: &SecurityGroupRule,
) -> Result<(), Failure> {
    let wanted = own_tags(world, want);
    let has = |key: &str| {
        let same = |tag: &types::Tag| {
            tag.key() == Some(key) && tag.value() == wanted.get(key).map(String::as_str)
        };
        raw.tags().iter().any(same)
    };
    if has(CLUSTER_TAG) {
        return Ok(());
    }
    let call = world.clients.ec2.create_tags();
    let call = call
        .set_resources(raw.security_group_rule_id().map(|id| vec![id.to_owned()]))
        .set_tags(Some(write_tags(&wanted)));
    call.send().await.classify_creation("ec2:CreateTags")?;
    Ok(())
}
