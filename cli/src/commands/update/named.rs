//! Which instances know the API by a balancer that is not wanted any more, and which groups would still tell the next one.

use crate::commands::look::{Looked, aws_error};
use crate::error::CommandError;
use aws_cloud::fleet::{observe_fleet, told, told_next};
use cloud::held::Leaving;
use engine::Id;
use std::collections::BTreeMap;

/// By balancer, the instances that were told its addresses at their launch, and the groups whose launch template names it
/// before this update: a group may launch an instance while the update runs. One of which nobody knows what it was told counts
/// as told. Asks AWS only if there is such a balancer.
pub async fn balancers(
    looked: &Looked,
    leaving: &[Leaving],
) -> Result<BTreeMap<Id, Vec<String>>, CommandError> {
    let mut named: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    if leaving.is_empty() {
        return Ok(named);
    }
    let (clients, cluster) = (&looked.clients, &looked.target.cluster);
    let fleet = observe_fleet(clients, cluster).await.map_err(aws_error)?;
    let mut told = told(clients, &fleet).await.map_err(aws_error)?;
    for mut next in told_next(clients, &fleet).await.map_err(aws_error)? {
        next.name = format!("group {}", next.name);
        told.push(next);
    }
    for one in told {
        for balancer in leaving {
            let names = |user_data: &str| balancer.is_named_in(user_data);
            if one.user_data.as_deref().is_none_or(names) {
                let by = named.entry(balancer.id.clone()).or_default();
                by.push(one.name.clone());
            }
        }
    }
    Ok(named)
}
