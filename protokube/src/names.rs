//! Names that follow instances: etcd members in `/etc/hosts`, the API and the bootstrap endpoint in Route 53.

mod hosts;
mod members;
mod records;
mod zone;

pub use hosts::parse_entries;
pub use members::{MemberNames, restore_names};
pub use records::{FollowedName, PublishedRecords, followed_names, needed_changes};
pub use zone::{ApiEndpoints, ApiServers, Route53, ZonePublisher, ZoneRecords, read_zone_id};
