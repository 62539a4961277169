//! The Amazon VPC CNI: `spec.networking.amazonvpc`.

use super::etcd::EnvVar;
use super::fields::spec;

spec! {
    /// The network plugin of Amazon, which gives pods addresses of the VPC.
    pub struct AmazonVPCNetworkingSpec {
        /// Image of the agent, instead of the usual one.
        pub image_name: Option<String>,
        /// Image of the init container, which installs the plugins.
        pub init_image_name: Option<String>,
        /// Image of the agent that enforces NetworkPolicies.
        pub network_policy_agent_image: Option<String>,
        /// Variables of the agent: the plugin's settings.
        pub env: Vec<EnvVar>,
    }
}
