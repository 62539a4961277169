//! How the API is reached: `spec.api`.

use super::enums::{LoadBalancerClass, LoadBalancerType};
use super::fields::spec;

spec! {
    /// DNS names or a load balancer; one of the two.
    pub struct APISpec {
        /// The name resolves to the control-plane instances.
        pub dns: Option<DNSAccessSpec>,
        /// The name resolves to a load balancer.
        pub load_balancer: Option<LoadBalancerAccessSpec>,
    }

    /// Marks access by DNS; has no fields.
    pub struct DNSAccessSpec {
    }

    /// The API's load balancer.
    pub struct LoadBalancerAccessSpec {
        /// Only `Network`; kOps reads a missing class as `Classic`.
        pub class: Option<LoadBalancerClass>,
        /// Reachable from the internet or from the VPC only.
        #[serde(rename = "type")]
        pub type_: Option<LoadBalancerType>,
        /// Seconds before an idle connection closes; Classic only.
        pub idle_timeout_seconds: Option<i32>,
        /// An existing security group instead of our own.
        pub security_group_override: Option<String>,
        pub additional_security_groups: Vec<String>,
        /// True: instances use it too.
        pub use_for_internal_api: Option<bool>,
        /// ARN of an ACM certificate for port 443.
        pub ssl_certificate: Option<String>,
        /// Name of the TLS policy of that listener.
        pub ssl_policy: Option<String>,
        /// True: spreads over the targets of all zones.
        pub cross_zone_load_balancing: Option<bool>,
        /// Subnets it is placed in; default one per zone.
        pub subnets: Vec<LoadBalancerSubnetSpec>,
        /// Access log in S3.
        pub access_log: Option<AccessLogSpec>,
    }

    /// Placement of a load balancer in one subnet.
    pub struct LoadBalancerSubnetSpec {
        /// Name of a subnet of the cluster.
        pub name: String,
        /// Fixed private address; internal only.
        #[serde(rename = "privateIPv4Address")]
        pub private_ipv4_address: Option<String>,
        /// Elastic IP, `eipalloc-...`; public only.
        pub allocation_id: Option<String>,
    }

    /// Access log of a load balancer.
    pub struct AccessLogSpec {
        /// Minutes between files: 5 or 60; Classic only.
        pub interval: Option<i32>,
        /// Name of the bucket.
        pub bucket: Option<String>,
        /// Prefix of the keys.
        pub bucket_prefix: Option<String>,
    }
}
