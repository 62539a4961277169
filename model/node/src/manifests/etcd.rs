//! etcd's static pod. It can start only where its volume is: the data folder is a path on the volume that must
//! exist, and the manifest itself lies there.

use super::mounts::Mounts;
use super::{Container, EnvVar, HttpGet, Pod, Probe, Resources, critical};
use crate::components::{EtcdMemberNames, EtcdPorts, EtcdStart, KUBERNETES, etcd_environment};
use crate::config::EtcdCluster;

/// One member as a pod.
#[derive(Clone, Copy, Debug)]
pub struct EtcdPod<'a> {
    /// The etcd cluster.
    pub etcd: &'a EtcdCluster,
    /// Its members' names.
    pub names: &'a EtcdMemberNames,
    /// Its ports.
    pub ports: EtcdPorts,
    /// Which member.
    pub member: &'a str,
    /// Whether it founds the cluster.
    pub start: &'a EtcdStart,
    /// The data folder on the mounted volume.
    pub data: &'a str,
}

/// Whether a member answers reads of its own data. A member without a leader is not healed by a restart, and an alarm (`NOSPACE`,
/// `CORRUPT`) of one member is every member's until somebody ends it: neither is a reason to end etcd. So kubeadm, too, excludes
/// `NOSPACE` (<https://github.com/kubernetes/kubernetes/pull/110744>). etcd 3.5 and 3.6 read both parameters there
/// (`server/etcdserver/api/etcdhttp/health.go`); `/livez` is not in 3.5.10 and older.
const LIVE: &str = "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT";

/// Where a member is asked whether it knows a leader and a quorum answers reads, whatever alarms say.
pub const ETCD_SERVES: &str = "/health?exclude=NOSPACE&exclude=CORRUPT";

/// Where it is asked about alarms too.
pub const ETCD_ALARMS: &str = "/health?serializable=true";

/// The pod.
pub fn etcd(of: &EtcdPod<'_>) -> Pod {
    let EtcdMemberNames { prefix, .. } = of.names;
    let name = format!("etcd-{}", of.etcd.name);
    let environment = etcd_environment(of.etcd, of.names, of.ports, of.member, of.start);
    // The host's file itself: kubelet's copy would not follow the members' addresses.
    let mounts = Mounts::default()
        .add(
            "data",
            of.data,
            &format!("/var/{prefix}/data"),
            Some("Directory"),
            false,
        )
        .add("hosts", "/etc/hosts", "/etc/hosts", Some("File"), true)
        .reads("pki", &format!("{KUBERNETES}/{prefix}"));
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
    critical(&name, "system-cluster-critical", container, mounts.volumes)
}
