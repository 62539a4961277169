//! Flags of kube-proxy: `spec.kubeProxy`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// kube-proxy of every instance, which answers for Services. The flag that a field becomes is in parentheses; without a
    /// default here, Kubernetes' own counts.
    pub struct KubeProxyConfig {
        /// Image of kube-proxy. Default that of `spec.kubernetesVersion`.
        pub image: Option<String>,
        /// CPU that its pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// CPU that its pod may use at most. Default no limit.
        pub cpu_limit: Option<Quantity>,
        /// Memory that its pod asks for. Default none.
        pub memory_request: Option<Quantity>,
        /// Memory that its pod may use at most. Default no limit.
        pub memory_limit: Option<Quantity>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// Range of the addresses of pods (`--cluster-cidr`). Default `spec.podCIDR`; none where pods have addresses of the
        /// VPC.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// Name of the Node, which has the ID of its instance: only kOps' placeholders are possible, and they have no effect.
        pub hostname_override: Option<String>,
        /// Address on which it listens (`--bind-address`). Default `0.0.0.0`.
        pub bind_address: Option<String>,
        /// Address of the API server (`--master`). Default one that instances know.
        pub master: Option<String>,
        /// Address and port of its metrics (`--metrics-bind-address`). Default `127.0.0.1:10249`.
        pub metrics_bind_address: Option<String>,
        /// Whether kube-proxy runs. False where the network plugin takes its place. Default true.
        pub enabled: Option<bool>,
        /// How it answers for Services: `iptables`, `ipvs` or `nftables` (`--proxy-mode`). Default `iptables`.
        pub proxy_mode: Option<String>,
        /// With `ipvs`: ranges whose rules it leaves alone (`--ipvs-exclude-cidrs`).
        pub ipvs_exclude_cidrs: Vec<String>,
        /// With `ipvs`: least time between two updates of rules (`--ipvs-min-sync-period`).
        pub ipvs_min_sync_period: Option<Duration>,
        /// With `ipvs`: how a backend is chosen, such as `rr` (`--ipvs-scheduler`). Default `rr`.
        pub ipvs_scheduler: Option<String>,
        /// With `ipvs`: most time between two updates of rules (`--ipvs-sync-period`). Default 30s.
        pub ipvs_sync_period: Option<Duration>,
        /// Feature gates, `true` or `false` by name (`--feature-gates`).
        pub feature_gates: BTreeMap<String, String>,
        /// Connections that the kernel tracks for each core (`--conntrack-max-per-core`). Default 131072.
        pub conntrack_max_per_core: Option<i32>,
        /// Connections that the kernel tracks at least (`--conntrack-min`). Default 131072.
        pub conntrack_min: Option<i32>,
    }
}
