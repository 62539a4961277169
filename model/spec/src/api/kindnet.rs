//! kindnet: `spec.networking.kindnet`.

use super::fields::spec;

spec! {
    /// The network plugin kindnet, which connects the pods of one subnet by routes. All instances must be in one subnet.
    pub struct KindnetNetworkingSpec {
        /// Version of its image; only releases of 1.0 are possible. Default that of the release of kctl.
        pub version: Option<String>,
        /// Enforces NetworkPolicies. Default true.
        pub network_policies: Option<bool>,
        /// Enforces AdminNetworkPolicies.
        pub admin_network_policies: Option<bool>,
        /// Enforces BaselineAdminNetworkPolicies.
        pub baseline_admin_network_policies: Option<bool>,
        /// Keeps answers of the cluster's DNS on the node.
        pub dns_caching: Option<bool>,
        /// Pods of IPv6 clusters reach IPv4 addresses. Default false.
        pub nat64: Option<bool>,
        /// Packets after which a connection skips most of the kernel's rules; 0 for never. Default 0.
        pub fast_path_threshold: Option<i32>,
        /// For which destinations pods have the address of their node. Default outside of the VPC, of pods and of Services.
        pub masquerade: Option<KindnetMasqueradeSpec>,
        /// How much the agent logs. Default 2.
        pub log_level: Option<i32>,
    }

    /// For which destinations pods have the address of their node. The section is taken as it is.
    pub struct KindnetMasqueradeSpec {
        /// False: pods keep their addresses everywhere. Default true.
        pub enabled: Option<bool>,
        /// Ranges of destinations for which pods keep their addresses. Default none if the section is there.
        #[serde(rename = "nonMasqueradeCIDRs")]
        pub non_masquerade_cidrs: Vec<String>,
    }
}
