//! AWS' limits of what is made of several values of the spec: tags, and the policies of a role. Every object is built and measured, so
//! that no call fails half-way through an update.

use super::findings::Findings;
use crate::api::InstanceGroup;
use crate::read::path;
use cloud::{AutoscalingGroup, Cloud, IamRolePolicy, Tags, Variant};
use engine::{Id, Ref, Resource};
use full::FullSpec;
use full::objects::desired_objects;
use node::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeMap;

/// Characters of a tag's key, of its value, and tags of one resource: the same for every service.
const TAG_KEY: usize = 128;
const TAG_VALUE: usize = 256;
const TAGS: usize = 50;
/// Characters of all inline policies of a role together, without white space
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html>).
const INLINE_POLICIES: usize = 10_240;

/// Adds an error for everything that AWS would refuse.
pub(super) fn check_aws_limits(full: &FullSpec, groups: &[InstanceGroup], findings: &mut Findings) {
    let mut objects = desired_objects(full, &BTreeMap::new(), Vec::new());
    check_policies(&objects, findings);
    let mut told = Vec::new();
    for object in &mut objects {
        let id = object.id();
        let Some(tags) = tags_of(object) else {
            continue;
        };
        let group = tags.get(INSTANCE_GROUP_TAG).cloned();
        for problem in tag_problems(&tags) {
            // A group's template, its volumes and its Auto Scaling group have the same tags.
            if told.contains(&(group.clone(), problem.clone())) {
                continue;
            }
            add_tag_error(&id, group.as_deref(), &problem, groups, findings);
            told.push((group.clone(), problem));
        }
    }
}

fn add_tag_error(
    id: &Id,
    group: Option<&str>,
    problem: &str,
    groups: &[InstanceGroup],
    findings: &mut Findings,
) {
    let message = format!("{id} would have {problem}");
    let hint = "shorten or remove cloudLabels, nodeLabels or taints: each of them is a tag of the group's instances";
    match groups.iter().find(|one| Some(one.name()) == group) {
        Some(group) => findings.add_group_error(group, "spec", message, hint),
        None => findings.add_error(
            "spec",
            message,
            "shorten the name or the label that it is made of",
        ),
    }
}

fn tags_of(object: &mut Cloud) -> Option<Tags> {
    if let Some(group) = AutoscalingGroup::of(object) {
        let pairs = group.tags.iter();
        return Some(
            pairs
                .map(|tag| (tag.key.clone(), tag.value.clone()))
                .collect(),
        );
    }
    object.tags_mut().cloned()
}

fn tag_problems(tags: &Tags) -> Vec<String> {
    let mut problems = Vec::new();
    if tags.len() > TAGS {
        problems.push(format!("{} tags, of which AWS takes {TAGS}", tags.len()));
    }
    for (key, value) in tags {
        let (long, length) = (key.chars().count(), value.chars().count());
        if long > TAG_KEY {
            problems.push(format!(
                "the tag {key:?}, whose key has {long} characters; AWS takes {TAG_KEY}"
            ));
        }
        if length > TAG_VALUE {
            problems.push(format!(
                "the tag {key:?} with a value of {length} characters; AWS takes {TAG_VALUE}"
            ));
        }
    }
    problems
}

fn check_policies(objects: &[Cloud], findings: &mut Findings) {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for policy in objects.iter().filter_map(IamRolePolicy::of) {
        let (Ref::Own { name, .. } | Ref::Given(name)) = &policy.role_name;
        let document = policy.policy_document.to_string();
        let counted = document.chars().filter(|one| !one.is_whitespace()).count();
        *sizes.entry(name).or_default() += counted;
    }
    for (role, size) in sizes {
        if size <= INLINE_POLICIES {
            continue;
        }
        let message = format!(
            "the inline policies of the role {role} have {size} characters together, AWS takes {INLINE_POLICIES}"
        );
        let hint = "make a managed policy of your statements and name its ARN in externalPolicies, or shorten them";
        findings.add_error(policies_path(role), message, hint);
    }
}

/// The field with the user's statements for a role, by what the role's name begins with ([`node::names::iam_name`]).
fn policies_path(role: &str) -> String {
    let key = match role.split_once('.') {
        Some(("masters", _)) => "master",
        Some(("bastions", _)) => "bastion",
        Some(("nodes", _)) => "node",
        _ => return "spec.iam.serviceAccountExternalPermissions".to_owned(),
    };
    path::field_path("spec.additionalPolicies", key)
}
