//! kube-router: `spec.networking.kuberouter`.

use super::fields::spec;

spec! {
    /// The network plugin kube-router, which connects pods by routes, enforces NetworkPolicies and takes the place of
    /// kube-proxy.
    pub struct KuberouterNetworkingSpec {
        /// Enforces NetworkPolicies with nftables, not with iptables and ipsets. Default false.
        #[serde(rename = "useNFTablesForNetpol")]
        pub use_nftables_for_netpol: Option<bool>,
    }
}
