//! The Amazon VPC CNI: `spec.networking.amazonvpc`.

use super::etcd::EnvVar;
use super::fields::spec;

spec! {
    /// The Amazon VPC CNI, which gives pods addresses of the VPC.
    pub struct AmazonVPCNetworkingSpec {
        /// Image of the agent. Default that of the release.
        pub image_name: Option<String>,
        /// Image of the init container, which installs the plugin's programs. Default that of the release.
        pub init_image_name: Option<String>,
        /// Image of the agent that enforces NetworkPolicies. Default that of the release.
        pub network_policy_agent_image: Option<String>,
        /// Environment variables of the agent: the settings of the plugin, such as `WARM_IP_TARGET`.
        pub env: Vec<EnvVar>,
    }
}
