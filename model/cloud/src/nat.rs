//! Elastic IPs and NAT gateways.

use super::{Kind, Rename, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// An elastic IP for a NAT gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eip {
    /// `ZONE.NAME`.
    pub name: String,
    /// Always `vpc`.
    pub domain: String,
    /// Tags.
    pub tags: Tags,
}

impl Kind for Eip {
    const TYPE: &'static str = "eip";
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}

/// A NAT gateway. Its subnet and address cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatGateway {
    /// `ZONE.NAME`.
    pub name: String,
    /// The utility subnet it stands in.
    pub subnet_id: Ref,
    /// Its elastic IP.
    pub allocation_id: Ref,
    /// Tags.
    pub tags: Tags,
}

impl Kind for NatGateway {
    const TYPE: &'static str = "nat_gateway";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.subnet_id.clone(), self.allocation_id.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            subnet_id: rename(&self.subnet_id),
            allocation_id: rename(&self.allocation_id),
            ..self.clone()
        }
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let same = self.subnet_id == have.subnet_id && self.allocation_id == have.allocation_id;
        (!same).then(|| {
            "a NAT gateway cannot move to another subnet or address: set the private subnets' egress to External, update, then set it back and update again".to_owned()
        })
    }
}
