//! Bastion and DNS: `spec.topology`.

use super::enums::{DnsType, LoadBalancerType};
use super::fields::spec;

spec! {
    /// Which hosted zone has the cluster's names, and the bastion.
    pub struct TopologySpec {
        /// `public` or `private`. The types of the control planes' subnets decide: no effect.
        pub masters: Option<String>,
        /// `public` or `private`. The types of the nodes' subnets decide: no effect.
        pub nodes: Option<String>,
        /// The load balancer of the bastions, through which users reach private instances by SSH.
        pub bastion: Option<BastionSpec>,
        /// Which hosted zone has the cluster's names.
        pub dns: Option<DNSSpec>,
    }

    /// The load balancer of the bastions, through which users reach private instances by SSH.
    pub struct BastionSpec {
        /// DNS name of the bastions. Default none; `kctl create cluster` writes `bastion.NAME`.
        pub bastion_public_name: Option<String>,
        /// Seconds after which an idle connection is closed. Network load balancers have no such timeout: no effect.
        pub idle_timeout_seconds: Option<i32>,
        /// The load balancer itself.
        pub load_balancer: Option<BastionLoadBalancerSpec>,
    }

    /// The load balancer of the bastions.
    pub struct BastionLoadBalancerSpec {
        /// IDs of further security groups of the load balancer.
        pub additional_security_groups: Vec<String>,
        /// `Public`: reachable from the internet. `Internal`: from the VPC and networks connected to it. Default `Public`.
        #[serde(rename = "type")]
        pub type_: Option<LoadBalancerType>,
    }

    /// Which hosted zone has the cluster's names.
    pub struct DNSSpec {
        /// `Public` or `Private` hosted zone, or `None`: no names, and clients reach the API through its load balancer. Default
        /// `Public`; `kctl create cluster` writes `None` unless a zone is named.
        #[serde(rename = "type")]
        pub type_: Option<DnsType>,
    }
}
