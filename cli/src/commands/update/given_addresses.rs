//! Refuses a plan that creates something with an address that is in use.

use crate::commands::observe::{ObservedCluster, aws_error};
use crate::error::{CommandError, ErrorKind};
use anyhow::anyhow;
use aws_cloud::address_holders;
use cloud::Cloud;
use cloud::given_addresses::{GivenAddress, addresses_to_take};
use engine::{Plan, Snapshot};

/// Calls AWS only if the plan creates something with an address of the user's.
pub async fn check_given_addresses(
    observed: &ObservedCluster,
    plan: &Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
) -> Result<(), CommandError> {
    let taken = addresses_to_take(plan, snapshot);
    if taken.is_empty() {
        return Ok(());
    }
    let holders = address_holders(&observed.clients, taken.keys()).await;
    let in_use = holders.map_err(aws_error)?.into_iter();
    let in_use = in_use.filter_map(|(given, holder)| {
        let by = taken.get(&given)?;
        let address = match &given {
            GivenAddress::Elastic(allocation) => allocation,
            GivenAddress::Private { address, .. } => address,
        };
        Some(format!("{by} needs {address}, which is in use ({holder})"))
    });
    let in_use: Vec<String> = in_use.collect();
    if in_use.is_empty() {
        return Ok(());
    }
    Err(CommandError::new(
        ErrorKind::Precondition,
        anyhow!(in_use.join("; ")),
        "release it there, or name another one in the spec (egress or publicIP of the subnet; allocationId or privateIPv4Address of the load \
         balancer), then repeat the command. A NAT gateway that is being deleted has its address for some minutes more",
    ))
}
