//! Static pods: the control plane, etcd and kube-proxy, as kubelet reads them from its folder of manifests.

mod api_server;
mod controllers;
mod etcd;
mod mounts;
mod pod;
mod proxy;

pub use api_server::{HEALTH_PORT, api_server};
pub use controllers::{controller_manager, scheduler};
pub use etcd::{ETCD_ALARMS, ETCD_SERVES, EtcdPod, etcd, etcd_image};
pub use pod::{
    Container, EnvVar, HostPath, HttpGet, Metadata, Pod, PodSpec, Port, Probe, Resources,
    SecurityContext, Toleration, Volume, VolumeMount,
};
pub use proxy::{Proxy, proxy};

use crate::components;
use std::collections::BTreeMap;

/// The path of a static pod's manifest, as kOps names it.
pub fn manifest_path(name: &str) -> String {
    format!("{}/{name}.manifest", components::MANIFESTS)
}

/// Requests and limits where they are said; `cpu` is requested where nothing is.
fn resources(
    cpu: &str,
    requests: (Option<&String>, Option<&String>),
    limits: (Option<&String>, Option<&String>),
) -> Resources {
    let map = |(cpu, memory): (Option<&String>, Option<&String>)| {
        let cpu = cpu.map(|cpu| ("cpu".to_owned(), cpu.clone()));
        let memory = memory.map(|memory| ("memory".to_owned(), memory.clone()));
        cpu.into_iter().chain(memory).collect::<BTreeMap<_, _>>()
    };
    let mut requests = map(requests);
    requests
        .entry("cpu".to_owned())
        .or_insert_with(|| cpu.to_owned());
    Resources {
        limits: map(limits),
        requests,
    }
}

/// The command line of a component in its image: go-runner writes its log to a file as well.
fn logged(component: &str) -> Vec<String> {
    vec![
        "/go-runner".to_owned(),
        format!("--log-file={}", log_file(component)),
        "--also-stdout".to_owned(),
        format!("/usr/local/bin/{component}"),
    ]
}

fn log_file(component: &str) -> String {
    format!("/var/log/{component}.log")
}

/// A pod of the control plane with one container: on the host's network, never evicted for want of room.
fn critical(name: &str, priority: &str, container: Container, volumes: Vec<Volume>) -> Pod {
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
