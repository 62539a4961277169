//! Flags of kube-controller-manager: `spec.kubeControllerManager`.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// The controller manager of every control plane. The flag that a field becomes is in parentheses; without a default here,
    /// Kubernetes' own counts.
    pub struct KubeControllerManagerConfig {
        /// Address of the API server (`--master`). Default that of its kubeconfig.
        pub master: Option<String>,
        /// Form of the log: `text` or `json` (`--logging-format`). Default `text`.
        pub log_format: Option<String>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// File with the key that signs tokens in Secrets (`--service-account-private-key-file`). Default that of the cluster's
        /// keyset.
        pub service_account_private_key_file: Option<String>,
        /// Image of the controller manager. Default that of `spec.kubernetesVersion`.
        pub image: Option<String>,
        /// Where the code for the cloud is: `external` (`--cloud-provider`). Default that.
        pub cloud_provider: Option<String>,
        /// Name of the cluster in names of AWS objects (`--cluster-name`). Default the name of the cluster.
        pub cluster_name: Option<String>,
        /// Range of the addresses of pods (`--cluster-cidr`). Default `spec.podCIDR`, on IPv6 none.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// Gives each Node a range for its pods (`--allocate-node-cidrs`). Default true, on IPv6 false.
        #[serde(rename = "allocateNodeCIDRs")]
        pub allocate_node_cidrs: Option<bool>,
        /// Prefix length of the range of each Node, 16 to 30 (`--node-cidr-mask-size`). Default 24, with room for 254 pods.
        #[serde(rename = "nodeCIDRMaskSize")]
        pub node_cidr_mask_size: Option<i32>,
        /// Makes a route in the VPC to the pods of each Node, which the cloud controller manager does
        /// (`--configure-cloud-routes`). Default false.
        pub configure_cloud_routes: Option<bool>,
        /// Controllers that run (`--controllers`): names, `-NAME` for all but one, `*` for the usual ones. Default `*`.
        pub controllers: Vec<String>,
        /// Who gives ranges to Nodes: `RangeAllocator` or `CloudAllocator` (`--cidr-allocator-type`). Default `RangeAllocator`.
        pub cidr_allocator_type: Option<String>,
        /// Certificate that pods get to verify the API (`--root-ca-file`). Default the cluster's authority.
        #[serde(rename = "rootCAFile")]
        pub root_ca_file: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// How often it compares attached volumes with those that should be (`--attach-detach-reconcile-sync-period`). Default
        /// 1m0s.
        pub attach_detach_reconcile_sync_period: Option<Duration>,
        /// Never compares attached volumes with those that should be (`--disable-attach-detach-reconcile-sync`). Default false.
        pub disable_attach_detach_reconcile_sync: Option<bool>,
        /// Number of ended pods above which they are deleted; 0 or less for never (`--terminated-pod-gc-threshold`). Default
        /// 12500.
        #[serde(rename = "terminatedPodGCThreshold")]
        pub terminated_pod_gc_threshold: Option<i32>,
        /// How often it looks at the status of Nodes (`--node-monitor-period`). Default 5s.
        pub node_monitor_period: Option<Duration>,
        /// How long a Node may be silent before it is not ready (`--node-monitor-grace-period`). Default 50s.
        pub node_monitor_grace_period: Option<Duration>,
        /// How long pods stay on a Node that failed (`--pod-eviction-timeout`).
        pub pod_eviction_timeout: Option<Duration>,
        /// Each controller has a service account of its own (`--use-service-account-credentials`). Default true.
        pub use_service_account_credentials: Option<bool>,
        /// How often HorizontalPodAutoscalers look at their pods (`--horizontal-pod-autoscaler-sync-period`). Default 15s.
        pub horizontal_pod_autoscaler_sync_period: Option<Duration>,
        /// How long they wait between two reductions (`--horizontal-pod-autoscaler-downscale-delay`).
        pub horizontal_pod_autoscaler_downscale_delay: Option<Duration>,
        /// How far they look back before they reduce, so that they do not go below a recent recommendation
        /// (`--horizontal-pod-autoscaler-downscale-stabilization`). Default 5m.
        pub horizontal_pod_autoscaler_downscale_stabilization: Option<Duration>,
        /// How long they wait between two increases (`--horizontal-pod-autoscaler-upscale-delay`).
        pub horizontal_pod_autoscaler_upscale_delay: Option<Duration>,
        /// How long after its start changes of a pod's readiness count as part of the start
        /// (`--horizontal-pod-autoscaler-initial-readiness-delay`). Default 30s.
        pub horizontal_pod_autoscaler_initial_readiness_delay: Option<Duration>,
        /// How long after its start the CPU of a pod may be left out (`--horizontal-pod-autoscaler-cpu-initialization-period`).
        /// Default 5m.
        pub horizontal_pod_autoscaler_cpu_initialization_period: Option<Duration>,
        /// Least change of the ratio from 1 for which they act (`--horizontal-pod-autoscaler-tolerance`). Default 0.1.
        pub horizontal_pod_autoscaler_tolerance: Option<Quantity>,
        /// They read metrics from APIs, which they always do (`--horizontal-pod-autoscaler-use-rest-clients`).
        pub horizontal_pod_autoscaler_use_rest_clients: Option<bool>,
        /// Older name of `ClusterSigningDuration` (`--experimental-cluster-signing-duration`).
        pub experimental_cluster_signing_duration: Option<Duration>,
        /// Lifetime of certificates of kubelets, 10m to 87600h (`--cluster-signing-duration`). Default 455 days for the first
        /// one of an instance, then 8760h.
        #[serde(rename = "ClusterSigningDuration")]
        pub cluster_signing_duration: Option<Duration>,
        /// Feature gates, `true` or `false` by name (`--feature-gates`).
        pub feature_gates: BTreeMap<String, String>,
        /// Certificate of its own server (`--tls-cert-file`). Default one that kctl issues.
        pub tls_cert_file: Option<String>,
        /// Cipher suites up to TLS 1.2, by Go's names (`--tls-cipher-suites`).
        pub tls_cipher_suites: Vec<String>,
        /// Least version of TLS, such as `VersionTLS12` (`--tls-min-version`).
        pub tls_min_version: Option<String>,
        /// Key of the certificate of its own server (`--tls-private-key-file`). Default that of the one that kctl issues.
        pub tls_private_key_file: Option<String>,
        /// How often it looks at all objects anew, at least (`--min-resync-period`). Default 12h.
        pub min_resync_period: Option<String>,
        /// Queries per second to the API (`--kube-api-qps`). Default 20.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// Queries to the API at once (`--kube-api-burst`). Default 30.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// Deployments that are worked on at a time (`--concurrent-deployment-syncs`). Default 5.
        pub concurrent_deployment_syncs: Option<i32>,
        /// Endpoints that are worked on at a time (`--concurrent-endpoint-syncs`). Default 5.
        pub concurrent_endpoint_syncs: Option<i32>,
        /// Namespaces that are worked on at a time (`--concurrent-namespace-syncs`). Default 10.
        pub concurrent_namespace_syncs: Option<i32>,
        /// ReplicaSets that are worked on at a time (`--concurrent-replicaset-syncs`). Default 5.
        pub concurrent_replicaset_syncs: Option<i32>,
        /// Services that are worked on at a time (`--concurrent-service-syncs`). Default 1.
        pub concurrent_service_syncs: Option<i32>,
        /// ResourceQuotas that are worked on at a time (`--concurrent-resource-quota-syncs`). Default 5.
        pub concurrent_resource_quota_syncs: Option<i32>,
        /// Service accounts whose tokens are worked on at a time (`--concurrent-serviceaccount-token-syncs`). Default 5.
        pub concurrent_serviceaccount_token_syncs: Option<i32>,
        /// ReplicationControllers that are worked on at a time (`--concurrent-rc-syncs`). Default 5.
        pub concurrent_rc_syncs: Option<i32>,
        /// HorizontalPodAutoscalers that are worked on at a time (`--concurrent-horizontal-pod-autoscaler-syncs`). Default 5.
        /// The name is kOps'.
        pub concurrent_horizontal_pod_austoscaler_syncs: Option<i32>,
        /// Jobs that are worked on at a time (`--concurrent-job-syncs`). Default 5.
        pub concurrent_job_syncs: Option<i32>,
        /// Kubeconfig file with which it asks the API who its clients are (`--authentication-kubeconfig`). Default its own.
        pub authentication_kubeconfig: Option<String>,
        /// Kubeconfig file with which it asks the API what its clients may do (`--authorization-kubeconfig`). Default its own.
        pub authorization_kubeconfig: Option<String>,
        /// Paths of its own server that everybody may read (`--authorization-always-allow-paths`). Default those of health
        /// checks.
        pub authorization_always_allow_paths: Vec<String>,
        /// Cloud whose volumes it handles beside an external cloud provider (`--external-cloud-volume-plugin`).
        pub external_cloud_volume_plugin: Option<String>,
        /// How long changes of Endpoints are collected (`--endpoint-updates-batch-period`). Default 0s.
        pub endpoint_updates_batch_period: Option<Duration>,
        /// How long changes of EndpointSlices are collected (`--endpointslice-updates-batch-period`). Default 0s.
        pub endpoint_slice_updates_batch_period: Option<Duration>,
        /// Serves profiles of itself at `/debug/pprof` (`--profiling`). Default true.
        pub enable_profiling: Option<bool>,
        /// Its profiles show waiting for locks (`--contention-profiling`). Default false.
        pub enable_contention_profiling: Option<bool>,
        /// Hands controllers over to the cloud controller manager without both running them (`--enable-leader-migration`).
        /// Default false.
        pub enable_leader_migration: Option<bool>,
        /// CPU that its pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// CPU that its pod may use at most. Default no limit.
        pub cpu_limit: Option<Quantity>,
        /// Memory that its pod asks for. Default none.
        pub memory_request: Option<Quantity>,
        /// Memory that its pod may use at most. Default no limit.
        pub memory_limit: Option<Quantity>,
    }

    /// How replicas of a component agree which of them acts.
    pub struct LeaderElectionConfiguration {
        /// Only one replica acts at a time (`--leader-elect`). Default true.
        pub leader_elect: Option<bool>,
        /// How long others wait after the leader's last renewal before one takes over (`--leader-elect-lease-duration`).
        /// Default 15s.
        pub leader_elect_lease_duration: Option<Duration>,
        /// How long the leader tries to renew before it gives up (`--leader-elect-renew-deadline`). Default 10s.
        pub leader_elect_renew_deadline_duration: Option<Duration>,
        /// Kind of the object by which they agree (`--leader-elect-resource-lock`). Default `leases`.
        pub leader_elect_resource_lock: Option<String>,
        /// Name of that object (`--leader-elect-resource-name`). Default that of the component.
        pub leader_elect_resource_name: Option<String>,
        /// Namespace of that object (`--leader-elect-resource-namespace`). Default `kube-system`.
        pub leader_elect_resource_namespace: Option<String>,
        /// How long a replica waits between two tries (`--leader-elect-retry-period`). Default 2s.
        pub leader_elect_retry_period: Option<Duration>,
    }
}
