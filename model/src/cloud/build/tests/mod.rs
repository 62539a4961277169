//! What the builders promise, whatever the spec.

pub mod spec;

use super::desired;
use crate::cloud::Cloud;
use crate::engine::Resource;
use crate::full::{FullSpec, Role};
use std::collections::{BTreeMap, BTreeSet};

fn build(full: &FullSpec) -> Vec<Cloud> {
    desired(full, &BTreeMap::new(), Vec::new())
}

fn every_shape() -> [(&'static str, FullSpec); 4] {
    [
        ("minimal", spec::minimal()),
        ("ha", spec::ha()),
        ("private", spec::private()),
        ("shared", spec::shared()),
    ]
}

#[test]
fn every_id_is_there_once() {
    for (shape, full) in every_shape() {
        let all = build(&full);
        let ids: BTreeSet<String> = all.iter().map(|one| one.id().to_string()).collect();
        assert_eq!(ids.len(), all.len(), "{shape}");
    }
}

#[test]
fn every_reference_leads_to_an_object() {
    for (shape, full) in every_shape() {
        let all = build(&full);
        let ids: BTreeSet<_> = all.iter().map(Resource::id).collect();
        for one in &all {
            for needed in one.needs() {
                assert!(
                    ids.contains(&needed),
                    "{shape}: {} needs {needed}",
                    one.id()
                );
            }
        }
    }
}

#[test]
fn aws_sees_no_security_group_rule_twice() {
    let mut full = spec::ha();
    for group in &mut full.groups {
        group.security_group_override = Some("sg-of-all-machines".into());
    }
    let rules: Vec<_> = build(&full)
        .into_iter()
        .filter_map(|one| match one {
            Cloud::SecurityGroupRule(rule) => Some(rule.content()),
            _ => None,
        })
        .collect();
    let distinct: BTreeSet<_> = rules.iter().collect();
    assert_eq!(distinct.len(), rules.len());
}

#[test]
fn a_group_with_the_users_profile_needs_no_role() {
    let mut full = spec::minimal();
    full.groups[1].iam_profile = Some("of-the-user".into());
    assert_eq!(full.groups[1].role, Role::Node);
    let roles: Vec<_> = build(&full)
        .into_iter()
        .filter(|one| one.id().kind() == "iam_role")
        .map(|one| one.id().name().to_owned())
        .collect();
    assert_eq!(roles, ["masters.minimal.example.com"]);
}
