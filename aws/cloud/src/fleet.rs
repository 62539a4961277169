//! Observes a cluster's Auto Scaling groups and instances: two paged calls, however many there are. The types and the
//! rules about them are in the crate `fleet`.

mod activities;
mod groups;
mod instances;
mod replacement;
mod templates;
mod used_user_data;
mod warm_pools;

pub use activities::last_launch_failure;
pub use replacement::{
    complete_hook, deregister_target, detach_instance, register_target, target_states,
    terminate_instance, terminate_warm_instance,
};
pub use used_user_data::{UsedUserData, user_data_of_groups, user_data_of_instances};

use crate::CloudClients;
use engine::Failure;
use fleet::{AwsFleet, Instance, ScalingGroup, join_members};
use node::names::ownership_tag;
use std::collections::{BTreeMap, BTreeSet};

/// The ids of instances that a rolling update has detached from their Auto Scaling group and that still run: deleting the group does
/// not terminate them. One paged call.
pub async fn detached_instances(
    clients: &CloudClients,
    cluster: &str,
) -> Result<Vec<String>, Failure> {
    let found = Box::pin(instances::fetch(clients, &ownership_tag(cluster))).await?;
    let is_detached =
        |one: &Instance| one.detached && one.scaling_group.is_none() && !one.is_leaving();
    let detached = found.into_iter().filter(is_detached);
    Ok(detached.map(|one| one.id).collect())
}

/// The ids of all instances with the cluster's ownership tag. One paged call.
pub async fn instance_ids(
    clients: &CloudClients,
    cluster: &str,
) -> Result<BTreeSet<String>, Failure> {
    let found = Box::pin(instances::fetch(clients, &ownership_tag(cluster))).await?;
    Ok(found.into_iter().map(|one| one.id).collect())
}

/// How many IPv4 addresses of each subnet, by id, the instances with the cluster's ownership tag have. One paged call.
pub async fn instance_addresses(
    clients: &CloudClients,
    cluster: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    Box::pin(instances::count_addresses(clients, &ownership_tag(cluster))).await
}

/// All Auto Scaling groups and instances of a cluster, found by their ownership tag: two paged calls, a third one
/// only if a group launches `$Latest` or `$Default`, and one for each group with a warm pool.
pub async fn observe_fleet(clients: &CloudClients, cluster: &str) -> Result<AwsFleet, Failure> {
    let owned = ownership_tag(cluster);
    let (described, found) = futures::try_join!(
        Box::pin(groups::fetch(clients, &owned)),
        Box::pin(instances::fetch(clients, &owned)),
    )?;
    let newest = templates::read_newest_versions(clients, &described).await?;
    let mut scaling_groups: Vec<ScalingGroup> = described
        .iter()
        .filter_map(|raw| groups::parse_group(raw, &newest))
        .collect();
    scaling_groups.sort_by(|a, b| a.name.cmp(&b.name));
    let warm = warm_pools::fetch(clients, &described).await?;
    let members = groups::group_members(&described, &warm, &scaling_groups);
    Ok(AwsFleet {
        instances: join_members(found, &members),
        scaling_groups,
    })
}
