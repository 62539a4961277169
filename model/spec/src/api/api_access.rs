//! How the API is reached: `spec.api`.

use super::enums::{LoadBalancerClass, LoadBalancerType};
use super::fields::spec;

spec! {
    /// How clients reach the API: by DNS names of the control planes, or through a load balancer.
    pub struct APISpec {
        /// Clients reach the control planes by the DNS name `masterPublicName`. It needs a hosted zone.
        pub dns: Option<DNSAccessSpec>,
        /// Clients reach the API through a network load balancer.
        pub load_balancer: Option<LoadBalancerAccessSpec>,
        /// Every node has a proxy of the API on loopback, which passes connections on to a control plane that is ready. kctl's own
        /// field. Default: nodes reach the API by `masterInternalName`.
        pub node_proxy: Option<NodeProxySpec>,
    }

    /// Access by DNS names. It has no fields: write `dns: {}`.
    pub struct DNSAccessSpec {
    }

    /// The proxy of the API on every node. It has no fields: write `nodeProxy: {}`.
    pub struct NodeProxySpec {
    }

    /// The load balancer of the API.
    pub struct LoadBalancerAccessSpec {
        /// Class of the load balancer; only `Network` is possible.
        pub class: Option<LoadBalancerClass>,
        /// `Public`: reachable from the internet. `Internal`: from the VPC and networks connected to it. Default `Public`.
        #[serde(rename = "type")]
        pub type_: Option<LoadBalancerType>,
        /// Seconds after which an idle connection is closed. It is for classic load balancers: no effect.
        pub idle_timeout_seconds: Option<i32>,
        /// ID of an existing security group that takes the place of the one that kctl makes.
        pub security_group_override: Option<String>,
        /// IDs of further security groups of the load balancer.
        pub additional_security_groups: Vec<String>,
        /// Instances reach the API through the load balancer too, which must be `Internal` where there are DNS names. Default
        /// false.
        pub use_for_internal_api: Option<bool>,
        /// ARN of an ACM certificate. Port 443 then has this certificate, and client certificates work on port 8443.
        pub ssl_certificate: Option<String>,
        /// Name of the TLS policy for `sslCertificate`. Default `ELBSecurityPolicy-2016-08`.
        pub ssl_policy: Option<String>,
        /// Sends requests to the control planes of all zones, not only of the zone they arrive in. Default true without DNS
        /// names, else false.
        pub cross_zone_load_balancing: Option<bool>,
        /// Subnets of the load balancer, one for each zone. Default one for each zone, chosen by type.
        pub subnets: Vec<LoadBalancerSubnetSpec>,
        /// Where the load balancer writes its access log. Default nowhere.
        pub access_log: Option<AccessLogSpec>,
    }

    /// One subnet of the load balancer.
    pub struct LoadBalancerSubnetSpec {
        /// Name of a subnet of the cluster.
        pub name: String,
        /// Fixed IPv4 address of the load balancer in the subnet. Internal load balancers only.
        #[serde(rename = "privateIPv4Address")]
        pub private_ipv4_address: Option<String>,
        /// ID of an Elastic IP, `eipalloc-...`, as its address in the subnet. Public load balancers only.
        pub allocation_id: Option<String>,
    }

    /// Access log of the load balancer in S3.
    pub struct AccessLogSpec {
        /// Minutes between two files. Network load balancers have one interval: no effect.
        pub interval: Option<i32>,
        /// Name of the bucket, which has to let the load balancer write.
        pub bucket: Option<String>,
        /// What the names of the files in the bucket begin with.
        pub bucket_prefix: Option<String>,
    }
}
