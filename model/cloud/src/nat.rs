//! Elastic IPs and NAT gateways.

use super::listing::{ListingPosition, Section, reference_words};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// An elastic IP for a NAT gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eip {
    /// `ZONE.NAME`.
    pub name: String,
    /// Always `vpc`.
    pub domain: String,
    pub tags: Tags,
}

impl Kind for Eip {
    const TYPE: &'static str = "eip";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 6);
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
}

/// A NAT gateway. Its subnet and address cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatGateway {
    /// `ZONE.NAME`.
    pub name: String,
    /// The utility subnet it stands in.
    pub subnet_id: Ref,
    pub allocation_id: Ref,
    pub tags: Tags,
}

impl Kind for NatGateway {
    const TYPE: &'static str = "nat_gateway";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 7);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.subnet_id, &mut self.allocation_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let same = self.subnet_id == have.subnet_id && self.allocation_id == have.allocation_id;
        (!same).then(|| {
            "a NAT gateway cannot move to another subnet or address: set the private subnets' egress to External, update, then set it back and update again".to_owned()
        })
    }

    fn describe(&self) -> String {
        format!("in {}", reference_words(&self.subnet_id))
    }
}
