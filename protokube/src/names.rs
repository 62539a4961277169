//! Names that follow instances: etcd members in `/etc/hosts` and Route 53, the API and the bootstrap endpoint in Route 53.

mod members;
mod own_members;
mod records;
mod zone;

#[cfg(test)]
mod laws_test;

pub use members::{MemberNames, restore_names};
pub use own_members::{MEMBER_ROUNDS, MemberPublisher};
pub use records::{FollowedName, PublishedRecords, followed_names, needed_changes};
pub use zone::{ApiEndpoints, ApiServers, Route53, ZonePublisher, ZoneRecords, read_zone_id};
pub(crate) use zone::{parse_completed_fields, parse_zone_id, read_completed_spec};
