//! The components of Kubernetes and the addons of the full spec.

use node::components::{Component, Flags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The components of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlPlane {
    /// kube-apiserver.
    pub api_server: Component,
    /// kube-controller-manager.
    pub controller_manager: Component,
    /// kube-scheduler.
    pub scheduler: Component,
    /// KubeSchedulerConfiguration.
    pub scheduler_config: Value,
}

/// What kctl deploys into the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Addons {
    /// CoreDNS; `None`: the user brings a DNS server.
    pub core_dns: Option<CoreDns>,
    /// The AWS cloud controller manager.
    pub cloud_controller_manager: CloudControllerManager,
    /// flannel, where it is the network plugin.
    pub flannel: Option<Flannel>,
}

/// CoreDNS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreDns {
    /// Its configuration.
    pub corefile: Corefile,
    /// Image.
    pub image: String,
    /// Number of pods; `None`: the autoscaler sets it.
    pub replicas: Option<i32>,
    /// Image of the autoscaler.
    pub autoscaler_image: String,
    /// CPU request of a pod.
    pub cpu_request: Option<String>,
    /// Memory request of a pod.
    pub memory_request: Option<String>,
    /// Memory limit of a pod.
    pub memory_limit: Option<String>,
    /// Tolerations of its pods, as in Kubernetes.
    pub tolerations: Vec<Value>,
    /// Affinity of its pods, as in Kubernetes.
    pub affinity: Option<Value>,
    /// Annotations of its pods.
    pub pod_annotations: BTreeMap<String, String>,
}

/// A Corefile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Corefile {
    /// The user's own text.
    Own(String),
    /// Made of these.
    Made {
        /// The cluster's domain.
        domain: String,
        /// Name servers of everything else; none: the instance's.
        upstreams: Vec<String>,
        /// Name servers of single domains.
        stub_domains: BTreeMap<String, Vec<String>>,
    },
}

/// The AWS cloud controller manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudControllerManager {
    /// Image.
    pub image: String,
    /// Flags, without that of its configuration file.
    pub flags: Flags,
    /// CPU request.
    pub cpu_request: Option<String>,
    /// Settings of its configuration file, in the order of the file.
    pub settings: Vec<(String, String)>,
}

/// flannel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flannel {
    /// `vxlan` or `udp`.
    pub backend: String,
    /// Image.
    pub image: String,
    /// Image of its CNI plugin.
    pub plugin_image: String,
    /// Seconds between checks of its iptables rules.
    pub iptables_resync_seconds: i32,
    /// SELinux labels containers.
    pub selinux: bool,
}
