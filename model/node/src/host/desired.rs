//! Builds the desired state of an instance from its NodeConfig and its facts.

mod base;
mod certificates;
mod digest;
mod downloads;
mod keysets;
mod needs;
mod paths;
mod units;
mod volumes;

pub use certificates::signing_duration;
pub use paths::check_paths;

use super::{Error, HostResource};
use crate::config::{InstanceFacts, NodeConfig};

/// All objects that the instance should have, with their dependencies, sorted by id. Pure.
pub fn desired_resources(
    config: &NodeConfig,
    host: &InstanceFacts,
) -> Result<Vec<HostResource>, Error> {
    check_paths(config, host)?;
    let mut things = base::base_objects(config, host)?;
    things.extend(volumes::volume_objects(config)?);
    things.extend(downloads::download_objects(config)?);
    things.extend(downloads::image_objects(config));
    things.extend(certificates::certificate_objects(config, host));
    things.extend(keysets::keyset_objects(config));
    things.extend(units::unit_objects(config, host));
    let all = needs::with_needs(&things, config);
    digest::with_digests(all)
}
