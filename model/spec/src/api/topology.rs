//! Bastion and DNS: `spec.topology`.

use super::enums::{DnsType, LoadBalancerType};
use super::fields::spec;

spec! {
    /// How instances and names can be reached.
    pub struct TopologySpec {
        /// `public` or `private`; kOps follows the subnets instead.
        pub masters: Option<String>,
        /// `public` or `private`; kOps follows the subnets instead.
        pub nodes: Option<String>,
        pub bastion: Option<BastionSpec>,
        /// Which DNS zone is used.
        pub dns: Option<DNSSpec>,
    }

    /// The SSH bastion of a private cluster.
    pub struct BastionSpec {
        /// Its name; default `bastion.NAME`.
        pub bastion_public_name: Option<String>,
        /// Seconds before an idle connection closes; Classic only.
        pub idle_timeout_seconds: Option<i32>,
        pub load_balancer: Option<BastionLoadBalancerSpec>,
    }

    /// The bastion's load balancer.
    pub struct BastionLoadBalancerSpec {
        pub additional_security_groups: Vec<String>,
        /// Reachable from the internet or from the VPC only.
        #[serde(rename = "type")]
        pub type_: Option<LoadBalancerType>,
    }

    /// Which DNS zone is used.
    pub struct DNSSpec {
        /// A public zone, a private one, or none at all.
        #[serde(rename = "type")]
        pub type_: Option<DnsType>,
    }
}
