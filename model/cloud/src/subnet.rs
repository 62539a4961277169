//! A subnet: one zone's slice of the VPC.

use super::listing::{ListingPosition, Section};
use super::{Kind, SubnetIpv6Range, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// A subnet. Zone and ranges cannot change, and a successor could not overlap it; an IPv6 range can be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// `SUBNET.NAME`.
    pub name: String,
    pub vpc_id: Ref,
    pub availability_zone: String,
    /// Its IPv4 range; `None`: IPv6 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr_block: Option<String>,
    /// Its IPv6 range; `None`: whatever it has is not the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block: Option<SubnetIpv6Range>,
    /// Instances get an IPv6 address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assign_ipv6_address_on_creation: bool,
    /// The resolver answers with addresses of NAT64 for names that have IPv4 addresses only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_dns64: bool,
    /// `resource-name` or `ip-name`: how instances in it are named.
    pub private_dns_hostname_type_on_launch: String,
    /// Resource names get an A record.
    pub enable_resource_name_dns_a_record_on_launch: bool,
    /// Resource names get an AAAA record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_resource_name_dns_aaaa_record_on_launch: bool,
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
        let (want_v6, have_v6) = (self.ipv6_cidr_block, have.ipv6_cidr_block);
        let same_v6 = want_v6.is_none() || have_v6.is_none() || want_v6 == have_v6;
        let same = self.cidr_block == have.cidr_block
            && self.availability_zone == have.availability_zone
            && same_v6;
        (!same).then(|| {
            format!(
                "a subnet cannot move from {} in {} to {} in {}: add a subnet under another name, move the instance groups to it, then remove this one",
                have.ranges(), have.availability_zone, self.ranges(), self.availability_zone
            )
        })
    }

    /// An IPv6 range that is not in the spec stays, with what belongs to it: others may have given it to the subnet.
    fn accepting(&self, have: &Self) -> Self {
        if self.ipv6_cidr_block.is_some() {
            return self.clone();
        }
        Self {
            ipv6_cidr_block: have.ipv6_cidr_block,
            assign_ipv6_address_on_creation: have.assign_ipv6_address_on_creation,
            enable_resource_name_dns_aaaa_record_on_launch: have
                .enable_resource_name_dns_aaaa_record_on_launch,
            enable_dns64: have.enable_dns64,
            ..self.clone()
        }
    }

    fn describe(&self) -> String {
        let kind = self.tags.get("SubnetType").map_or("", String::as_str);
        format!("{} in {} {kind}", self.ranges(), self.availability_zone)
            .trim_end()
            .to_owned()
    }
}

impl Subnet {
    /// Its ranges, as people read them.
    fn ranges(&self) -> String {
        let v6 = self.ipv6_cidr_block.map(|range| range.to_string());
        let both: Vec<&str> = self
            .cidr_block
            .iter()
            .chain(&v6)
            .map(String::as_str)
            .collect();
        both.join(" and ")
    }
}
