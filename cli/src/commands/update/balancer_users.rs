//! Finds the instances and launch templates whose user data names a load balancer that is to be deleted.

use crate::commands::observe::{ObservedCluster, aws_error};
use crate::error::CommandError;
use aws_cloud::fleet::{observe_fleet, user_data_of_groups, user_data_of_instances};
use cloud::used_load_balancers::UnwantedLoadBalancer;
use engine::Id;
use std::collections::BTreeMap;

/// By load balancer, the instances launched with its addresses, and the groups whose current launch template names it: a
/// group may launch an instance while the update runs. An instance with unknown user data counts as a user. Calls AWS only if
/// `leaving` is not empty.
pub async fn find_balancer_users(
    observed: &ObservedCluster,
    leaving: &[UnwantedLoadBalancer],
) -> Result<BTreeMap<Id, Vec<String>>, CommandError> {
    let mut users: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    if leaving.is_empty() {
        return Ok(users);
    }
    let (clients, cluster) = (&observed.clients, &observed.target.cluster);
    let fleet = observe_fleet(clients, cluster).await.map_err(aws_error)?;
    let mut user_data = user_data_of_instances(clients, &fleet)
        .await
        .map_err(aws_error)?;
    for mut next in user_data_of_groups(clients, &fleet)
        .await
        .map_err(aws_error)?
    {
        next.name = format!("group {}", next.name);
        user_data.push(next);
    }
    for one in user_data {
        for balancer in leaving {
            let names = |user_data: &str| balancer.is_named_in(user_data);
            if one.user_data.as_deref().is_none_or(names) {
                let by = users.entry(balancer.id.clone()).or_default();
                by.push(one.name.clone());
            }
        }
    }
    Ok(users)
}
