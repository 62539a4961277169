//! Which machines that run know the API by a balancer that is not wanted any more.

use crate::commands::look::{Looked, aws_error};
use crate::error::CommandError;
use aws::fleet::{fleet, told};
use model::cloud::held::Leaving;
use model::engine::Id;
use std::collections::BTreeMap;

/// By balancer, the instances that were told its addresses at their launch. One of which nobody knows what it was told
/// counts as told. Asks AWS only if there is such a balancer.
pub async fn balancers(
    looked: &Looked,
    leaving: &[Leaving],
) -> Result<BTreeMap<Id, Vec<String>>, CommandError> {
    let mut named: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    if leaving.is_empty() {
        return Ok(named);
    }
    let (clients, cluster) = (&looked.clients, &looked.target.cluster);
    let fleet = fleet(clients, cluster).await.map_err(aws_error)?;
    for machine in told(clients, &fleet).await.map_err(aws_error)? {
        for balancer in leaving {
            let names = |user_data: &str| balancer.is_named_in(user_data);
            if machine.user_data.as_deref().is_none_or(names) {
                let by = named.entry(balancer.id.clone()).or_default();
                by.push(machine.instance.clone());
            }
        }
    }
    Ok(named)
}
