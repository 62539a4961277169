//! The AWS cloud controller manager's flags.

use super::naming::{Naming, collect_flags};
use super::{Error, scheduler};
use crate::api::cloud_controller_manager::CloudControllerManagerConfig;
use node::components::Flags;

const COMPONENT: &str = "cloud-controller-manager";

/// Fields whose flags differ from the naming rule, as in kOps.
pub(super) const NAMING: Naming = Naming {
    component: COMPONENT,
    named: &[
        ("allocateNodeCIDRs", "allocate-node-cidrs"),
        ("cidrAllocatorType", "cidr-allocator-type"),
        ("logLevel", "v"),
    ],
    none: &[
        "azureNodeManagerImage",
        "cpuRequest",
        "image",
        "leaderElection",
    ],
    empty: &[("logLevel", "0")],
    repeated: &[],
};

/// Flags of the AWS cloud controller manager. The pod adds the path of its configuration file.
pub(in crate::expand) fn cloud_controller_manager_flags(
    config: &CloudControllerManagerConfig,
) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    scheduler::add_leader_election(config.leader_election.as_ref(), COMPONENT, &mut flags)?;
    Ok(flags)
}
