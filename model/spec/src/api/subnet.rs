//! Subnets of a cluster: `spec.subnets`.

use super::enums::SubnetType;
use super::fields::spec;

spec! {
    /// A subnet of the cluster: a part of the VPC in one zone.
    pub struct ClusterSubnetSpec {
        /// Name of the subnet, unique in the cluster, by which groups refer to it. Usually that of its zone.
        pub name: String,
        /// Availability zone of the subnet, such as `eu-west-1a`.
        pub zone: String,
        /// Google Cloud only.
        pub region: Option<String>,
        /// IPv4 range of the subnet, inside the VPC's. Default a free part of it.
        pub cidr: Option<String>,
        /// IPv6 range of the subnet, or `/64#N` for a part of the VPC's range, counted from 0 in hex. Default none.
        #[serde(rename = "ipv6CIDR")]
        pub ipv6_cidr: Option<String>,
        /// ID of an existing subnet, `subnet-...`, which kctl uses and never changes or deletes. It needs `networkID`.
        pub id: Option<String>,
        /// How a private subnet reaches the internet: `nat-...`, `eipalloc-...`, `i-...`, `tgw-...`, or `External` if you
        /// route. Default a NAT gateway for each zone.
        pub egress: Option<String>,
        /// Who is in the subnet. `Public`: instances with public addresses; `Private`: instances behind NAT; `DualStack`:
        /// private ones with IPv4 and IPv6; `Utility`: NAT gateways and public load balancers. Default `Public`.
        #[serde(rename = "type")]
        pub type_: Option<SubnetType>,
        /// Address of an existing Elastic IP for the NAT gateway of a private subnet. Default a new one.
        #[serde(rename = "publicIP")]
        pub public_ip: Option<String>,
        /// Further routes of a private subnet's route table.
        pub additional_routes: Vec<RouteSpec>,
    }

    /// A further route of a private subnet.
    pub struct RouteSpec {
        /// Range of the destinations.
        pub cidr: String,
        /// Where packets go: `pcx-...`, `i-...`, `nat-...`, `tgw-...`, `igw-...` or `eigw-...`.
        pub target: String,
    }
}

impl ClusterSubnetSpec {
    /// Its type; public where none is given.
    pub fn subnet_type(&self) -> SubnetType {
        self.type_.unwrap_or(SubnetType::Public)
    }
}
