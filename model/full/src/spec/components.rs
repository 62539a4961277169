//! The components of Kubernetes and the addons of the full spec.

use super::{
    AddonValues, AmazonVpc, AwsIamAuthenticator, Calico, CertManager, Cilium, ClusterAutoscaler,
    EbsCsiDriver, ExternalDns, Kindnet, KubeRouter, LoadBalancerController, MetricsServer,
    NodeLocalDns, NodeProblemDetector, NvidiaDevicePlugin, PodIdentityWebhook, SnapshotController,
};
use node::components::{Component, Flags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The components of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlPlane {
    pub api_server: Component,
    pub controller_manager: Component,
    pub scheduler: Component,
    /// The content of kube-scheduler's configuration file.
    pub scheduler_config: Value,
}

/// The addons that kctl deploys into the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Addons {
    /// CoreDNS; `None`: the user brings a DNS server.
    pub core_dns: Option<CoreDns>,
    /// The node-local DNS cache.
    #[serde(default)]
    pub node_local_dns: Option<NodeLocalDns>,
    /// The AWS cloud controller manager.
    pub cloud_controller_manager: CloudControllerManager,
    /// flannel, where it is the network plugin.
    pub flannel: Option<Flannel>,
    /// calico, where it is the network plugin.
    #[serde(default)]
    pub calico: Option<Calico>,
    /// cilium, where it is the network plugin.
    #[serde(default)]
    pub cilium: Option<Cilium>,
    /// The Amazon VPC CNI, where it is the network plugin.
    #[serde(default)]
    pub amazon_vpc: Option<AmazonVpc>,
    /// kube-router, where it is the network plugin.
    #[serde(default)]
    pub kube_router: Option<KubeRouter>,
    /// kindnet, where it is the network plugin.
    #[serde(default)]
    pub kindnet: Option<Kindnet>,
    /// The EBS CSI driver; `None`: the user installs one, or wants none.
    #[serde(default)]
    pub ebs_csi_driver: Option<EbsCsiDriver>,
    /// The StorageClasses of kOps.
    #[serde(default)]
    pub storage_classes: bool,
    #[serde(default)]
    pub node_problem_detector: Option<NodeProblemDetector>,
    /// Where a group may have GPUs of NVIDIA.
    #[serde(default)]
    pub nvidia: Option<NvidiaDevicePlugin>,
    #[serde(default)]
    pub cert_manager: Option<CertManager>,
    #[serde(default)]
    pub snapshot_controller: Option<SnapshotController>,
    #[serde(default)]
    pub cluster_autoscaler: Option<ClusterAutoscaler>,
    #[serde(default)]
    pub metrics_server: Option<MetricsServer>,
    #[serde(default)]
    pub load_balancer_controller: Option<LoadBalancerController>,
    #[serde(default)]
    pub pod_identity_webhook: Option<PodIdentityWebhook>,
    #[serde(default)]
    pub external_dns: Option<ExternalDns>,
    #[serde(default)]
    pub aws_iam_authenticator: Option<AwsIamAuthenticator>,
    /// What the user changes in their pods.
    #[serde(default)]
    pub values: Vec<AddonValues>,
}

/// Settings of the addon CoreDNS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreDns {
    pub corefile: Corefile,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Corefile {
    /// The whole text, from the spec.
    Own(String),
    /// kctl's Corefile with these settings.
    Made {
        /// The cluster's DNS domain.
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
    pub image: String,
    /// Flags, without that of its configuration file.
    pub flags: Flags,
    pub cpu_request: Option<String>,
    /// Settings of its configuration file, in the order of the file.
    pub settings: Vec<(String, String)>,
}

/// Settings of the addon flannel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flannel {
    /// `vxlan` or `udp`.
    pub backend: String,
    pub image: String,
    /// Image of its CNI plugin.
    pub plugin_image: String,
    /// Seconds between checks of its iptables rules.
    pub iptables_resync_seconds: i32,
    /// SELinux is enabled for containers.
    pub selinux: bool,
}
