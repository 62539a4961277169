//! What all kinds of EC2 share: the filter that finds what is the cluster's, tags.

use crate::names::{TagChanges, tags};
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use cloud::Tags;
use engine::Failure;

pub(crate) fn filter(name: impl Into<String>, value: impl Into<String>) -> Filter {
    Filter::builder().name(name).values(value).build()
}

/// The filter for what the cluster owns.
pub(crate) fn owned_filter(world: &AwsWorld) -> Filter {
    filter(format!("tag:{}", world.scope.owned_tag()), "owned")
}

/// The filter for a `Name`.
pub(crate) fn name_filter(name: &str) -> Filter {
    filter("tag:Name", name)
}

/// True if the tags say that the cluster owns it.
pub(crate) fn is_owned(world: &AwsWorld, tags: &Tags) -> bool {
    tags.get(&world.scope.owned_tag())
        .is_some_and(|value| value == "owned")
}

/// Tags as EC2 gives them.
pub(crate) fn read_tags(of: &[Tag]) -> Tags {
    tags(of.iter().filter_map(|tag| Some((tag.key()?, tag.value()?))))
}

/// Tags as EC2 takes them.
pub(crate) fn write_tags(of: &Tags) -> Vec<Tag> {
    of.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// Tags for a creating call.
pub(crate) fn tag_specification(what: ResourceType, with: &Tags) -> TagSpecification {
    TagSpecification::builder()
        .resource_type(what)
        .set_tags(Some(write_tags(with)))
        .build()
}

/// Turns the tags of an object into those that are wanted.
pub(crate) async fn retag(
    world: &AwsWorld,
    physical: &str,
    have: &Tags,
    want: &Tags,
) -> Result<(), Failure> {
    let changes = TagChanges::tag_changes_between(have, want);
    if !changes.set.is_empty() {
        let call = world.clients.ec2.create_tags().resources(physical);
        let call = call.set_tags(Some(write_tags(&changes.set)));
        call.send().await.classify_creation("ec2:CreateTags")?;
    }
    if !changes.unset.is_empty() {
        let keys = changes.unset.iter().map(|key| Tag::builder().key(key));
        let keys = keys
            .map(aws_sdk_ec2::types::builders::TagBuilder::build)
            .collect();
        let call = world.clients.ec2.delete_tags().resources(physical);
        call.set_tags(Some(keys))
            .send()
            .await
            .classify_creation("ec2:DeleteTags")?;
    }
    Ok(())
}

/// For creates that EC2 would make twice: only the engine, which looks first, may repeat them.
pub(crate) fn without_retries() -> aws_sdk_ec2::config::Builder {
    aws_sdk_ec2::Config::builder().retry_config(RetryConfig::disabled())
}
