//! Where a load balancer of the cluster answers, without the sweep.

use crate::CloudClients;
use crate::kinds::lb_tags;
use aws_client::failure::Classify;
use engine::Failure;
use node::names::{NAME_TAG, load_balancer_stem, ownership_tag, series_revision};

/// The DNS name of the cluster's load balancer whose `Name` is `name` (`api.CLUSTER`); of several in a series the
/// newest. `None`: there is none. One paged call, and one for tags.
pub async fn balancer_dns_name(
    clients: &CloudClients,
    cluster: &str,
    name: &str,
) -> Result<Option<String>, Failure> {
    let call = clients.elb.describe_load_balancers();
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<aws_sdk_elasticloadbalancingv2::types::LoadBalancer>, _> =
        pages.collect().await;
    let mut found = found.classify_call("elasticloadbalancing:DescribeLoadBalancers")?;
    let stem = load_balancer_stem(name);
    found.retain(|one| {
        let name = one.load_balancer_name().unwrap_or_default();
        name.starts_with(&stem)
    });
    let arns: Vec<String> = found
        .iter()
        .filter_map(|one| one.load_balancer_arn.clone())
        .collect();
    let tags = lb_tags::fetch(clients, &arns).await?;
    let owned = ownership_tag(cluster);
    let ours = found.into_iter().filter_map(|one| {
        let tags = tags.get(one.load_balancer_arn()?)?;
        let is_it = tags.get(&owned).is_some_and(|value| value == "owned")
            && tags.get(NAME_TAG).is_some_and(|value| value == name);
        is_it.then(|| (series_revision(tags), one.dns_name))
    });
    let newest = ours.max_by_key(|(revision, _)| *revision);
    Ok(newest.and_then(|(_, dns_name)| dns_name))
}
