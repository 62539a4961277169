//! What load balancers and target groups share: their tags are asked for by ARN, twenty at a time.

use crate::CloudClients;
use crate::names::{TagChanges, tags};
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_elasticloadbalancingv2::types::Tag;
use cloud::Tags;
use engine::Failure;
use futures::future::try_join_all;
use std::collections::BTreeMap;

/// The most that AWS takes at once.
const PAGE: usize = 20;

/// The tags of each ARN.
pub(crate) async fn fetch(
    clients: &CloudClients,
    arns: &[String],
) -> Result<BTreeMap<String, Tags>, Failure> {
    let ask = |arns: &[String]| {
        let call = clients.elb.describe_tags();
        let call = call.set_resource_arns(Some(arns.to_vec())).send();
        async {
            call.await
                .classify_call("elasticloadbalancing:DescribeTags")
        }
    };
    let pages = try_join_all(arns.chunks(PAGE).map(ask)).await?;
    let all = pages
        .into_iter()
        .flat_map(|page| page.tag_descriptions.unwrap_or_default());
    let read = |tag: &Tag| Some((tag.key()?.to_owned(), tag.value()?.to_owned()));
    Ok(all
        .filter_map(|of| {
            let tags = tags(of.tags().iter().filter_map(read));
            Some((of.resource_arn?, tags))
        })
        .collect())
}

/// Tags as Elastic Load Balancing takes them.
pub(super) fn write_tags(of: &Tags) -> Vec<Tag> {
    of.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// Turns the tags of an object into those that are wanted.
pub(super) async fn retag(
    world: &AwsWorld,
    arn: &str,
    have: &Tags,
    want: &Tags,
) -> Result<(), Failure> {
    let changes = TagChanges::tag_changes_between(have, want);
    if !changes.set.is_empty() {
        let call = world.clients.elb.add_tags().resource_arns(arn);
        let call = call.set_tags(Some(write_tags(&changes.set)));
        call.send()
            .await
            .classify_call("elasticloadbalancing:AddTags")?;
    }
    if !changes.unset.is_empty() {
        let call = world.clients.elb.remove_tags().resource_arns(arn);
        let call = call.set_tag_keys(Some(changes.unset));
        call.send()
            .await
            .classify_call("elasticloadbalancing:RemoveTags")?;
    }
    Ok(())
}
