//! Names that follow machines: etcd's members in `/etc/hosts`, the API and the bootstrap endpoint in Route 53.

mod hosts;
mod members;
mod records;
mod zone;

pub use hosts::entries;
pub use members::{Members, restore};
pub use records::{Published, Wanted, changes, wanted};
pub use zone::{ApiServers, Endpoints, Records, Route53, Zone, zone_of};
