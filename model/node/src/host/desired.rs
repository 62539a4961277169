//! The desired state of a machine, from its group's configuration and what it is.

mod base;
mod certificates;
mod digest;
mod downloads;
mod keysets;
mod needs;
mod units;
mod volumes;

pub use certificates::signing_duration;

use super::{Error, HostResource};
use crate::config::{Host, NodeConfig};

/// Everything that the machine is to have, sorted by id. Pure.
pub fn desired(config: &NodeConfig, host: &Host) -> Result<Vec<HostResource>, Error> {
    let mut things = base::things(config, host)?;
    things.extend(volumes::things(config)?);
    things.extend(downloads::things(config)?);
    things.extend(certificates::things(config, host));
    things.extend(keysets::things(config));
    things.extend(units::things(config, host));
    let all = needs::with_needs(&things, config);
    digest::with_digests(all)
}
