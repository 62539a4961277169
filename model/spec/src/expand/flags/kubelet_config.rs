//! kubelet's configuration file: KubeletConfiguration, `kubelet.config.k8s.io/v1beta1`.

use super::Error;
use crate::api::kubelet::KubeletConfigSpec;
use crate::validate::values::parse_switch;
use node::components::{CONTAINERD_SOCKET, KUBERNETES, VOLUME_PLUGINS};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of the file under their own names. See the kubelet configuration reference of Kubernetes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KubeletConfiguration {
    api_version: &'static str,
    kind: &'static str,
    allowed_unsafe_sysctls: Vec<String>,
    authentication: Authentication,
    authorization: Authorization,
    cgroup_driver: Option<String>,
    cgroup_root: Option<String>,
    #[serde(rename = "clusterDNS")]
    cluster_dns: Vec<String>,
    cluster_domain: Option<String>,
    container_log_max_files: Option<i32>,
    container_log_max_size: Option<String>,
    container_runtime_endpoint: &'static str,
    #[serde(rename = "cpuCFSQuota")]
    cpu_cfs_quota: Option<bool>,
    #[serde(rename = "cpuCFSQuotaPeriod")]
    cpu_cfs_quota_period: Option<String>,
    cpu_manager_policy: Option<String>,
    crash_loop_back_off: Option<CrashLoopBackOff>,
    enable_debugging_handlers: Option<bool>,
    enforce_node_allocatable: Vec<String>,
    #[serde(rename = "eventRecordQPS")]
    event_record_qps: Option<i32>,
    eviction_hard: BTreeMap<String, String>,
    eviction_max_pod_grace_period: Option<i32>,
    eviction_minimum_reclaim: BTreeMap<String, String>,
    eviction_pressure_transition_period: Option<String>,
    eviction_soft: BTreeMap<String, String>,
    eviction_soft_grace_period: BTreeMap<String, String>,
    fail_swap_on: Option<bool>,
    feature_gates: BTreeMap<String, bool>,
    hairpin_mode: Option<String>,
    #[serde(rename = "imageGCHighThresholdPercent")]
    image_gc_high_threshold_percent: Option<i32>,
    #[serde(rename = "imageGCLowThresholdPercent")]
    image_gc_low_threshold_percent: Option<i32>,
    #[serde(rename = "imageMaximumGCAge")]
    image_maximum_gc_age: Option<String>,
    #[serde(rename = "imageMinimumGCAge")]
    image_minimum_gc_age: Option<String>,
    kernel_memcg_notification: Option<bool>,
    kube_reserved: BTreeMap<String, String>,
    kube_reserved_cgroup: Option<String>,
    kubelet_cgroups: Option<String>,
    logging: Option<Logging>,
    max_parallel_image_pulls: Option<i32>,
    max_pods: Option<i32>,
    memory_swap: Option<MemorySwap>,
    node_lease_duration_seconds: Option<i32>,
    node_status_update_frequency: Option<String>,
    #[serde(rename = "podCIDR")]
    pod_cidr: Option<String>,
    pod_pids_limit: Option<i32>,
    protect_kernel_defaults: Option<bool>,
    read_only_port: Option<i32>,
    register_with_taints: Vec<Taint>,
    #[serde(rename = "registryPullQPS")]
    registry_pull_qps: Option<i32>,
    resolv_conf: Option<String>,
    rotate_certificates: Option<bool>,
    seccomp_default: Option<bool>,
    serialize_image_pulls: Option<bool>,
    #[serde(rename = "serverTLSBootstrap")]
    server_tls_bootstrap: bool,
    shutdown_grace_period: Option<String>,
    shutdown_grace_period_critical_pods: Option<String>,
    static_pod_path: Option<String>,
    system_cgroups: Option<String>,
    system_reserved: BTreeMap<String, String>,
    system_reserved_cgroup: Option<String>,
    tls_cert_file: Option<String>,
    tls_cipher_suites: Vec<String>,
    tls_min_version: Option<String>,
    tls_private_key_file: Option<String>,
    topology_manager_policy: Option<String>,
    volume_plugin_dir: String,
}

#[derive(Serialize)]
struct Authentication {
    anonymous: Enabled,
    webhook: Enabled,
    x509: X509,
}

#[derive(Serialize)]
struct Enabled {
    enabled: Option<bool>,
}

#[derive(Serialize)]
struct X509 {
    #[serde(rename = "clientCAFile")]
    client_ca_file: String,
}

#[derive(Serialize)]
struct Authorization {
    mode: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CrashLoopBackOff {
    max_container_restart_period: String,
}

#[derive(Serialize)]
struct Logging {
    format: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemorySwap {
    swap_behavior: String,
}

#[derive(Serialize)]
struct Taint {
    key: String,
    value: Option<String>,
    effect: String,
}

/// The file for a group with these taints (`key=value:Effect`). nodeup adds `providerID` and the settings that depend
/// on the instance's kernel and resolver.
pub fn kubelet_config(kubelet: &KubeletConfigSpec, taints: &[String]) -> Result<Value, Error> {
    let config = serde_json::to_value(kubelet_configuration(kubelet.clone(), taints));
    let config = config.map_err(|source| Error {
        component: "kubelet",
        source,
    })?;
    Ok(without_empty(config))
}

#[allow(clippy::too_many_lines)] // One line for each field of the file.
fn kubelet_configuration(kubelet: KubeletConfigSpec, taints: &[String]) -> KubeletConfiguration {
    let mut sysctls = kubelet.allowed_unsafe_sysctls;
    sysctls.extend(kubelet.experimental_allowed_unsafe_sysctls);
    KubeletConfiguration {
        api_version: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        allowed_unsafe_sysctls: sysctls,
        authentication: Authentication {
            anonymous: Enabled {
                enabled: kubelet.anonymous_auth,
            },
            webhook: Enabled {
                enabled: kubelet.authentication_token_webhook,
            },
            x509: X509 {
                client_ca_file: kubelet
                    .client_ca_file
                    .unwrap_or(format!("{KUBERNETES}/ca.crt")),
            },
        },
        authorization: Authorization {
            mode: kubelet.authorization_mode,
        },
        cgroup_driver: kubelet.cgroup_driver,
        cgroup_root: kubelet.cgroup_root,
        cluster_dns: split_list(kubelet.cluster_dns.as_deref()),
        cluster_domain: kubelet.cluster_domain,
        container_log_max_files: kubelet.container_log_max_files,
        container_log_max_size: kubelet.container_log_max_size,
        container_runtime_endpoint: CONTAINERD_SOCKET,
        cpu_cfs_quota: kubelet.cpu_cfs_quota,
        cpu_cfs_quota_period: kubelet.cpu_cfs_quota_period,
        cpu_manager_policy: kubelet.cpu_manager_policy,
        crash_loop_back_off: kubelet
            .crash_loop_back_off_max_container_restart_period
            .map(|period| CrashLoopBackOff {
                max_container_restart_period: period,
            }),
        enable_debugging_handlers: kubelet.enable_debugging_handlers,
        enforce_node_allocatable: split_list(kubelet.enforce_node_allocatable.as_deref()),
        event_record_qps: kubelet.event_record_qps.or(kubelet.event_qps),
        eviction_hard: split_pairs(kubelet.eviction_hard.as_deref(), '<'),
        eviction_max_pod_grace_period: kubelet.eviction_max_pod_grace_period,
        eviction_minimum_reclaim: split_pairs(kubelet.eviction_minimum_reclaim.as_deref(), '='),
        eviction_pressure_transition_period: kubelet.eviction_pressure_transition_period,
        eviction_soft: split_pairs(kubelet.eviction_soft.as_deref(), '<'),
        eviction_soft_grace_period: split_pairs(kubelet.eviction_soft_grace_period.as_deref(), '='),
        fail_swap_on: kubelet.fail_swap_on,
        feature_gates: kubelet
            .feature_gates
            .into_iter()
            .map(|(gate, on)| (gate, parse_switch(&on) == Some(true)))
            .collect(),
        hairpin_mode: kubelet.hairpin_mode,
        image_gc_high_threshold_percent: kubelet.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent: kubelet.image_gc_low_threshold_percent,
        image_maximum_gc_age: kubelet.image_maximum_gc_age,
        // In kOps a flag that kubelet does not have: --image-minimum-gc-age.
        image_minimum_gc_age: kubelet.image_minimum_gc_age,
        kernel_memcg_notification: kubelet.kernel_memcg_notification,
        kube_reserved: kubelet.kube_reserved,
        kube_reserved_cgroup: kubelet.kube_reserved_cgroup,
        kubelet_cgroups: kubelet.kubelet_cgroups,
        logging: kubelet.log_format.map(|format| Logging { format }),
        max_parallel_image_pulls: kubelet.max_parallel_image_pulls,
        max_pods: kubelet.max_pods,
        memory_swap: kubelet
            .memory_swap_behavior
            .map(|swap_behavior| MemorySwap { swap_behavior }),
        node_lease_duration_seconds: kubelet.node_lease_duration_seconds,
        node_status_update_frequency: kubelet.node_status_update_frequency,
        pod_cidr: kubelet.pod_cidr,
        pod_pids_limit: kubelet.pod_pids_limit,
        protect_kernel_defaults: kubelet.protect_kernel_defaults,
        read_only_port: kubelet.read_only_port,
        register_with_taints: taints.iter().map(|taint| parse_taint(taint)).collect(),
        registry_pull_qps: kubelet.registry_pull_qps,
        resolv_conf: kubelet.resolv_conf,
        rotate_certificates: kubelet.rotate_certificates,
        seccomp_default: kubelet.seccomp_default,
        serialize_image_pulls: kubelet.serialize_image_pulls,
        // Unlike in kOps, kubelet requests its serving certificate itself, so that old nodes keep working.
        server_tls_bootstrap: kubelet.tls_cert_file.is_none(),
        shutdown_grace_period: kubelet.shutdown_grace_period,
        shutdown_grace_period_critical_pods: kubelet.shutdown_grace_period_critical_pods,
        static_pod_path: kubelet.pod_manifest_path,
        system_cgroups: kubelet.system_cgroups,
        system_reserved: kubelet.system_reserved,
        system_reserved_cgroup: kubelet.system_reserved_cgroup,
        tls_cert_file: kubelet.tls_cert_file,
        tls_cipher_suites: kubelet.tls_cipher_suites,
        tls_min_version: kubelet.tls_min_version,
        tls_private_key_file: kubelet.tls_private_key_file,
        topology_manager_policy: kubelet.topology_manager_policy,
        volume_plugin_dir: kubelet
            .volume_plugin_directory
            .unwrap_or(VOLUME_PLUGINS.to_owned()),
    }
}

/// `a,b` as a list.
fn split_list(text: Option<&str>) -> Vec<String> {
    let parts = text.unwrap_or_default().split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `a<1,b<2` as a map. A part without separator gets an empty value, which kubelet refuses with its name.
fn split_pairs(text: Option<&str>, separator: char) -> BTreeMap<String, String> {
    let pair = |part: String| {
        let (key, value) = part.split_once(separator).unwrap_or((&part, ""));
        (key.trim().to_owned(), value.trim().to_owned())
    };
    split_list(text).into_iter().map(pair).collect()
}

/// Parses `key=value:Effect` or `key:Effect`.
fn parse_taint(taint: &str) -> Taint {
    let (rest, effect) = taint.rsplit_once(':').unwrap_or((taint, ""));
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Taint {
        key: key.to_owned(),
        value: (!value.is_empty()).then(|| value.to_owned()),
        effect: effect.to_owned(),
    }
}

/// Removes nulls, empty lists and empty maps: fields that are not set.
fn without_empty(value: Value) -> Value {
    let set = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_empty(value)));
            Value::Object(fields.filter(|(_, value)| set(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{KubeletConfigSpec, kubelet_config};
    use serde_json::json;

    #[test]
    fn what_nobody_set_is_not_in_the_file() {
        let config = kubelet_config(&KubeletConfigSpec::default(), &[]).unwrap();
        let expected = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": { "x509": { "clientCAFile": "/srv/kubernetes/ca.crt" } },
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "serverTLSBootstrap": true,
            "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        });
        assert_eq!(config, expected);
    }

    #[test]
    fn texts_of_the_spec_become_lists_maps_and_taints() {
        let kubelet = KubeletConfigSpec {
            eviction_hard: Some("memory.available<100Mi, nodefs.available<10%".into()),
            eviction_minimum_reclaim: Some("memory.available=0Mi".into()),
            enforce_node_allocatable: Some("pods,system-reserved".into()),
            cluster_dns: Some("100.64.0.10".into()),
            feature_gates: [
                ("A".to_owned(), "true".to_owned()),
                ("B".to_owned(), "false".to_owned()),
                ("C".to_owned(), "T".to_owned()),
                ("D".to_owned(), "0".to_owned()),
            ]
            .into(),
            ..KubeletConfigSpec::default()
        };
        let taints = [
            "a=b:NoSchedule".to_owned(),
            "c=:NoExecute".to_owned(),
            "d:PreferNoSchedule".to_owned(),
        ];
        let config = kubelet_config(&kubelet, &taints).unwrap();
        assert_eq!(
            config["evictionHard"],
            json!({ "memory.available": "100Mi", "nodefs.available": "10%" })
        );
        assert_eq!(
            config["evictionMinimumReclaim"],
            json!({ "memory.available": "0Mi" })
        );
        assert_eq!(
            config["enforceNodeAllocatable"],
            json!(["pods", "system-reserved"])
        );
        assert_eq!(config["clusterDNS"], json!(["100.64.0.10"]));
        assert_eq!(
            config["featureGates"],
            json!({ "A": true, "B": false, "C": true, "D": false })
        );
        assert_eq!(
            config["registerWithTaints"],
            json!([
                { "key": "a", "value": "b", "effect": "NoSchedule" },
                { "key": "c", "effect": "NoExecute" },
                { "key": "d", "effect": "PreferNoSchedule" },
            ])
        );
    }

    #[test]
    fn who_brings_a_serving_certificate_does_not_ask_for_one() {
        let kubelet = KubeletConfigSpec {
            tls_cert_file: Some("/mine.crt".into()),
            ..KubeletConfigSpec::default()
        };
        let config = kubelet_config(&kubelet, &[]).unwrap();
        assert_eq!(
            (&config["tlsCertFile"], &config["serverTLSBootstrap"]),
            (&json!("/mine.crt"), &json!(false))
        );
    }
}
