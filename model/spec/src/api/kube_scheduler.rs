//! Flags of kube-scheduler: `spec.kubeScheduler`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::kube_controller_manager::LeaderElectionConfiguration;
use super::scalars::Quantity;

spec! {
    /// The scheduler of every control-plane instance.
    pub struct KubeSchedulerConfig {
        /// `--master`.
        pub master: Option<String>,
        /// `--logging-format`.
        pub log_format: Option<String>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// Image to run instead of the one of the Kubernetes version.
        pub image: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// Removed from Kubernetes; kept for old specs.
        pub use_policy_config_map: Option<bool>,
        /// `--feature-gates`.
        pub feature_gates: BTreeMap<String, String>,
        /// `KUBE_MAX_PD_VOLS`: volumes per node at most.
        pub max_persistent_volumes: Option<i32>,
        /// Queries per second to the API: `clientConnection.qps` of the configuration file.
        pub qps: Option<Quantity>,
        /// Queries at once to the API: `clientConnection.burst` of the configuration file.
        pub burst: Option<i32>,
        /// `--kube-api-qps`.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// `--kube-api-burst`.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// `--authentication-kubeconfig`.
        pub authentication_kubeconfig: Option<String>,
        /// `--authorization-kubeconfig`.
        pub authorization_kubeconfig: Option<String>,
        /// `--authorization-always-allow-paths`.
        pub authorization_always_allow_paths: Vec<String>,
        /// `--profiling`.
        pub enable_profiling: Option<bool>,
        /// `--contention-profiling`.
        pub enable_contention_profiling: Option<bool>,
        /// `--tls-cert-file`.
        pub tls_cert_file: Option<String>,
        /// `--tls-private-key-file`.
        pub tls_private_key_file: Option<String>,
        /// CPU the pod asks for.
        pub cpu_request: Option<Quantity>,
        /// CPU the pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Memory the pod asks for.
        pub memory_request: Option<Quantity>,
        /// Memory the pod may use at most.
        pub memory_limit: Option<Quantity>,
    }
}
