//! kubelet's flags and configuration file: `spec.kubelet`, `spec.masterKubelet` and `spec.kubelet` of a group.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::Duration;

spec! {
    /// kubelet of an instance; the group's values win over the cluster's.
    pub struct KubeletConfigSpec {
        /// `--api-servers`.
        pub api_servers: Option<String>,
        /// `anonymousAuth` of KubeletConfiguration.
        pub anonymous_auth: Option<bool>,
        /// `authorizationMode` of KubeletConfiguration.
        pub authorization_mode: Option<String>,
        /// `--bootstrap-kubeconfig`.
        pub bootstrap_kubeconfig: Option<String>,
        /// `clientCaFile` of KubeletConfiguration.
        pub client_ca_file: Option<String>,
        /// `tlsCertFile` of KubeletConfiguration.
        pub tls_cert_file: Option<String>,
        /// `tlsPrivateKeyFile` of KubeletConfiguration.
        pub tls_private_key_file: Option<String>,
        /// `tlsCipherSuites` of KubeletConfiguration.
        pub tls_cipher_suites: Vec<String>,
        /// `tlsMinVersion` of KubeletConfiguration.
        pub tls_min_version: Option<String>,
        /// `--kubeconfig`.
        pub kubeconfig_path: Option<String>,
        /// `--require-kubeconfig`.
        pub require_kubeconfig: Option<bool>,
        /// `logFormat` of KubeletConfiguration.
        pub log_format: Option<String>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// `staticPodPath` of KubeletConfiguration: the folder of static pods.
        pub pod_manifest_path: Option<String>,
        /// `--hostname-override`.
        pub hostname_override: Option<String>,
        pub pod_infra_container_image: Option<String>,
        /// `seccompDefault` of KubeletConfiguration.
        pub seccomp_default: Option<bool>,
        /// `--seccomp-profile-root`.
        pub seccomp_profile_root: Option<String>,
        /// `--allow-privileged`.
        pub allow_privileged: Option<bool>,
        /// `enableDebuggingHandlers` of KubeletConfiguration.
        pub enable_debugging_handlers: Option<bool>,
        /// `--register-node`.
        pub register_node: Option<bool>,
        /// `nodeStatusUpdateFrequency` of KubeletConfiguration.
        pub node_status_update_frequency: Option<Duration>,
        /// `clusterDomain` of KubeletConfiguration.
        pub cluster_domain: Option<String>,
        /// `clusterDNS` of KubeletConfiguration.
        #[serde(rename = "clusterDNS")]
        pub cluster_dns: Option<String>,
        /// `--network-plugin`.
        pub network_plugin_name: Option<String>,
        /// `--cloud-provider`.
        pub cloud_provider: Option<String>,
        /// `kubeletCgroups` of KubeletConfiguration.
        pub kubelet_cgroups: Option<String>,
        /// `--runtime-cgroups`.
        pub runtime_cgroups: Option<String>,
        /// `readOnlyPort` of KubeletConfiguration.
        pub read_only_port: Option<i32>,
        /// `systemCgroups` of KubeletConfiguration.
        pub system_cgroups: Option<String>,
        /// `cgroupRoot` of KubeletConfiguration.
        pub cgroup_root: Option<String>,
        /// `--configure-cbr0`.
        pub configure_cbr0: Option<bool>,
        /// `hairpinMode` of KubeletConfiguration.
        pub hairpin_mode: Option<String>,
        /// `--babysit-daemons`.
        pub babysit_daemons: Option<bool>,
        /// `maxPods` of KubeletConfiguration.
        pub max_pods: Option<i32>,
        /// `--experimental-nvidia-gpus`.
        #[serde(rename = "nvidiaGPUs")]
        pub nvidia_gpus: Option<i32>,
        /// `podCIDR` of KubeletConfiguration.
        #[serde(rename = "podCIDR")]
        pub pod_cidr: Option<String>,
        /// `resolvConf` of KubeletConfiguration.
        pub resolv_conf: Option<String>,
        /// `--reconcile-cidr`.
        #[serde(rename = "reconcileCIDR")]
        pub reconcile_cidr: Option<bool>,
        /// `--register-schedulable`.
        pub register_schedulable: Option<bool>,
        /// `serializeImagePulls` of KubeletConfiguration.
        pub serialize_image_pulls: Option<bool>,
        /// `--node-labels`.
        pub node_labels: BTreeMap<String, String>,
        /// `--non-masquerade-cidr`.
        #[serde(rename = "nonMasqueradeCIDR")]
        pub non_masquerade_cidr: Option<String>,
        /// `--enable-custom-metrics`.
        pub enable_custom_metrics: Option<bool>,
        /// `--network-plugin-mtu`.
        #[serde(rename = "networkPluginMTU")]
        pub network_plugin_mtu: Option<i32>,
        /// `imageMinimumGCAge` of the configuration file.
        #[serde(rename = "imageMinimumGCAge")]
        pub image_minimum_gc_age: Option<Duration>,
        /// `imageMaximumGCAge` of KubeletConfiguration.
        #[serde(rename = "imageMaximumGCAge")]
        pub image_maximum_gc_age: Option<Duration>,
        /// `maxParallelImagePulls` of KubeletConfiguration.
        pub max_parallel_image_pulls: Option<i32>,
        /// `imageGCHighThresholdPercent` of KubeletConfiguration.
        #[serde(rename = "imageGCHighThresholdPercent")]
        pub image_gc_high_threshold_percent: Option<i32>,
        /// `imageGCLowThresholdPercent` of KubeletConfiguration.
        #[serde(rename = "imageGCLowThresholdPercent")]
        pub image_gc_low_threshold_percent: Option<i32>,
        /// `--image-pull-progress-deadline`.
        pub image_pull_progress_deadline: Option<Duration>,
        /// `evictionHard` of KubeletConfiguration.
        pub eviction_hard: Option<String>,
        /// `evictionSoft` of KubeletConfiguration.
        pub eviction_soft: Option<String>,
        /// `evictionSoftGracePeriod` of KubeletConfiguration.
        pub eviction_soft_grace_period: Option<String>,
        /// `evictionPressureTransitionPeriod` of KubeletConfiguration.
        pub eviction_pressure_transition_period: Option<Duration>,
        /// `evictionMaxPodGracePeriod` of KubeletConfiguration.
        pub eviction_max_pod_grace_period: Option<i32>,
        /// `evictionMinimumReclaim` of KubeletConfiguration.
        pub eviction_minimum_reclaim: Option<String>,
        /// `volumePluginDirectory` of KubeletConfiguration.
        pub volume_plugin_directory: Option<String>,
        /// Taints of the Node when it registers, `key=value:effect`.
        pub taints: Vec<String>,
        /// `featureGates` of KubeletConfiguration.
        pub feature_gates: BTreeMap<String, String>,
        /// `kernelMemcgNotification` of KubeletConfiguration.
        pub kernel_memcg_notification: Option<bool>,
        /// `kubeReserved` of KubeletConfiguration.
        pub kube_reserved: BTreeMap<String, String>,
        /// `kubeReservedCgroup` of KubeletConfiguration.
        pub kube_reserved_cgroup: Option<String>,
        /// `systemReserved` of KubeletConfiguration.
        pub system_reserved: BTreeMap<String, String>,
        /// `systemReservedCgroup` of KubeletConfiguration.
        pub system_reserved_cgroup: Option<String>,
        /// `enforceNodeAllocatable` of KubeletConfiguration.
        pub enforce_node_allocatable: Option<String>,
        /// `--runtime-request-timeout`.
        pub runtime_request_timeout: Option<Duration>,
        /// `--volume-stats-agg-period`.
        pub volume_stats_agg_period: Option<Duration>,
        /// `failSwapOn` of KubeletConfiguration.
        pub fail_swap_on: Option<bool>,
        /// Old name of `allowedUnsafeSysctls`.
        pub experimental_allowed_unsafe_sysctls: Vec<String>,
        /// `allowedUnsafeSysctls` of KubeletConfiguration.
        pub allowed_unsafe_sysctls: Vec<String>,
        /// `--streaming-connection-idle-timeout`.
        pub streaming_connection_idle_timeout: Option<Duration>,
        /// `--docker-disable-shared-pid`.
        #[serde(rename = "dockerDisableSharedPID")]
        pub docker_disable_shared_pid: Option<bool>,
        /// `--root-dir`.
        pub root_dir: Option<String>,
        /// `authenticationTokenWebhook` of KubeletConfiguration.
        pub authentication_token_webhook: Option<bool>,
        /// `--authentication-token-webhook-cache-ttl`.
        pub authentication_token_webhook_cache_ttl: Option<Duration>,
        /// `cpuCFSQuota` of KubeletConfiguration.
        #[serde(rename = "cpuCFSQuota")]
        pub cpu_cfs_quota: Option<bool>,
        /// `cpuCFSQuotaPeriod` of KubeletConfiguration.
        #[serde(rename = "cpuCFSQuotaPeriod")]
        pub cpu_cfs_quota_period: Option<Duration>,
        /// `cpuManagerPolicy` of KubeletConfiguration.
        pub cpu_manager_policy: Option<String>,
        /// `registryPullQPS` of KubeletConfiguration.
        #[serde(rename = "registryPullQPS")]
        pub registry_pull_qps: Option<i32>,
        /// `--registry-burst`.
        pub registry_burst: Option<i32>,
        /// `topologyManagerPolicy` of KubeletConfiguration.
        pub topology_manager_policy: Option<String>,
        /// `rotateCertificates` of KubeletConfiguration.
        pub rotate_certificates: Option<bool>,
        /// `protectKernelDefaults` of KubeletConfiguration.
        pub protect_kernel_defaults: Option<bool>,
        /// `cgroupDriver` of KubeletConfiguration.
        pub cgroup_driver: Option<String>,
        /// `--housekeeping-interval`.
        pub housekeeping_interval: Option<Duration>,
        /// `eventQPS` of KubeletConfiguration.
        #[serde(rename = "eventQPS")]
        pub event_qps: Option<i32>,
        /// `--event-burst`.
        pub event_burst: Option<i32>,
        /// `containerLogMaxSize` of KubeletConfiguration.
        pub container_log_max_size: Option<String>,
        /// `containerLogMaxFiles` of KubeletConfiguration.
        pub container_log_max_files: Option<i32>,
        /// `--enable-cadvisor-json-endpoints`.
        pub enable_cadvisor_json_endpoints: Option<bool>,
        /// `podPidsLimit` of KubeletConfiguration.
        pub pod_pids_limit: Option<i32>,
        /// `--experimental-allocatable-ignore-eviction`.
        pub experimental_allocatable_ignore_eviction: Option<bool>,
        /// `shutdownGracePeriod` of KubeletConfiguration.
        pub shutdown_grace_period: Option<Duration>,
        /// `shutdownGracePeriodCriticalPods` of KubeletConfiguration.
        pub shutdown_grace_period_critical_pods: Option<Duration>,
        /// `memorySwapBehavior` of KubeletConfiguration.
        pub memory_swap_behavior: Option<String>,
        /// `crashLoopBackOffMaxContainerRestartPeriod` of KubeletConfiguration.
        pub crash_loop_back_off_max_container_restart_period: Option<Duration>,
        /// `--kube-api-qps`.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<i32>,
        /// `eventRecordQPS` of KubeletConfiguration.
        #[serde(rename = "eventRecordQPS")]
        pub event_record_qps: Option<i32>,
        /// `nodeLeaseDurationSeconds` of KubeletConfiguration.
        pub node_lease_duration_seconds: Option<i32>,
    }
}
