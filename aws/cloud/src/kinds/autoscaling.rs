//! What Auto Scaling groups and their lifecycle hooks share: tags, and whether a group is on its way out.

use crate::names::tags;
use aws_sdk_autoscaling::types as asg;
use cloud::GroupTag;

/// A group with a status is on its way out.
pub(crate) fn is_going(raw: &asg::AutoScalingGroup) -> bool {
    raw.status().is_some_and(|status| !status.is_empty())
}

/// Tags as AWS describes them, but for its own.
pub(super) fn read_tags(of: &[asg::TagDescription]) -> Vec<GroupTag> {
    let foreign = |key: &str| tags([(key, "")]).is_empty();
    let read = |tag: &asg::TagDescription| {
        Some(GroupTag {
            key: tag.key().filter(|key| !foreign(key))?.to_owned(),
            value: tag.value().unwrap_or_default().to_owned(),
            propagate_at_launch: tag.propagate_at_launch().unwrap_or_default(),
        })
    };
    let mut tags: Vec<GroupTag> = of.iter().filter_map(read).collect();
    tags.sort();
    tags
}

/// Tags as Auto Scaling takes them.
pub(super) fn write_tags<'a>(
    group: &str,
    tags: impl IntoIterator<Item = &'a GroupTag>,
) -> Vec<asg::Tag> {
    let write = |tag: &GroupTag| {
        asg::Tag::builder()
            .resource_type("auto-scaling-group")
            .resource_id(group)
            .key(&tag.key)
            .value(&tag.value)
            .propagate_at_launch(tag.propagate_at_launch)
            .build()
    };
    tags.into_iter().map(write).collect()
}
