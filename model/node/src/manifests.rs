//! Static pods: the control plane, etcd and kube-proxy, as kubelet reads them from its folder of manifests.

mod etcd;
mod mounts;
mod pod;
mod proxy;

pub use etcd::{ETCD_ANSWERS, ETCD_SERVES, EtcdPod, build_etcd_pod};
pub use mounts::HostPaths;
pub use pod::{
    Container, EnvVar, HostPath, HttpGet, Metadata, Pod, PodSpec, Port, Probe, Resources,
    SecurityContext, Toleration, Volume, VolumeMount,
};
pub use proxy::build_proxy_pod;

use crate::components;
use std::collections::BTreeMap;

/// The path of a static pod's manifest, as kOps names it.
pub fn manifest_path(name: &str) -> String {
    format!("{}/{name}.manifest", components::MANIFESTS)
}

/// The command line of a component in its image. go-runner also writes the log to a file.
pub fn logged_command(component: &str) -> Vec<String> {
    vec![
        "/go-runner".to_owned(),
        format!("--log-file={}", log_file(component)),
        "--also-stdout".to_owned(),
        format!("/usr/local/bin/{component}"),
    ]
}

/// Path of a component's log on the instance.
pub fn log_file(component: &str) -> String {
    format!("/var/log/{component}.log")
}

/// A pod of the control plane with one container on the host's network and a critical priority.
pub fn critical_pod(name: &str, priority: &str, container: Container, volumes: Vec<Volume>) -> Pod {
    Pod {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        metadata: Metadata {
            annotations: BTreeMap::new(),
            labels: [("k8s-app".to_owned(), name.to_owned())].into(),
            name: name.to_owned(),
            namespace: "kube-system".to_owned(),
        },
        spec: PodSpec {
            containers: vec![container],
            host_network: true,
            priority_class_name: priority.to_owned(),
            tolerations: vec![Toleration {
                key: "CriticalAddonsOnly".to_owned(),
                operator: "Exists".to_owned(),
            }],
            volumes,
        },
    }
}
