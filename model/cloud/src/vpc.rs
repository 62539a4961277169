//! The VPC and what hangs on it: extra address ranges, DHCP options, internet gateways.

use super::listing::{ListingPosition, PartOf, Section};
use super::{Kind, Tags};
use engine::Ref;
use node::names;
use serde::{Deserialize, Serialize};

/// The cluster's VPC. Its address range cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vpc {
    pub name: String,
    /// First IPv4 range.
    pub cidr_block: String,
    /// Ask AWS for an IPv6 /56.
    pub amazon_provided_ipv6_cidr_block: bool,
    /// Instances get DNS names.
    pub enable_dns_hostnames: bool,
    /// The Amazon resolver answers inside.
    pub enable_dns_support: bool,
    pub tags: Tags,
}

impl Kind for Vpc {
    const TYPE: &'static str = "vpc";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 0);
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        (self.cidr_block != have.cidr_block).then(|| {
            format!(
                "a VPC's range cannot change from {} to {}: keep spec.networkCIDR, and add ranges with spec.additionalNetworkCIDRs",
                have.cidr_block, self.cidr_block
            )
        })
    }

    fn describe(&self) -> String {
        self.cidr_block.clone()
    }
}

/// One more IPv4 range of the VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcIpv4CidrBlockAssociation {
    pub vpc_id: Ref,
    /// The range; also its logical name.
    pub cidr_block: String,
}

impl Kind for VpcIpv4CidrBlockAssociation {
    const TYPE: &'static str = "vpc_ipv4_cidr_block_association";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 1);

    fn name(&self) -> String {
        self.cidr_block.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.vpc_id, "further range", "further ranges")
    }
}

/// DHCP options. Immutable: a change makes the next one of the series (`NAME`, `NAME-2`, ...).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcDhcpOptions {
    /// Logical name: the cluster's name, from the second on with `-REVISION`.
    pub name: String,
    pub domain_name: String,
    pub domain_name_servers: Vec<String>,
    /// Tags; `Name` is the name of the first of the series, `kops.k8s.io/revision` the place in it.
    pub tags: Tags,
}

impl Kind for VpcDhcpOptions {
    const TYPE: &'static str = "vpc_dhcp_options";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 2);
    const HAS_SUCCESSORS: bool = true;
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn can_become(&self, want: &Self) -> bool {
        self.domain_name == want.domain_name && self.domain_name_servers == want.domain_name_servers
    }

    fn move_in_series(&mut self, base: &str, revision: u32) {
        self.name = names::series_name(base, revision);
    }

    fn describe(&self) -> String {
        self.domain_name.clone()
    }
}

/// Which DHCP options the VPC uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcDhcpOptionsAssociation {
    pub name: String,
    pub vpc_id: Ref,
    pub dhcp_options_id: Ref,
}

impl Kind for VpcDhcpOptionsAssociation {
    const TYPE: &'static str = "vpc_dhcp_options_association";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 3);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id, &mut self.dhcp_options_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.vpc_id, "DHCP options", "DHCP options")
    }
}

/// The internet gateway, attached to the VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InternetGateway {
    pub name: String,
    /// The VPC it is attached to; `None` only as observed, between creation and attachment.
    pub vpc_id: Option<Ref>,
    pub tags: Tags,
}

impl Kind for InternetGateway {
    const TYPE: &'static str = "internet_gateway";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 4);
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        self.vpc_id.iter_mut().collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}
