//! The AWS cloud controller manager's flags.

use super::naming::{Naming, flags};
use super::{Error, scheduler};
use crate::api::cloud_controller_manager::CloudControllerManagerConfig;
use node::components::Flags;

const COMPONENT: &str = "cloud-controller-manager";

/// kOps' exceptions.
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

/// Flags of the AWS cloud controller manager. Where its configuration file lies is the pod's to add.
pub(in crate::expand) fn cloud_controller_manager(
    config: &CloudControllerManagerConfig,
) -> Result<Flags, Error> {
    let mut flags = flags(config, &NAMING)?;
    scheduler::elect(config.leader_election.as_ref(), COMPONENT, &mut flags)?;
    Ok(flags)
}
