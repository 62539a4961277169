//! The egress-only internet gateway of an IPv6 cluster.

use super::listing::{ListingPosition, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// The egress-only internet gateway: IPv6 from private subnets leaves through it, and nothing comes in. Its VPC cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressOnlyInternetGateway {
    pub name: String,
    pub vpc_id: Ref,
    pub tags: Tags,
}

impl Kind for EgressOnlyInternetGateway {
    const TYPE: &'static str = "egress_only_internet_gateway";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 4);

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
        (self.vpc_id != have.vpc_id)
            .then(|| "an egress-only internet gateway cannot move to another VPC".to_owned())
    }
}
