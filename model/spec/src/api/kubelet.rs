//! kubelet's flags and configuration file: `spec.kubelet`, `spec.masterKubelet` and `spec.kubelet` of a group.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::Duration;

spec! {
    /// kubelet of instances. The flag that a field becomes, or its name in the file KubeletConfiguration, is in parentheses;
    /// without a default here, Kubernetes' own counts.
    pub struct KubeletConfigSpec {
        /// Address of the API server (`--api-servers`).
        pub api_servers: Option<String>,
        /// Answers requests without a name (`authentication.anonymous`); only false is possible, the default.
        pub anonymous_auth: Option<bool>,
        /// Who decides which requests are allowed: `Webhook`, the API server, or `AlwaysAllow` (`authorization.mode`). Default
        /// `Webhook`.
        pub authorization_mode: Option<String>,
        /// Kubeconfig file with which it gets its first certificate (`--bootstrap-kubeconfig`). Default none: nodeup gets it.
        pub bootstrap_kubeconfig: Option<String>,
        /// Certificates that verify those of clients (`authentication.x509.clientCAFile`). Default the cluster's authority.
        pub client_ca_file: Option<String>,
        /// Certificate of its own server (`tlsCertFile`). Default one that the cluster issues and kubelet renews.
        pub tls_cert_file: Option<String>,
        /// Key of the certificate of its own server (`tlsPrivateKeyFile`).
        pub tls_private_key_file: Option<String>,
        /// Cipher suites up to TLS 1.2, by Go's names (`tlsCipherSuites`).
        pub tls_cipher_suites: Vec<String>,
        /// Least version of TLS, such as `VersionTLS12` (`tlsMinVersion`).
        pub tls_min_version: Option<String>,
        /// Kubeconfig file with which it reaches the API (`--kubeconfig`). Default `/var/lib/kubelet/kubeconfig`.
        pub kubeconfig_path: Option<String>,
        /// Needs a kubeconfig file, which it always does (`--require-kubeconfig`).
        pub require_kubeconfig: Option<bool>,
        /// Form of the log: `text` or `json` (`logging.format`). Default `text`.
        pub log_format: Option<String>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// Folder of the manifests of static pods; only `/etc/kubernetes/manifests` is possible (`staticPodPath`).
        pub pod_manifest_path: Option<String>,
        /// Name of the Node, which has the ID of its instance: only kOps' placeholders are possible, and they have no effect.
        pub hostname_override: Option<String>,
        /// Image of the container that holds a pod's network. `containerd.sandboxImage` names it: no effect.
        pub pod_infra_container_image: Option<String>,
        /// Pods that name no seccomp profile get that of containerd (`seccompDefault`). Default false.
        pub seccomp_default: Option<bool>,
        /// Folder of seccomp profiles (`--seccomp-profile-root`).
        pub seccomp_profile_root: Option<String>,
        /// Lets pods have privileged containers, which they always may (`--allow-privileged`).
        pub allow_privileged: Option<bool>,
        /// Serves logs, exec and port-forward (`enableDebuggingHandlers`). Default true.
        pub enable_debugging_handlers: Option<bool>,
        /// Makes the Node (`--register-node`). Default true.
        pub register_node: Option<bool>,
        /// How often it computes the status of the Node (`nodeStatusUpdateFrequency`). Default 10s.
        pub node_status_update_frequency: Option<Duration>,
        /// Domain of the names of Services and pods (`clusterDomain`). Default `spec.clusterDNSDomain`.
        pub cluster_domain: Option<String>,
        /// Addresses of the name servers of pods, with commas between (`clusterDNS`). Default that of the DNS cache on the node
        /// or of CoreDNS.
        #[serde(rename = "clusterDNS")]
        pub cluster_dns: Option<String>,
        /// Kind of network plugin; only `cni` is possible (`--network-plugin`).
        pub network_plugin_name: Option<String>,
        /// Where the code for the cloud is: `external` (`--cloud-provider`). Default that.
        pub cloud_provider: Option<String>,
        /// Cgroup in which kubelet runs (`kubeletCgroups`).
        pub kubelet_cgroups: Option<String>,
        /// Cgroup in which the container runtime runs (`--runtime-cgroups`).
        pub runtime_cgroups: Option<String>,
        /// TCP port on which it answers everybody without TLS (`readOnlyPort`). Default 0: none.
        pub read_only_port: Option<i32>,
        /// Cgroup for processes that are in none (`systemCgroups`). Default none.
        pub system_cgroups: Option<String>,
        /// Cgroup of all pods (`cgroupRoot`). Default `/`.
        pub cgroup_root: Option<String>,
        /// Makes the bridge of pods (`--configure-cbr0`).
        pub configure_cbr0: Option<bool>,
        /// How a pod reaches itself by its Service: `promiscuous-bridge`, `hairpin-veth` or `none` (`hairpinMode`). Default
        /// `promiscuous-bridge`.
        pub hairpin_mode: Option<String>,
        /// Another program watches kubelet (`--babysit-daemons`).
        pub babysit_daemons: Option<bool>,
        /// Most pods of the Node (`maxPods`). Default 110; where pods have addresses of the VPC, by the instance type.
        pub max_pods: Option<i32>,
        /// Number of GPUs (`--experimental-nvidia-gpus`).
        #[serde(rename = "nvidiaGPUs")]
        pub nvidia_gpus: Option<i32>,
        /// Range of the addresses of pods of a kubelet without a cluster (`podCIDR`).
        #[serde(rename = "podCIDR")]
        pub pod_cidr: Option<String>,
        /// File with the name servers that pods inherit (`resolvConf`). Default that of the system.
        pub resolv_conf: Option<String>,
        /// Follows the range that the API server gives the Node (`--reconcile-cidr`).
        #[serde(rename = "reconcileCIDR")]
        pub reconcile_cidr: Option<bool>,
        /// Lets the scheduler use the Node from the beginning (`--register-schedulable`).
        pub register_schedulable: Option<bool>,
        /// Pulls one image at a time (`serializeImagePulls`). Default true.
        pub serialize_image_pulls: Option<bool>,
        /// Labels of the Node, which the control plane sets. `nodeLabels` of an instance group win.
        pub node_labels: BTreeMap<String, String>,
        /// Range that pods reach with their own addresses (`--non-masquerade-cidr`).
        #[serde(rename = "nonMasqueradeCIDR")]
        pub non_masquerade_cidr: Option<String>,
        /// Serves metrics of users (`--enable-custom-metrics`).
        pub enable_custom_metrics: Option<bool>,
        /// Bytes of the largest packet of pods (`--network-plugin-mtu`).
        #[serde(rename = "networkPluginMTU")]
        pub network_plugin_mtu: Option<i32>,
        /// Age that an unused image must have before it is removed (`imageMinimumGCAge`). Default 2m.
        #[serde(rename = "imageMinimumGCAge")]
        pub image_minimum_gc_age: Option<Duration>,
        /// Age at which an unused image is removed; 0s for never (`imageMaximumGCAge`). Default 0s.
        #[serde(rename = "imageMaximumGCAge")]
        pub image_maximum_gc_age: Option<Duration>,
        /// Images that are pulled at a time at most, with `serializeImagePulls: false` (`maxParallelImagePulls`). Default no
        /// limit.
        pub max_parallel_image_pulls: Option<i32>,
        /// Percentage of the disk above which unused images are removed (`imageGCHighThresholdPercent`). Default 85.
        #[serde(rename = "imageGCHighThresholdPercent")]
        pub image_gc_high_threshold_percent: Option<i32>,
        /// Percentage of the disk down to which they are removed (`imageGCLowThresholdPercent`). Default 80.
        #[serde(rename = "imageGCLowThresholdPercent")]
        pub image_gc_low_threshold_percent: Option<i32>,
        /// How long a pull may make no progress (`--image-pull-progress-deadline`).
        pub image_pull_progress_deadline: Option<Duration>,
        /// Thresholds at which pods are ended at once, such as `memory.available<100Mi,nodefs.available<10%` (`evictionHard`).
        /// Default those of kOps.
        pub eviction_hard: Option<String>,
        /// Thresholds at which pods are ended after a while, in the form of `evictionHard` (`evictionSoft`). Each needs an
        /// `evictionSoftGracePeriod`.
        pub eviction_soft: Option<String>,
        /// How long each threshold of `evictionSoft` is tolerated, such as `memory.available=1m30s`
        /// (`evictionSoftGracePeriod`).
        pub eviction_soft_grace_period: Option<String>,
        /// How long the Node stays under pressure after a threshold (`evictionPressureTransitionPeriod`). Default 5m.
        pub eviction_pressure_transition_period: Option<Duration>,
        /// Seconds that a pod has to end at most, at a soft threshold (`evictionMaxPodGracePeriod`). Default 0.
        pub eviction_max_pod_grace_period: Option<i32>,
        /// How much is freed at least for a threshold, such as `imagefs.available=2Gi` (`evictionMinimumReclaim`).
        pub eviction_minimum_reclaim: Option<String>,
        /// Folder of further volume plugins (`volumePluginDir`). Default one below `/usr/libexec/kubernetes`.
        pub volume_plugin_directory: Option<String>,
        /// Taints of the Node when it is made, as `key=value:Effect`, beside those of the instance group
        /// (`registerWithTaints`).
        pub taints: Vec<String>,
        /// Feature gates, `true` or `false` by name (`featureGates`).
        pub feature_gates: BTreeMap<String, String>,
        /// The kernel tells it of thresholds of memory (`kernelMemcgNotification`). Default false.
        pub kernel_memcg_notification: Option<bool>,
        /// Resources kept for kubelet and containerd: `cpu`, `memory`, `ephemeral-storage`, `pid` (`kubeReserved`). Default
        /// none.
        pub kube_reserved: BTreeMap<String, String>,
        /// Cgroup of kubelet and containerd, to enforce `kubeReserved` (`kubeReservedCgroup`).
        pub kube_reserved_cgroup: Option<String>,
        /// Resources kept for the system: `cpu`, `memory`, `ephemeral-storage`, `pid` (`systemReserved`). Default none.
        pub system_reserved: BTreeMap<String, String>,
        /// Cgroup of the system, to enforce `systemReserved` (`systemReservedCgroup`).
        pub system_reserved_cgroup: Option<String>,
        /// What is kept within its limits, with commas between: `pods`, `kube-reserved`, `system-reserved` or `none`
        /// (`enforceNodeAllocatable`). Default `pods`.
        pub enforce_node_allocatable: Option<String>,
        /// How long a request to containerd may take (`--runtime-request-timeout`). Default 15m0s.
        pub runtime_request_timeout: Option<Duration>,
        /// How often the usage of volumes is computed (`--volume-stats-agg-period`). Default 1m.
        pub volume_stats_agg_period: Option<Duration>,
        /// Does not start while swap is on (`failSwapOn`). Default true.
        pub fail_swap_on: Option<bool>,
        /// Older name of `allowedUnsafeSysctls`, to which its entries are added.
        pub experimental_allowed_unsafe_sysctls: Vec<String>,
        /// Kernel parameters that pods may set although they are not safe; `*` at the end stands for any name
        /// (`allowedUnsafeSysctls`).
        pub allowed_unsafe_sysctls: Vec<String>,
        /// How long a connection of exec or port-forward may be idle (`--streaming-connection-idle-timeout`). Default 4h.
        pub streaming_connection_idle_timeout: Option<Duration>,
        /// Containers of a pod do not share processes, which they do not (`--docker-disable-shared-pid`).
        #[serde(rename = "dockerDisableSharedPID")]
        pub docker_disable_shared_pid: Option<bool>,
        /// Folder of kubelet's files (`--root-dir`). Default `/var/lib/kubelet`.
        pub root_dir: Option<String>,
        /// Asks the API server about tokens (`authentication.webhook`). Default true.
        pub authentication_token_webhook: Option<bool>,
        /// How long answers about tokens are kept (`--authentication-token-webhook-cache-ttl`). Default 2m.
        pub authentication_token_webhook_cache_ttl: Option<Duration>,
        /// Enforces limits of CPU (`cpuCFSQuota`). Default true.
        #[serde(rename = "cpuCFSQuota")]
        pub cpu_cfs_quota: Option<bool>,
        /// Period in which limits of CPU count (`cpuCFSQuotaPeriod`). Default 100ms.
        #[serde(rename = "cpuCFSQuotaPeriod")]
        pub cpu_cfs_quota_period: Option<Duration>,
        /// Whether containers get cores of their own: `none` or `static` (`cpuManagerPolicy`). Default `none`.
        pub cpu_manager_policy: Option<String>,
        /// Pulls per second; 0 for no limit (`registryPullQPS`). Default 5.
        #[serde(rename = "registryPullQPS")]
        pub registry_pull_qps: Option<i32>,
        /// Pulls at once (`--registry-burst`). Default 10.
        pub registry_burst: Option<i32>,
        /// Whether resources of a pod have to be on one NUMA node: `none`, `best-effort`, `restricted` or `single-numa-node`
        /// (`topologyManagerPolicy`). Default `none`.
        pub topology_manager_policy: Option<String>,
        /// Renews its client certificate (`rotateCertificates`). Default true.
        pub rotate_certificates: Option<bool>,
        /// Does not start where kernel parameters differ from what it needs (`protectKernelDefaults`). Default true.
        pub protect_kernel_defaults: Option<bool>,
        /// Who makes cgroups: `systemd` or `cgroupfs` (`cgroupDriver`). Default `systemd`.
        pub cgroup_driver: Option<String>,
        /// How often the usage of containers is measured (`--housekeeping-interval`). Default 10s.
        pub housekeeping_interval: Option<Duration>,
        /// Older name of `eventRecordQPS`, which wins.
        #[serde(rename = "eventQPS")]
        pub event_qps: Option<i32>,
        /// Events that it writes at once (`--event-burst`). Default 100.
        pub event_burst: Option<i32>,
        /// Size at which a new file of a container's log begins (`containerLogMaxSize`). Default 10Mi.
        pub container_log_max_size: Option<String>,
        /// Files of a container's log that are kept, at least 2 (`containerLogMaxFiles`). Default 5.
        pub container_log_max_files: Option<i32>,
        /// Serves the older metrics of cAdvisor (`--enable-cadvisor-json-endpoints`).
        pub enable_cadvisor_json_endpoints: Option<bool>,
        /// Processes of a pod at most; -1 for as many as the Node has (`podPidsLimit`). Default -1.
        pub pod_pids_limit: Option<i32>,
        /// Leaves hard thresholds out of what pods can have (`--experimental-allocatable-ignore-eviction`). Default false.
        pub experimental_allocatable_ignore_eviction: Option<bool>,
        /// How long the instance waits for pods when it shuts down (`shutdownGracePeriod`). Default 30s; 0s with the VPC CNI.
        pub shutdown_grace_period: Option<Duration>,
        /// Part of that time for critical pods (`shutdownGracePeriodCriticalPods`). Default 10s; 0s with the VPC CNI.
        pub shutdown_grace_period_critical_pods: Option<Duration>,
        /// How pods use swap: `NoSwap` or `LimitedSwap` (`memorySwap.swapBehavior`). Default `NoSwap`.
        pub memory_swap_behavior: Option<String>,
        /// How long it waits at most before it starts a container that fails again
        /// (`crashLoopBackOff.maxContainerRestartPeriod`). Default 5m; on control planes 1m0s since Kubernetes 1.35.
        pub crash_loop_back_off_max_container_restart_period: Option<Duration>,
        /// Queries per second to the API (`--kube-api-qps`). Default 50.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<i32>,
        /// Events per second that it writes; since Kubernetes 1.37, 0 is no limit (`eventRecordQPS`). Default 50.
        #[serde(rename = "eventRecordQPS")]
        pub event_record_qps: Option<i32>,
        /// Seconds for which it renews its Lease (`nodeLeaseDurationSeconds`). Default 40.
        pub node_lease_duration_seconds: Option<i32>,
    }
}
