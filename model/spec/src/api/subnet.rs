//! Subnets of a cluster: `spec.subnets`.

use super::enums::SubnetType;
use super::fields::spec;

spec! {
    /// One subnet: a slice of the VPC in one zone.
    pub struct ClusterSubnetSpec {
        /// Name, unique in the cluster; groups refer to it.
        pub name: String,
        pub zone: String,
        /// Region; derived from the zone.
        pub region: Option<String>,
        /// IPv4 range.
        pub cidr: Option<String>,
        /// IPv6 range, or `/64#N` for the Nth of the VPC's.
        #[serde(rename = "ipv6CIDR")]
        pub ipv6_cidr: Option<String>,
        /// An existing subnet to use, `subnet-...`; kctl then never creates or deletes it.
        pub id: Option<String>,
        /// How a private subnet reaches the internet: `nat-...`, `eipalloc-...`, `i-...`, `tgw-...` or
        /// `External`.
        pub egress: Option<String>,
        /// Who is in it: public, private, or the utility side of private ones.
        #[serde(rename = "type")]
        pub type_: Option<SubnetType>,
        /// Existing address of the NAT gateway.
        #[serde(rename = "publicIP")]
        pub public_ip: Option<String>,
        /// Further routes of its route table.
        pub additional_routes: Vec<RouteSpec>,
    }

    /// One more route of a subnet.
    pub struct RouteSpec {
        pub cidr: String,
        /// `pcx-...`, `i-...`, `nat-...`, `tgw-...`, `igw-...` or `eigw-...`.
        pub target: String,
    }
}

impl ClusterSubnetSpec {
    /// Its type; public where none is given.
    pub fn subnet_type(&self) -> SubnetType {
        self.type_.unwrap_or(SubnetType::Public)
    }
}
