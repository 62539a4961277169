//! `spec.profile: cis`: what the CIS Kubernetes Benchmark asks for, where the spec says nothing and kctl's defaults lack it.

use super::fill::{fill, fill_list};
use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::create::audit;
use full::ControlPlane;
use node::config::{File, UnitFile};

/// Suites with forward secrecy and authenticated encryption. Those of TLS 1.3 are always on.
const CIPHER_SUITES: [&str; 4] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
];

/// Limit of the processes of a pod, as in OpenShift.
const POD_PIDS: i32 = 4096;

/// Pods that have ended and are kept, as in RKE2.
const ENDED_PODS: i32 = 1000;

/// In a folder that the API server's pod mounts.
const ADMISSION: &str = "/srv/kubernetes/kube-apiserver/admission.yaml";

/// Limits of events as in RKE; pods outside kube-system are as Kubernetes' standard "restricted", unless labels of their namespace say
/// otherwise.
const ADMISSION_RULES: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - type: Server
      qps: 5000
      burst: 20000
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults:
      enforce: restricted
      enforce-version: latest
      audit: restricted
      audit-version: latest
      warn: restricted
      warn-version: latest
    exemptions:
      namespaces: [kube-system]
";

/// Lists the files that controls are about, which no API shows.
const NODE_FILES: &str = include_str!("profile/node_files.sh");
const NODE_FILES_PATH: &str = "/usr/local/sbin/kctl-node-files";

const NODE_FILES_SERVICE: &str = "\
[Unit]
Description=Lists modes and owners of the files that the CIS Kubernetes Benchmark names

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/kctl-node-files
";

const NODE_FILES_TIMER: &str = "\
[Unit]
Description=Lists every ten minutes the files that the CIS Kubernetes Benchmark names

[Timer]
OnActiveSec=1min
OnUnitActiveSec=10min

[Install]
WantedBy=timers.target
";

/// Fills in what the profile sets. Later defaults leave it as it is.
pub(super) fn complete_profile(spec: &mut ClusterSpec) {
    if !spec.is_cis() {
        return;
    }
    fill(&mut spec.encryption_config, true);
    let api = spec.kube_api_server.get_or_insert_default();
    fill(&mut api.admission_control_config_file, ADMISSION);
    fill(&mut api.audit_policy_file, audit::POLICY);
    fill(&mut api.audit_log_path, audit::LOG);
    let (days, files, size) = audit::KEPT;
    fill(&mut api.audit_log_max_age, days);
    fill(&mut api.audit_log_max_backups, files);
    fill(&mut api.audit_log_max_size, size);
    fill(&mut api.enable_profiling, false);
    fill_list(&mut api.tls_cipher_suites, &CIPHER_SUITES);
    let manager = spec.kube_controller_manager.get_or_insert_default();
    fill(&mut manager.enable_profiling, false);
    fill(&mut manager.terminated_pod_gc_threshold, ENDED_PODS);
    let scheduler = spec.kube_scheduler.get_or_insert_default();
    fill(&mut scheduler.enable_profiling, false);
    // Control planes get it from here, too.
    let kubelet = spec.kubelet.get_or_insert_default();
    fill(&mut kubelet.pod_pids_limit, POD_PIDS);
    fill(&mut kubelet.seccomp_default, true);
    fill_list(&mut kubelet.tls_cipher_suites, &CIPHER_SUITES);
}

/// Admission plugins besides kOps' default. EventRateLimit does not start without the limits in kctl's file.
pub(super) fn admission_plugins(spec: &ClusterSpec) -> Vec<&'static str> {
    if !spec.is_cis() {
        return Vec::new();
    }
    let api = spec.kube_api_server.as_ref();
    let file = api.and_then(|api| api.admission_control_config_file.as_deref());
    let limits = (file == Some(ADMISSION)).then_some("EventRateLimit");
    ["DenyServiceExternalIPs"]
        .into_iter()
        .chain(limits)
        .collect()
}

/// Sets the flags that kOps has no fields for.
pub(super) fn set_flags(spec: &ClusterSpec, control_plane: &mut ControlPlane) {
    if !spec.is_cis() {
        return;
    }
    let api = &mut control_plane.api_server.flags;
    api.set("service-account-extend-token-expiration", "false");
    for component in [
        &mut control_plane.controller_manager,
        &mut control_plane.scheduler,
    ] {
        component.flags.set("bind-address", "127.0.0.1");
    }
}

/// Adds the files of the profile to those of the spec, which win.
pub(super) fn add_files(spec: &ClusterSpec, role: InstanceGroupRole, files: &mut Vec<File>) {
    if !spec.is_cis() {
        return;
    }
    let mut own = vec![
        File::new(NODE_FILES_PATH, NODE_FILES).with_mode("0700"),
        File::new(
            "/etc/systemd/system/kctl-node-files.service",
            NODE_FILES_SERVICE,
        ),
    ];
    if role == InstanceGroupRole::ControlPlane {
        let api = spec.kube_api_server.clone().unwrap_or_default();
        for (named, path, content) in [
            (
                api.admission_control_config_file,
                ADMISSION,
                ADMISSION_RULES,
            ),
            (api.audit_policy_file, audit::POLICY, audit::RULES),
        ] {
            if named.as_deref() == Some(path) {
                own.push(File::new(path, content).with_mode("0400"));
            }
        }
    }
    own.retain(|file| !files.iter().any(|other| other.path == file.path));
    files.append(&mut own);
}

/// The units of the profile.
pub(super) fn units(spec: &ClusterSpec) -> Option<UnitFile> {
    spec.is_cis()
        .then(|| UnitFile::new("kctl-node-files.timer", NODE_FILES_TIMER))
}
