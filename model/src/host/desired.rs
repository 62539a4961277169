//! The desired state of a machine, from its group's configuration and what it is.

use super::{Error, HostResource};
use crate::node::{Host, NodeConfig};

/// Everything that the machine is to have. Pure.
pub fn desired(_config: &NodeConfig, _host: &Host) -> Result<Vec<HostResource>, Error> {
    Ok(Vec::new())
}
