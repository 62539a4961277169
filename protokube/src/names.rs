//! Names that follow machines: etcd's members in `/etc/hosts`, the API and the bootstrap endpoint in Route 53.

mod hosts;
mod members;
mod records;
mod zone;

pub use hosts::entries;
pub use members::{addresses, hosts_file};
pub use records::{Published, Wanted, changes, wanted};
pub use zone::{Records, Route53, publish, zone_of};
