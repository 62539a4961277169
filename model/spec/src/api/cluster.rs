//! What a cluster is: `kind: Cluster`, `spec`.
//!
//! Every field is optional here; expansion decides what was left out.

use std::collections::BTreeMap;

use serde_json::Value;

use super::addon_values::AddonValues;
use super::addons::{
    CertManagerConfig, ClusterAutoscalerConfig, LoadBalancerControllerSpec, MetricsServerConfig,
    NodeProblemDetectorConfig, NodeTerminationHandlerSpec, PodIdentityWebhookSpec,
    SnapshotControllerConfig,
};
use super::api_access::APISpec;
use super::assets::AssetsSpec;
use super::authentication::AuthenticationSpec;
use super::authorization::AuthorizationSpec;
use super::cloud::CloudConfiguration;
use super::cloud_controller_manager::CloudControllerManagerConfig;
use super::containerd::ContainerdConfig;
use super::dns::{ExternalDNSConfig, KubeDNSConfig};
use super::etcd::EtcdClusterSpec;
use super::fields::spec;
use super::host::{EgressProxySpec, FileAssetSpec, HookSpec, NTPConfig, RollingUpdate};
use super::iam::{IAMSpec, ServiceAccountIssuerDiscoveryConfig};
use super::instance::WarmPoolSpec;
use super::kube_apiserver::KubeAPIServerConfig;
use super::kube_controller_manager::KubeControllerManagerConfig;
use super::kube_proxy::KubeProxyConfig;
use super::kube_scheduler::KubeSchedulerConfig;
use super::kubelet::KubeletConfigSpec;
use super::networking::NetworkingSpec;
use super::subnet::ClusterSubnetSpec;
use super::topology::TopologySpec;

spec! {
    /// A cluster: its network, its control plane, its addons, and what all its instances share.
    pub struct ClusterSpec {
        /// Name or URL of the channel that recommends versions. Versions and images come with kctl: no effect. Default
        /// `stable`.
        pub channel: Option<String>,
        /// Lists of addons of yours, which `kctl update` reads and applies beside the cluster's own.
        pub addons: Vec<AddonSpec>,
        /// Changes of the pods of addons: replicas, resources, placement, arguments. kctl's own field.
        pub addon_values: Vec<AddonValues>,
        /// Folder of the cluster in the state store, `s3://BUCKET/NAME`. `kctl create cluster` writes it.
        pub config_base: Option<String>,
        /// Cloud of the cluster; only `aws` is possible.
        pub cloud_provider: Option<String>,
        /// Settings of names without DNS.
        pub gossip_config: Option<Value>,
        /// Container runtime of the instances; only `containerd` is possible.
        pub container_runtime: Option<String>,
        /// Version of Kubernetes, such as `1.36.0`. `kctl create cluster` writes the one that this kctl has for new clusters, and
        /// `kctl upgrade` the next one.
        pub kubernetes_version: Option<String>,
        /// An upgrade to another minor that can be taken back. kctl's own field.
        pub kubernetes_upgrade: Option<KubernetesUpgrade>,
        /// Subnets of the cluster, at least one in each zone, all of one region.
        pub subnets: Vec<ClusterSubnetSpec>,
        /// Google Cloud only.
        pub project: Option<String>,
        /// DNS name of the API for users. Default `api.NAME`.
        pub master_public_name: Option<String>,
        /// DNS name of the API for instances. Default `api.internal.NAME`.
        pub master_internal_name: Option<String>,
        /// IPv4 range of the VPC. Default `172.20.0.0/16`, or that of `networkID`.
        #[serde(rename = "networkCIDR")]
        pub network_cidr: Option<String>,
        /// Further IPv4 ranges of the VPC.
        #[serde(rename = "additionalNetworkCIDRs")]
        pub additional_network_cidrs: Vec<String>,
        /// ID of an existing VPC, `vpc-...`, which kctl uses and never changes or deletes. Default a VPC of the cluster's own.
        #[serde(rename = "networkID")]
        pub network_id: Option<String>,
        /// Which hosted zone has the cluster's names, and the bastion.
        pub topology: Option<TopologySpec>,
        /// Folder of the cluster's secrets; only `secrets` below `configBase` is possible.
        pub secret_store: Option<String>,
        /// Folder of the cluster's keys and certificates; only `pki` below `configBase` is possible.
        pub key_store: Option<String>,
        /// Folder of the cluster's files; only that of `configBase` is possible.
        pub config_store: Option<String>,
        /// Name or ID of the hosted zone of the cluster's names. Default the zone with the longest name that fits.
        pub dns_zone: Option<String>,
        /// Settings of names without DNS.
        pub dns_controller_gossip_config: Option<Value>,
        /// Further DNS names and addresses in the certificate of the API server.
        pub additional_sans: Vec<String>,
        /// Domain of the names of Services and pods. Default `cluster.local`.
        #[serde(rename = "clusterDNSDomain")]
        pub cluster_dns_domain: Option<String>,
        /// Range of the addresses of Services, which kctl never moves in a running cluster. Default a part of
        /// `nonMasqueradeCIDR`.
        #[serde(rename = "serviceClusterIPRange")]
        pub service_cluster_ip_range: Option<String>,
        /// Range of the addresses of pods. Default a part of `nonMasqueradeCIDR`.
        #[serde(rename = "podCIDR")]
        pub pod_cidr: Option<String>,
        /// Range of pods and Services, which they reach with their own addresses. `::/0` makes an IPv6 cluster. Default
        /// `100.64.0.0/10`.
        #[serde(rename = "nonMasqueradeCIDR")]
        pub non_masquerade_cidr: Option<String>,
        /// Ranges and prefix lists (`pl-...`) from which port 22 of instances or bastions can be reached. Default none; `kctl
        /// create cluster` writes everywhere.
        pub ssh_access: Vec<String>,
        /// Ranges and prefix lists (`pl-...`) from which NodePorts of nodes can be reached. Default none.
        pub node_port_access: Vec<String>,
        /// HTTP proxy through which instances reach the internet. Default none.
        pub egress_proxy: Option<EgressProxySpec>,
        /// Name of an existing EC2 key pair for instances; empty for none. Default the cluster's SSHCredential.
        pub ssh_key_name: Option<String>,
        /// Ranges and prefix lists (`pl-...`) from which the API can be reached. Default none; `kctl create cluster` writes
        /// everywhere.
        pub kubernetes_api_access: Vec<String>,
        /// Keeps control planes off the network of pods.
        pub isolate_masters: Option<bool>,
        /// `automatic`: instances install security updates of their system by themselves. `external`: they do not. Default
        /// `automatic`.
        pub update_policy: Option<String>,
        /// ARNs of managed policies that the roles of instances get, by role: `master`, `node`, `bastion`.
        pub external_policies: BTreeMap<String, Vec<String>>,
        /// IAM statements that the roles of instances get, each a JSON list as text, by role: `master`, `node`, `bastion`.
        pub additional_policies: BTreeMap<String, String>,
        /// Files that are written on instances.
        pub file_assets: Vec<FileAssetSpec>,
        /// The etcd clusters `main` and `events`. Default each with a member in every control-plane group.
        pub etcd_clusters: Vec<EtcdClusterSpec>,
        /// Settings of Docker.
        pub docker: Option<Value>,
        /// The container runtime of all instances.
        pub containerd: Option<ContainerdConfig>,
        /// CoreDNS, which answers for the names of Services and pods.
        #[serde(rename = "kubeDNS")]
        pub kube_dns: Option<KubeDNSConfig>,
        /// The API server of every control plane.
        #[serde(rename = "kubeAPIServer")]
        pub kube_api_server: Option<KubeAPIServerConfig>,
        /// The controller manager of every control plane.
        pub kube_controller_manager: Option<KubeControllerManagerConfig>,
        /// The AWS cloud controller manager, which initializes Nodes and makes load balancers of Services.
        pub cloud_controller_manager: Option<CloudControllerManagerConfig>,
        /// The scheduler of every control plane.
        pub kube_scheduler: Option<KubeSchedulerConfig>,
        /// kube-proxy of every instance, which answers for Services.
        pub kube_proxy: Option<KubeProxyConfig>,
        /// kubelet of every instance. Values of an instance group win.
        pub kubelet: Option<KubeletConfigSpec>,
        /// kubelet of control planes. Its values win over `kubelet`.
        pub master_kubelet: Option<KubeletConfigSpec>,
        /// Settings of the cloud controller manager, of the EBS CSI driver and of StorageClasses.
        pub cloud_config: Option<CloudConfiguration>,
        /// Who publishes the names of Services, Ingresses and pods in the hosted zone.
        pub external_dns: Option<ExternalDNSConfig>,
        /// Who sets the clocks of instances.
        pub ntp: Option<NTPConfig>,
        /// Packages of the system that every instance installs.
        pub packages: Vec<String>,
        /// Drains Nodes before AWS ends their instances. Default on.
        pub node_termination_handler: Option<NodeTerminationHandlerSpec>,
        /// Reports what is wrong with a node. Default off.
        pub node_problem_detector: Option<NodeProblemDetectorConfig>,
        /// Reads from kubelets what nodes and pods use. Default off.
        pub metrics_server: Option<MetricsServerConfig>,
        /// Issues certificates for objects of Kubernetes. Default off.
        pub cert_manager: Option<CertManagerConfig>,
        /// Makes load balancers for Ingresses and Services. Default off.
        pub aws_load_balancer_controller: Option<LoadBalancerControllerSpec>,
        /// The network plugin, which connects pods. Exactly one of the fields is set.
        pub networking: Option<NetworkingSpec>,
        /// How clients reach the API. Default DNS names, or a load balancer where control planes are private or there is no
        /// hosted zone.
        pub api: Option<APISpec>,
        /// Who API servers ask about tokens that they do not know. Default nobody.
        pub authentication: Option<AuthenticationSpec>,
        /// How the API server decides who may do what. Default RBAC.
        pub authorization: Option<AuthorizationSpec>,
        /// Settings of the authorization of Nodes.
        pub node_authorization: Option<Value>,
        /// Tags of every AWS object of the cluster.
        pub cloud_labels: BTreeMap<String, String>,
        /// systemd units that run on instances.
        pub hooks: Vec<HookSpec>,
        /// Where instances get container images and files from. Default the internet.
        pub assets: Option<AssetsSpec>,
        /// Roles of the instances and of service accounts.
        pub iam: Option<IAMSpec>,
        /// Encrypts Secrets in etcd with the secret `encryptionconfig`, which `kctl create secret` stores. Default false, with
        /// `profile: cis` true.
        pub encryption_config: Option<bool>,
        /// Subnets get no tags for load balancers of Services. Default false.
        #[serde(rename = "DisableSubnetTags")]
        pub disable_subnet_tags: Option<bool>,
        /// Settings of outputs that kctl does not have.
        pub target: Option<TargetSpec>,
        /// Programs that call AWS trust the CA certificates of the instance. In kctl they always do: no effect.
        pub use_host_certificates: Option<bool>,
        /// Kernel parameters of every instance, each as `name=value`.
        pub sysctl_parameters: Vec<String>,
        /// How fast a rolling update replaces instances. Values of an instance group win.
        pub rolling_update: Option<RollingUpdate>,
        /// Adds and removes instances of groups of nodes as pods need them. Default off.
        pub cluster_autoscaler: Option<ClusterAutoscalerConfig>,
        /// Stopped instances that are kept ready for each group of nodes. Values of an instance group win. Default none.
        pub warm_pool: Option<WarmPoolSpec>,
        /// Publishes who issues the tokens of service accounts, so that AWS and others take them. Default not.
        pub service_account_issuer_discovery: Option<ServiceAccountIssuerDiscoveryConfig>,
        /// Makes snapshots of volumes for objects of Kubernetes. Default off.
        pub snapshot_controller: Option<SnapshotControllerConfig>,
        /// Settings of Karpenter.
        pub karpenter: Option<Value>,
        /// Changes pods so that they get the AWS role of their service account. Default off.
        pub pod_identity_webhook: Option<PodIdentityWebhookSpec>,
        /// `cis`: fields that the spec leaves out get what the CIS Kubernetes Benchmark asks for, and values against it are refused.
        /// kctl's own field. Default none.
        pub profile: Option<String>,
    }

    /// While it is in the spec, the control plane's components are of `kubernetesVersion` and emulate the minor before, and everything else
    /// is of the version before.
    pub struct KubernetesUpgrade {
        /// The version before the upgrade.
        pub from: Option<String>,
    }

    /// Settings of outputs other than AWS itself.
    pub struct TargetSpec {
        /// Settings of kOps' Terraform output. kctl has none: no effect.
        pub terraform: Option<TerraformSpec>,
    }

    /// Settings of kOps' Terraform output. kctl has none: no effect.
    pub struct TerraformSpec {
        /// Settings of the AWS provider of Terraform: no effect.
        pub provider_extra_config: BTreeMap<String, String>,
        /// Settings of the provider of files of Terraform: no effect.
        pub files_provider_extra_config: BTreeMap<String, String>,
    }

    /// A list of addons of yours.
    pub struct AddonSpec {
        /// Place of the list: an https URL, or an object in the bucket of the state store, `s3://BUCKET/...`.
        pub manifest: String,
    }
}

impl ClusterSpec {
    /// True if the cluster is to be as the CIS Kubernetes Benchmark asks.
    pub fn is_cis(&self) -> bool {
        self.profile.as_deref() == Some("cis")
    }

    /// True if Secrets in etcd are encrypted, also before the spec is completed.
    pub fn encrypts_secrets(&self) -> bool {
        self.encryption_config.unwrap_or(self.is_cis())
    }

    /// True if pods, Services and instances have IPv6 addresses: kOps decides by this field too.
    pub fn is_ipv6(&self) -> bool {
        let range = self.non_masquerade_cidr.as_deref();
        range.is_some_and(|range| range.contains(':'))
    }
}
