//! What the user says against `spec.profile: cis`. What the profile sets by itself is in expansion.

use std::collections::BTreeMap;

use super::values::parse_switch;
use crate::api::cluster::ClusterSpec;
use crate::api::kube_apiserver::KubeAPIServerConfig;
use crate::api::kubelet::KubeletConfigSpec;
use crate::read::Problem;
use node::cipher_suites::STRONG_CIPHER_SUITES;
use node::duration::parse_seconds;

const MODES: &str = "the authorization modes Node and RBAC";
const PROFILES: &str = "no profiles of components";
const RENEWALS: &str = "kubelets that renew their certificates";
const SUITES: &str = "strong cipher suites only";

/// Admission plugins without which limits are open.
const PLUGINS: [&str; 3] = ["NamespaceLifecycle", "NodeRestriction", "ServiceAccount"];

/// A field, whether it is against the benchmark, and what that asks for.
type Field = (&'static str, bool, &'static str);

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if !spec.is_cis() {
        return;
    }
    let manager = spec.kube_controller_manager.clone().unwrap_or_default();
    let scheduler = spec.kube_scheduler.clone().unwrap_or_default();
    let proxy = spec.kube_proxy.clone().unwrap_or_default();
    let authorization = spec.authorization.clone().unwrap_or_default();
    let metrics = proxy.metrics_bind_address.as_deref();
    let accounts = manager.use_service_account_credentials;
    #[rustfmt::skip] // One line for each field.
    let fields = [
        ("authorization.alwaysAllow", authorization.always_allow.is_some(), MODES),
        ("encryptionConfig", spec.encryption_config == Some(false), "Secrets that are encrypted in etcd"),
        ("kubeControllerManager.enableProfiling", manager.enable_profiling == Some(true), PROFILES),
        ("kubeControllerManager.featureGates", is_renewal_off(&manager.feature_gates), RENEWALS),
        ("kubeControllerManager.useServiceAccountCredentials", accounts == Some(false), "a service account for each controller"),
        ("kubeProxy.metricsBindAddress", metrics.is_some_and(|at| !at.starts_with("127.0.0.1:")), "metrics of kube-proxy on 127.0.0.1"),
        ("kubeScheduler.enableProfiling", scheduler.enable_profiling == Some(true), PROFILES),
    ];
    refuse("spec", &fields, problems);
    let api = spec.kube_api_server.clone().unwrap_or_default();
    check_api_server(&api, problems);
    check_kubelet("spec.kubelet", spec.kubelet.as_ref(), problems);
    check_kubelet("spec.masterKubelet", spec.master_kubelet.as_ref(), problems);
}

/// A group's own settings of kubelet.
pub fn check_group(
    kubelet: Option<&KubeletConfigSpec>,
    cluster: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    if cluster.is_cis() {
        check_kubelet("spec.kubelet", kubelet, problems);
    }
}

fn check_api_server(api: &KubeAPIServerConfig, problems: &mut Vec<Problem>) {
    let modes = api.authorization_mode.as_deref().unwrap_or("Node,RBAC");
    let has_mode = |mode: &str| modes.split(',').any(|one| one == mode);
    let fewer = |number: Option<i32>, least: i32| number.is_some_and(|number| number < least);
    let has = |plugins: &[String], plugin: &str| plugins.iter().any(|one| one == plugin);
    let on = &api.enable_admission_plugins;
    let more = &api.append_admission_plugins;
    let off = &api.disable_admission_plugins;
    let restricts = on.is_empty() || has(on, "NodeRestriction") || has(more, "NodeRestriction");
    #[rustfmt::skip] // One line for each field.
    let fields = [
        ("admissionControl", !api.admission_control.is_empty(), "enableAdmissionPlugins in its place"),
        ("anonymousAuth", api.anonymous_auth == Some(true), "no requests without a name"),
        ("appendAdmissionPlugins", has(more, "AlwaysAdmit"), "AlwaysAdmit off"),
        ("auditLogMaxAge", fewer(api.audit_log_max_age, 30), "audit logs of 30 days or more"),
        ("auditLogMaxBackups", fewer(api.audit_log_max_backups, 10), "10 old audit logs or more"),
        ("auditLogMaxSize", fewer(api.audit_log_max_size, 100), "audit logs of 100 MB or more"),
        ("authorizationMode", !has_mode("Node") || !has_mode("RBAC") || has_mode("AlwaysAllow"), MODES),
        ("disableAdmissionPlugins", PLUGINS.iter().any(|one| has(off, one)), "NamespaceLifecycle, NodeRestriction and ServiceAccount on"),
        ("enableAdmissionPlugins", !restricts || has(on, "AlwaysAdmit"), "NodeRestriction on and AlwaysAdmit off"),
        ("enableProfiling", api.enable_profiling == Some(true), PROFILES),
        ("tlsCipherSuites", has_weak_suite(&api.tls_cipher_suites), SUITES),
        ("tokenAuthFile", api.token_auth_file.is_some(), "no file with tokens of users"),
    ];
    refuse("spec.kubeAPIServer", &fields, problems);
}

fn check_kubelet(at: &str, kubelet: Option<&KubeletConfigSpec>, problems: &mut Vec<Problem>) {
    let Some(kubelet) = kubelet else { return };
    let mode = kubelet.authorization_mode.as_deref();
    let idle = kubelet.streaming_connection_idle_timeout.as_deref();
    let idle = idle.and_then(parse_seconds);
    #[rustfmt::skip] // One line for each field.
    let fields = [
        ("authorizationMode", mode == Some("AlwaysAllow"), "kubelets that ask the API server what is allowed"),
        ("featureGates", is_renewal_off(&kubelet.feature_gates), RENEWALS),
        ("podPidsLimit", kubelet.pod_pids_limit.is_some_and(|limit| limit < 1), "a limit of the processes of a pod"),
        ("protectKernelDefaults", kubelet.protect_kernel_defaults == Some(false), "kernel parameters as kubelet wants them"),
        ("readOnlyPort", kubelet.read_only_port.is_some_and(|port| port != 0), "no port of kubelet without authentication"),
        ("rotateCertificates", kubelet.rotate_certificates == Some(false), RENEWALS),
        ("seccompDefault", kubelet.seccomp_default == Some(false), "the seccomp profile of the container runtime"),
        ("streamingConnectionIdleTimeout", idle.is_some_and(|time| time <= 0.0), "idle connections that end"),
        ("tlsCipherSuites", has_weak_suite(&kubelet.tls_cipher_suites), SUITES),
    ];
    refuse(at, &fields, problems);
}

fn refuse(at: &str, fields: &[Field], problems: &mut Vec<Problem>) {
    for (field, _, wanted) in fields.iter().filter(|(_, against, _)| *against) {
        let message = format!("spec.profile is cis, and the benchmark asks for {wanted}");
        let problem = Problem::error(format!("{at}.{field}"), message);
        problems.push(problem.hint("remove it; or leave spec.profile out"));
    }
}

fn is_renewal_off(gates: &BTreeMap<String, String>) -> bool {
    let gate = gates.get("RotateKubeletServerCertificate");
    gate.is_some_and(|on| parse_switch(on) == Some(false))
}

fn has_weak_suite(suites: &[String]) -> bool {
    let is_strong = |suite: &String| STRONG_CIPHER_SUITES.contains(&suite.as_str());
    !suites.iter().all(is_strong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problems_of(profile: &str, path: &str, value: &Value) -> Vec<String> {
        let mut spec = json!({"profile": profile});
        let mut at = &mut spec;
        for field in path.split('.') {
            at = &mut at[field];
        }
        *at = value.clone();
        let spec: ClusterSpec = serde_json::from_value(spec).unwrap();
        let mut problems = Vec::new();
        check_cluster(&spec, &mut problems);
        problems.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn each_value_against_the_benchmark_is_refused_by_name_with_the_profile_only() {
        let off = json!({"RotateKubeletServerCertificate": "false"});
        let weak = json!(["TLS_RSA_WITH_AES_128_CBC_SHA"]);
        let kubelet = [
            ("authorizationMode", json!("AlwaysAllow")),
            ("featureGates", off.clone()),
            ("podPidsLimit", json!(-1)),
            ("protectKernelDefaults", json!(false)),
            ("readOnlyPort", json!(10_255)),
            ("rotateCertificates", json!(false)),
            ("seccompDefault", json!(false)),
            ("streamingConnectionIdleTimeout", json!("0s")),
            ("tlsCipherSuites", weak.clone()),
        ];
        let api_server = [
            ("admissionControl", json!(["NodeRestriction"])),
            ("anonymousAuth", json!(true)),
            ("appendAdmissionPlugins", json!(["AlwaysAdmit"])),
            ("auditLogMaxAge", json!(29)),
            ("auditLogMaxBackups", json!(9)),
            ("auditLogMaxSize", json!(0)),
            ("authorizationMode", json!("RBAC")),
            ("authorizationMode", json!("Node,RBAC,AlwaysAllow")),
            ("disableAdmissionPlugins", json!(["ServiceAccount"])),
            ("enableAdmissionPlugins", json!(["LimitRanger"])),
            ("enableProfiling", json!(true)),
            ("tlsCipherSuites", weak),
            ("tokenAuthFile", json!("/tokens")),
        ];
        let others = [
            ("authorization.alwaysAllow", json!({})),
            ("encryptionConfig", json!(false)),
            ("kubeControllerManager.enableProfiling", json!(true)),
            ("kubeControllerManager.featureGates", off),
            (
                "kubeControllerManager.useServiceAccountCredentials",
                json!(false),
            ),
            ("kubeProxy.metricsBindAddress", json!("0.0.0.0:10249")),
            ("kubeScheduler.enableProfiling", json!(true)),
        ];
        let below = |section: &'static str, fields: &[(&str, Value)]| {
            let named =
                |(field, value): &(&str, Value)| (format!("{section}{field}"), value.clone());
            fields.iter().map(named).collect::<Vec<_>>()
        };
        let all = [
            below("kubelet.", &kubelet),
            below("masterKubelet.", &kubelet),
            below("kubeAPIServer.", &api_server),
            below("", &others),
        ];
        for (path, value) in all.concat() {
            let refused = problems_of("cis", &path, &value);
            assert_eq!(refused, [format!("spec.{path}")], "{value}");
            assert_eq!(problems_of("", &path, &value), [""; 0], "{path}");
        }
    }

    #[test]
    fn values_that_the_benchmark_takes_are_taken() {
        for (path, value) in [
            ("kubeAPIServer.auditLogMaxAge", json!(30)),
            (
                "kubeAPIServer.authorizationMode",
                json!("Node,RBAC,Webhook"),
            ),
            (
                "kubeAPIServer.enableAdmissionPlugins",
                json!(["NodeRestriction"]),
            ),
            (
                "kubeAPIServer.tlsCipherSuites",
                json!(["TLS_AES_128_GCM_SHA256"]),
            ),
            ("kubeControllerManager.terminatedPodGCThreshold", json!(5)),
            ("kubelet.podPidsLimit", json!(1)),
            ("kubelet.readOnlyPort", json!(0)),
            ("kubelet.streamingConnectionIdleTimeout", json!("5m")),
            ("kubeProxy.metricsBindAddress", json!("127.0.0.1:9000")),
        ] {
            assert_eq!(problems_of("cis", path, &value), [""; 0], "{path}");
        }
    }
}
