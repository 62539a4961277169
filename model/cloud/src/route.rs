//! Route tables, their routes, and which subnet uses which.

use super::listing::{ListingPosition, PartOf, Section, reference_words};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTable {
    /// The cluster's name (public) or `private-ZONE.NAME`.
    pub name: String,
    pub vpc_id: Ref,
    /// Tags; `kubernetes.io/kops/role` says `public` or `private-ZONE`.
    pub tags: Tags,
}

impl Kind for RouteTable {
    const TYPE: &'static str = "route_table";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 8);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}

/// Where a route leads. Serialized as the one AWS field that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteTarget {
    GatewayId(Ref),
    NatGatewayId(Ref),
    InstanceId(Ref),
    TransitGatewayId(Ref),
    VpcPeeringConnectionId(Ref),
    /// An egress-only internet gateway.
    EgressOnlyInternetGatewayId(Ref),
}

impl RouteTarget {
    /// What it refers to.
    pub fn reference(&self) -> &Ref {
        match self {
            Self::GatewayId(to)
            | Self::NatGatewayId(to)
            | Self::InstanceId(to)
            | Self::TransitGatewayId(to)
            | Self::VpcPeeringConnectionId(to)
            | Self::EgressOnlyInternetGatewayId(to) => to,
        }
    }

    /// What it refers to, to be changed.
    pub fn reference_mut(&mut self) -> &mut Ref {
        match self {
            Self::GatewayId(to)
            | Self::NatGatewayId(to)
            | Self::InstanceId(to)
            | Self::TransitGatewayId(to)
            | Self::VpcPeeringConnectionId(to)
            | Self::EgressOnlyInternetGatewayId(to) => to,
        }
    }
}

/// One route. Table and destination identify it; its target can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// kOps' task name: `route-0.0.0.0/0`, `route-private-ZONE-0.0.0.0/0`, `route-SUBNET-CIDR`.
    pub name: String,
    pub route_table_id: Ref,
    /// Destination, IPv4 or IPv6.
    pub destination: String,
    #[serde(flatten)]
    pub target: RouteTarget,
}

impl Kind for Route {
    const TYPE: &'static str = "route";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 9);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.route_table_id, self.target.reference_mut()]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.route_table_id, "route", "routes")
    }

    fn describe(&self) -> String {
        format!(
            "{} to {}",
            self.destination,
            reference_words(self.target.reference())
        )
    }
}

/// Which route table a subnet uses. The subnet identifies it; the table can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTableAssociation {
    /// `SUBNET.NAME`, for private subnets `private-SUBNET.NAME`.
    pub name: String,
    pub route_table_id: Ref,
    pub subnet_id: Ref,
}

impl Kind for RouteTableAssociation {
    const TYPE: &'static str = "route_table_association";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 10);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.route_table_id, &mut self.subnet_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.route_table_id, "subnet", "subnets")
    }

    fn describe(&self) -> String {
        format!("for {}", reference_words(&self.subnet_id))
    }
}
