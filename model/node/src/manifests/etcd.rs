//! The static pod of an etcd member. It can start only where its volume is mounted: the data folder on the volume must exist, and
//! the manifest itself is on the volume.

use super::mounts::HostPaths;
use super::{Container, EnvVar, HttpGet, Pod, Probe, Resources, critical_pod};
use crate::components::{EtcdMemberNames, EtcdPorts, EtcdStart, KUBERNETES, etcd_environment};
use crate::config::EtcdCluster;

/// Inputs of a member's pod.
#[derive(Clone, Copy, Debug)]
pub struct EtcdPod<'a> {
    pub etcd: &'a EtcdCluster,
    /// Names of the cluster's members.
    pub names: &'a EtcdMemberNames,
    /// Ports of the cluster.
    pub ports: EtcdPorts,
    /// Short name of the member.
    pub member: &'a str,
    /// Whether the member founds the cluster.
    pub start: &'a EtcdStart,
    /// Path of the data folder on the mounted volume.
    pub data: &'a str,
}

/// Liveness check: whether the member answers reads of its own data. A restart helps neither a member without a leader nor
/// against an alarm (`NOSPACE`, `CORRUPT`), which all members share until it is disarmed, so both are excluded. kubeadm also
/// excludes `NOSPACE` (<https://github.com/kubernetes/kubernetes/pull/110744>). etcd 3.5 to 3.7 support both parameters
/// (`server/etcdserver/api/etcdhttp/health.go`); `/livez` does not exist in 3.5.10 and older.
const LIVE: &str = "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT";

/// Health check without alarms: the member knows a leader and a quorum answers reads.
pub const ETCD_SERVES: &str = "/health?exclude=NOSPACE&exclude=CORRUPT";

/// Any answer to it means that etcd runs.
pub const ETCD_ANSWERS: &str = "/health?serializable=true";

/// Builds the pod of a member.
pub fn build_etcd_pod(of: &EtcdPod<'_>) -> Pod {
    let EtcdMemberNames { prefix, .. } = of.names;
    let name = format!("etcd-{}", of.etcd.name);
    let environment = etcd_environment(of.etcd, of.names, of.ports, of.member, of.start);
    // Mount the host's /etc/hosts: the copy that kubelet makes would not follow the members' addresses.
    let mounts = HostPaths::default()
        .with_path(
            "data",
            of.data,
            &format!("/var/{prefix}/data"),
            Some("Directory"),
            false,
        )
        .with_path("hosts", "/etc/hosts", "/etc/hosts", Some("File"), true)
        .with_read_only("pki", &format!("{KUBERNETES}/{prefix}"))
        .with_tools();
    let probe = |path: &str, failures| Probe {
        failure_threshold: failures,
        http_get: HttpGet {
            host: "127.0.0.1".to_owned(),
            path: path.to_owned(),
            port: of.ports.health,
            scheme: "HTTP".to_owned(),
        },
        initial_delay_seconds: 10,
        period_seconds: 10,
        timeout_seconds: 15,
    };
    let requests = [
        ("cpu", &of.etcd.cpu_request),
        ("memory", &of.etcd.memory_request),
    ];
    let requests = requests.map(|(name, amount)| (name.to_owned(), amount.clone()));
    let container = Container {
        command: vec!["/usr/local/bin/etcd".to_owned()],
        env: environment
            .into_iter()
            .map(|(name, value)| EnvVar {
                name,
                value: Some(value),
                value_from: None,
            })
            .collect(),
        image: of.etcd.image.clone(),
        liveness_probe: Some(probe(LIVE, 8)),
        name: name.clone(),
        resources: Resources {
            requests: requests.into(),
            ..Resources::default()
        },
        startup_probe: Some(probe(LIVE, 60)),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical_pod(&name, "system-cluster-critical", container, mounts.volumes)
}
