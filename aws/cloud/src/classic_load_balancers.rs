//! Classic load balancers, which the AWS cloud provider makes for Services of type LoadBalancer. kctl creates none; it deletes those
//! of a cluster that goes.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_elasticloadbalancing::types::TagDescription;
use engine::Failure;
use futures::future::try_join_all;
use node::names::ownership_tag;

/// The most names that AWS takes at once.
const PAGE: usize = 20;

/// The names of the classic load balancers that have the cluster's tag, sorted.
pub async fn classic_load_balancers(
    clients: &CloudClients,
    cluster: &str,
) -> Result<Vec<String>, Failure> {
    let call = clients.classic_elb.describe_load_balancers();
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    let found = found.classify_call("elasticloadbalancing:DescribeLoadBalancers")?;
    let names: Vec<String> = found
        .into_iter()
        .filter_map(|one| one.load_balancer_name)
        .collect();
    let tags = try_join_all(names.chunks(PAGE).map(|names| async {
        let call = clients.classic_elb.describe_tags();
        let answer = call.set_load_balancer_names(Some(names.to_vec())).send();
        let answer = answer.await;
        answer.classify_call("elasticloadbalancing:DescribeTags")
    }))
    .await?;
    let tags = tags
        .into_iter()
        .flat_map(|answer| answer.tag_descriptions.unwrap_or_default());
    let mut owned: Vec<String> = tags
        .filter(|one| is_owned(one, cluster))
        .filter_map(|one| one.load_balancer_name)
        .collect();
    owned.sort();
    Ok(owned)
}

fn is_owned(balancer: &TagDescription, cluster: &str) -> bool {
    let owned = ownership_tag(cluster);
    let mut tags = balancer.tags().iter();
    tags.any(|tag| tag.key() == owned && tag.value() == Some("owned"))
}

/// Deletes a classic load balancer. One that is gone is no error ("If the load balancer does not exist or has already been deleted,
/// the call to DeleteLoadBalancer still succeeds", Elastic Load Balancing API reference, version 2012-06-01).
pub async fn delete_classic_load_balancer(
    clients: &CloudClients,
    name: &str,
) -> Result<(), Failure> {
    let call = clients.classic_elb.delete_load_balancer();
    let deleted = call.load_balancer_name(name).send().await;
    deleted
        .classify_call("elasticloadbalancing:DeleteLoadBalancer")
        .map(drop)
}
