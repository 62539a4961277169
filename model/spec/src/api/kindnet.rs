//! kindnet: `spec.networking.kindnet`.

use super::fields::spec;

spec! {
    /// The network plugin kindnet.
    pub struct KindnetNetworkingSpec {
        /// Its version, `v1.0.1`.
        pub version: Option<String>,
        /// False: NetworkPolicies are not enforced.
        pub network_policies: Option<bool>,
        /// True: AdminNetworkPolicies are enforced.
        pub admin_network_policies: Option<bool>,
        /// True: BaselineAdminNetworkPolicies are enforced.
        pub baseline_admin_network_policies: Option<bool>,
        /// True: answers of the cluster's DNS are cached on the node.
        pub dns_caching: Option<bool>,
        /// True: in IPv6 clusters, pods reach IPv4 addresses.
        pub nat64: Option<bool>,
        /// Packets after which a connection takes the fast path; 0: none does.
        pub fast_path_threshold: Option<i32>,
        /// Which traffic of pods gets the address of their node.
        pub masquerade: Option<KindnetMasqueradeSpec>,
        /// How much the agent logs.
        pub log_level: Option<i32>,
    }

    /// Masquerading by kindnet.
    pub struct KindnetMasqueradeSpec {
        /// False: pods keep their addresses.
        pub enabled: Option<bool>,
        /// Destinations for which pods keep their addresses.
        #[serde(rename = "nonMasqueradeCIDRs")]
        pub non_masquerade_cidrs: Vec<String>,
    }
}
