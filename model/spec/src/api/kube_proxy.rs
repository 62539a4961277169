//! Flags of kube-proxy: `spec.kubeProxy`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// kube-proxy of every instance.
    pub struct KubeProxyConfig {
        /// Image to run instead of the one of the Kubernetes version.
        pub image: Option<String>,
        /// CPU the pod asks for.
        pub cpu_request: Option<Quantity>,
        /// CPU the pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Memory the pod asks for.
        pub memory_request: Option<Quantity>,
        /// Memory the pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// `--cluster-cidr`.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// `--hostname-override`.
        pub hostname_override: Option<String>,
        /// `--bind-address`.
        pub bind_address: Option<String>,
        /// `--master`.
        pub master: Option<String>,
        /// `--metrics-bind-address`.
        pub metrics_bind_address: Option<String>,
        /// False: no kube-proxy runs on any instance.
        pub enabled: Option<bool>,
        /// `--proxy-mode`.
        pub proxy_mode: Option<String>,
        /// `--ipvs-exclude-cidrs`.
        pub ipvs_exclude_cidrs: Vec<String>,
        /// `--ipvs-min-sync-period`.
        pub ipvs_min_sync_period: Option<Duration>,
        /// `--ipvs-scheduler`.
        pub ipvs_scheduler: Option<String>,
        /// `--ipvs-sync-period`.
        pub ipvs_sync_period: Option<Duration>,
        /// `--feature-gates`.
        pub feature_gates: BTreeMap<String, String>,
        /// `--conntrack-max-per-core`.
        pub conntrack_max_per_core: Option<i32>,
        /// `--conntrack-min`.
        pub conntrack_min: Option<i32>,
    }
}
