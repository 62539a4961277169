//! Instances in warm pools, which Auto Scaling does not describe with their groups.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types::{AutoScalingGroup, Instance};
use engine::Failure;
use futures::future::try_join_all;
use std::collections::BTreeMap;

/// The most that AWS gives at once.
const PAGE: i32 = 50;

/// The members of the warm pools of these groups, by group. Groups without a pool cost no call.
pub(super) async fn fetch(
    clients: &CloudClients,
    groups: &[AutoScalingGroup],
) -> Result<BTreeMap<String, Vec<Instance>>, Failure> {
    let with_pool = groups
        .iter()
        .filter(|raw| raw.warm_pool_configuration().is_some());
    let names = with_pool.filter_map(AutoScalingGroup::auto_scaling_group_name);
    let found = names.map(|name| async move {
        let call = clients.autoscaling.describe_warm_pool();
        let call = call.auto_scaling_group_name(name);
        let pages = call.into_paginator().page_size(PAGE).items();
        let found: Result<Vec<Instance>, _> = pages.send().collect().await;
        let found = found.classify_call("autoscaling:DescribeWarmPool")?;
        Ok::<_, Failure>((name.to_owned(), found))
    });
    Ok(try_join_all(found).await?.into_iter().collect())
}
