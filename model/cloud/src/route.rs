//! Route tables, their routes, and which subnet uses which.

use super::{Kind, Rename, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// A route table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTable {
    /// The cluster's name (public) or `private-ZONE.NAME`.
    pub name: String,
    /// The VPC.
    pub vpc_id: Ref,
    /// Tags; `kubernetes.io/kops/role` says `public` or `private-ZONE`.
    pub tags: Tags,
}

impl Kind for RouteTable {
    const TYPE: &'static str = "route_table";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.vpc_id.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            vpc_id: rename(&self.vpc_id),
            ..self.clone()
        }
    }
}

/// Where a route leads. Serialized as the one AWS field that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteTarget {
    /// An internet gateway.
    GatewayId(Ref),
    /// A NAT gateway.
    NatGatewayId(Ref),
    /// An instance.
    InstanceId(Ref),
    /// A transit gateway.
    TransitGatewayId(Ref),
    /// A peering connection.
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

    /// Itself with its reference renamed.
    #[must_use]
    pub fn renamed(&self, rename: Rename<'_>) -> Self {
        let to = rename(self.reference());
        match self {
            Self::GatewayId(_) => Self::GatewayId(to),
            Self::NatGatewayId(_) => Self::NatGatewayId(to),
            Self::InstanceId(_) => Self::InstanceId(to),
            Self::TransitGatewayId(_) => Self::TransitGatewayId(to),
            Self::VpcPeeringConnectionId(_) => Self::VpcPeeringConnectionId(to),
            Self::EgressOnlyInternetGatewayId(_) => Self::EgressOnlyInternetGatewayId(to),
        }
    }
}

/// One route. Table and destination identify it; its target can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// kOps' task name: `route-0.0.0.0/0`, `route-private-ZONE-0.0.0.0/0`, `route-SUBNET-CIDR`.
    pub name: String,
    /// The table.
    pub route_table_id: Ref,
    /// Destination, IPv4 or IPv6.
    pub destination: String,
    /// Where it leads.
    #[serde(flatten)]
    pub target: RouteTarget,
}

impl Kind for Route {
    const TYPE: &'static str = "route";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.route_table_id.clone(), self.target.reference().clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            route_table_id: rename(&self.route_table_id),
            target: self.target.renamed(rename),
            ..self.clone()
        }
    }
}

/// Which route table a subnet uses. The subnet identifies it; the table can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTableAssociation {
    /// `SUBNET.NAME`, for private subnets `private-SUBNET.NAME`.
    pub name: String,
    /// The table.
    pub route_table_id: Ref,
    /// The subnet.
    pub subnet_id: Ref,
}

impl Kind for RouteTableAssociation {
    const TYPE: &'static str = "route_table_association";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.route_table_id.clone(), self.subnet_id.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            route_table_id: rename(&self.route_table_id),
            subnet_id: rename(&self.subnet_id),
            ..self.clone()
        }
    }
}
