//! kube-router: `spec.networking.kuberouter`.

use super::fields::spec;

spec! {
    /// The network plugin kube-router.
    pub struct KuberouterNetworkingSpec {
        /// True: NetworkPolicies are enforced by nftables instead of iptables and ipsets.
        #[serde(rename = "useNFTablesForNetpol")]
        pub use_nftables_for_netpol: Option<bool>,
    }
}
