//! Flags of kube-controller-manager: `spec.kubeControllerManager`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// The controller manager of every control-plane instance.
    pub struct KubeControllerManagerConfig {
        /// `--master`.
        pub master: Option<String>,
        /// `--logging-format`.
        pub log_format: Option<String>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// `--service-account-private-key-file`.
        pub service_account_private_key_file: Option<String>,
        /// Image to run instead of the one of the Kubernetes version.
        pub image: Option<String>,
        /// `--cloud-provider`.
        pub cloud_provider: Option<String>,
        /// `--cluster-name`.
        pub cluster_name: Option<String>,
        /// `--cluster-cidr`.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// `--allocate-node-cidrs`.
        #[serde(rename = "allocateNodeCIDRs")]
        pub allocate_node_cidrs: Option<bool>,
        /// `--node-cidr-mask-size`.
        #[serde(rename = "nodeCIDRMaskSize")]
        pub node_cidr_mask_size: Option<i32>,
        /// `--configure-cloud-routes`.
        pub configure_cloud_routes: Option<bool>,
        /// `--controllers`.
        pub controllers: Vec<String>,
        /// `--cidr-allocator-type`.
        pub cidr_allocator_type: Option<String>,
        /// `--root-ca-file`.
        #[serde(rename = "rootCAFile")]
        pub root_ca_file: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// `--attach-detach-reconcile-sync-period`.
        pub attach_detach_reconcile_sync_period: Option<Duration>,
        /// `--disable-attach-detach-reconcile-sync`.
        pub disable_attach_detach_reconcile_sync: Option<bool>,
        /// `--terminated-pod-gc-threshold`.
        #[serde(rename = "terminatedPodGCThreshold")]
        pub terminated_pod_gc_threshold: Option<i32>,
        /// `--node-monitor-period`.
        pub node_monitor_period: Option<Duration>,
        /// `--node-monitor-grace-period`.
        pub node_monitor_grace_period: Option<Duration>,
        /// `--pod-eviction-timeout`.
        pub pod_eviction_timeout: Option<Duration>,
        /// `--use-service-account-credentials`.
        pub use_service_account_credentials: Option<bool>,
        /// `--horizontal-pod-autoscaler-sync-period`.
        pub horizontal_pod_autoscaler_sync_period: Option<Duration>,
        /// `--horizontal-pod-autoscaler-downscale-delay`.
        pub horizontal_pod_autoscaler_downscale_delay: Option<Duration>,
        /// `--horizontal-pod-autoscaler-downscale-stabilization`.
        pub horizontal_pod_autoscaler_downscale_stabilization: Option<Duration>,
        /// `--horizontal-pod-autoscaler-upscale-delay`.
        pub horizontal_pod_autoscaler_upscale_delay: Option<Duration>,
        /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
        pub horizontal_pod_autoscaler_initial_readiness_delay: Option<Duration>,
        /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
        pub horizontal_pod_autoscaler_cpu_initialization_period: Option<Duration>,
        /// `--horizontal-pod-autoscaler-tolerance`.
        pub horizontal_pod_autoscaler_tolerance: Option<Quantity>,
        /// `--horizontal-pod-autoscaler-use-rest-clients`.
        pub horizontal_pod_autoscaler_use_rest_clients: Option<bool>,
        /// `--experimental-cluster-signing-duration`.
        pub experimental_cluster_signing_duration: Option<Duration>,
        /// `--cluster-signing-duration`.
        #[serde(rename = "ClusterSigningDuration")]
        pub cluster_signing_duration: Option<Duration>,
        /// `--feature-gates`.
        pub feature_gates: BTreeMap<String, String>,
        /// `--tls-cert-file`.
        pub tls_cert_file: Option<String>,
        /// `--tls-cipher-suites`.
        pub tls_cipher_suites: Vec<String>,
        /// `--tls-min-version`.
        pub tls_min_version: Option<String>,
        /// `--tls-private-key-file`.
        pub tls_private_key_file: Option<String>,
        /// `--min-resync-period`.
        pub min_resync_period: Option<String>,
        /// `--kube-api-qps`.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// `--kube-api-burst`.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// `--concurrent-deployment-syncs`.
        pub concurrent_deployment_syncs: Option<i32>,
        /// `--concurrent-endpoint-syncs`.
        pub concurrent_endpoint_syncs: Option<i32>,
        /// `--concurrent-namespace-syncs`.
        pub concurrent_namespace_syncs: Option<i32>,
        /// `--concurrent-replicaset-syncs`.
        pub concurrent_replicaset_syncs: Option<i32>,
        /// `--concurrent-service-syncs`.
        pub concurrent_service_syncs: Option<i32>,
        /// `--concurrent-resource-quota-syncs`.
        pub concurrent_resource_quota_syncs: Option<i32>,
        /// `--concurrent-serviceaccount-token-syncs`.
        pub concurrent_serviceaccount_token_syncs: Option<i32>,
        /// `--concurrent-rc-syncs`.
        pub concurrent_rc_syncs: Option<i32>,
        /// `--concurrent-horizontal-pod-autoscaler-syncs`.
        pub concurrent_horizontal_pod_austoscaler_syncs: Option<i32>,
        /// `--concurrent-job-syncs`.
        pub concurrent_job_syncs: Option<i32>,
        /// `--authentication-kubeconfig`.
        pub authentication_kubeconfig: Option<String>,
        /// `--authorization-kubeconfig`.
        pub authorization_kubeconfig: Option<String>,
        /// `--authorization-always-allow-paths`.
        pub authorization_always_allow_paths: Vec<String>,
        /// `--external-cloud-volume-plugin`.
        pub external_cloud_volume_plugin: Option<String>,
        /// `--endpoint-updates-batch-period`.
        pub endpoint_updates_batch_period: Option<Duration>,
        /// `--endpointslice-updates-batch-period`.
        pub endpoint_slice_updates_batch_period: Option<Duration>,
        /// `--profiling`.
        pub enable_profiling: Option<bool>,
        /// `--contention-profiling`.
        pub enable_contention_profiling: Option<bool>,
        /// `--enable-leader-migration`.
        pub enable_leader_migration: Option<bool>,
        /// CPU the pod asks for.
        pub cpu_request: Option<Quantity>,
        /// CPU the pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Memory the pod asks for.
        pub memory_request: Option<Quantity>,
        /// Memory the pod may use at most.
        pub memory_limit: Option<Quantity>,
    }

    /// How replicas of a component agree which of them acts.
    pub struct LeaderElectionConfiguration {
        /// `--leader-elect`.
        pub leader_elect: Option<bool>,
        /// `--leader-elect-lease-duration`.
        pub leader_elect_lease_duration: Option<Duration>,
        /// `--leader-elect-renew-deadline`.
        pub leader_elect_renew_deadline_duration: Option<Duration>,
        /// `--leader-elect-resource-lock`.
        pub leader_elect_resource_lock: Option<String>,
        /// `--leader-elect-resource-name`.
        pub leader_elect_resource_name: Option<String>,
        /// `--leader-elect-resource-namespace`.
        pub leader_elect_resource_namespace: Option<String>,
        /// `--leader-elect-retry-period`.
        pub leader_elect_retry_period: Option<Duration>,
    }
}
