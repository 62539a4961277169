//! A subnet: one zone's slice of the VPC.

use super::listing::{ListingPosition, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// A subnet. Zone and range cannot change, and a successor could not overlap it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// `SUBNET.NAME`.
    pub name: String,
    pub vpc_id: Ref,
    pub availability_zone: String,
    /// Its IPv4 range.
    pub cidr_block: String,
    /// `resource-name` or `ip-name`: how instances in it are named.
    pub private_dns_hostname_type_on_launch: String,
    /// Resource names get an A record.
    pub enable_resource_name_dns_a_record_on_launch: bool,
    pub tags: Tags,
}

impl Kind for Subnet {
    const TYPE: &'static str = "subnet";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 5);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let same =
            self.cidr_block == have.cidr_block && self.availability_zone == have.availability_zone;
        (!same).then(|| {
            format!(
                "a subnet cannot move from {} in {} to {} in {}: add a subnet under another name, move the instance groups to it, then remove this one",
                have.cidr_block, have.availability_zone, self.cidr_block, self.availability_zone
            )
        })
    }

    fn describe(&self) -> String {
        let kind = self.tags.get("SubnetType").map_or("", String::as_str);
        format!("{} in {} {kind}", self.cidr_block, self.availability_zone)
            .trim_end()
            .to_owned()
    }
}
