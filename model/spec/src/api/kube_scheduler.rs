//! Flags of kube-scheduler: `spec.kubeScheduler`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::kube_controller_manager::LeaderElectionConfiguration;
use super::scalars::Quantity;

spec! {
    /// The scheduler of every control plane. The flag that a field becomes is in parentheses; without a default here,
    /// Kubernetes' own counts.
    pub struct KubeSchedulerConfig {
        /// Address of the API server (`--master`). Default that of its kubeconfig.
        pub master: Option<String>,
        /// Form of the log: `text` or `json` (`--logging-format`). Default `text`.
        pub log_format: Option<String>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// Image of the scheduler. Default that of `spec.kubernetesVersion`.
        pub image: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// Reads a policy from a ConfigMap.
        pub use_policy_config_map: Option<bool>,
        /// Feature gates, `true` or `false` by name (`--feature-gates`).
        pub feature_gates: BTreeMap<String, String>,
        /// Most volumes of a node (`KUBE_MAX_PD_VOLS`). The scheduler does not read it any more: no effect.
        pub max_persistent_volumes: Option<i32>,
        /// Queries per second to the API (`clientConnection.qps` of its configuration file). Default 50.
        pub qps: Option<Quantity>,
        /// Queries to the API at once (`clientConnection.burst` of its configuration file). Default 100.
        pub burst: Option<i32>,
        /// Queries per second to the API (`--kube-api-qps`), which the scheduler ignores beside its configuration file. Use
        /// `qps`.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// Queries to the API at once (`--kube-api-burst`), which the scheduler ignores beside its configuration file. Use
        /// `burst`.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// Kubeconfig file with which it asks the API who its clients are (`--authentication-kubeconfig`). Default its own.
        pub authentication_kubeconfig: Option<String>,
        /// Kubeconfig file with which it asks the API what its clients may do (`--authorization-kubeconfig`). Default its own.
        pub authorization_kubeconfig: Option<String>,
        /// Paths of its own server that everybody may read (`--authorization-always-allow-paths`). Default those of health
        /// checks.
        pub authorization_always_allow_paths: Vec<String>,
        /// Serves profiles of itself at `/debug/pprof` (`--profiling`, and the same in its configuration file, which counts).
        /// Default true.
        pub enable_profiling: Option<bool>,
        /// Its profiles show waiting for locks (`--contention-profiling`, and the same in its configuration file, which counts).
        /// Default true.
        pub enable_contention_profiling: Option<bool>,
        /// Certificate of its own server (`--tls-cert-file`). Default one that kctl issues.
        pub tls_cert_file: Option<String>,
        /// Key of the certificate of its own server (`--tls-private-key-file`). Default that of the one that kctl issues.
        pub tls_private_key_file: Option<String>,
        /// CPU that its pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// CPU that its pod may use at most. Default no limit.
        pub cpu_limit: Option<Quantity>,
        /// Memory that its pod asks for. Default none.
        pub memory_request: Option<Quantity>,
        /// Memory that its pod may use at most. Default no limit.
        pub memory_limit: Option<Quantity>,
    }
}
