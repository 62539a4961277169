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
    /// The spec of a Cluster, as kOps' v1alpha2 writes it.
    pub struct ClusterSpec {
        /// Channel that recommends versions and images: a name such as `stable`, or a URL.
        pub channel: Option<String>,
        /// Manifests applied beside the cluster's own addons.
        pub addons: Vec<AddonSpec>,
        /// Changes of addons' pods. kctl's own field.
        pub addon_values: Vec<AddonValues>,
        /// Where the cluster's files are kept: `s3://bucket/NAME`.
        pub config_base: Option<String>,
        /// The cloud; `aws`.
        pub cloud_provider: Option<String>,
        /// Names without DNS; left kOps with gossip.
        pub gossip_config: Option<Value>,
        /// Container runtime; `containerd`.
        pub container_runtime: Option<String>,
        /// Kubernetes version, with or without `v`, kept as written.
        pub kubernetes_version: Option<String>,
        /// An upgrade to another minor that can be taken back. kctl's own field.
        pub kubernetes_upgrade: Option<KubernetesUpgrade>,
        /// Slices of the VPC, one or more per zone.
        pub subnets: Vec<ClusterSubnetSpec>,
        /// Google Cloud project; no meaning on AWS.
        pub project: Option<String>,
        /// Name of the API for users; default `api.NAME`.
        pub master_public_name: Option<String>,
        /// Name of the API for instances; default `api.internal.NAME`.
        pub master_internal_name: Option<String>,
        /// IPv4 range of the VPC.
        #[serde(rename = "networkCIDR")]
        pub network_cidr: Option<String>,
        /// Further IPv4 ranges of the VPC.
        #[serde(rename = "additionalNetworkCIDRs")]
        pub additional_network_cidrs: Vec<String>,
        /// An existing VPC to use, `vpc-...`; kctl then never creates or deletes it.
        #[serde(rename = "networkID")]
        pub network_id: Option<String>,
        pub topology: Option<TopologySpec>,
        /// Where secrets are kept; default `configBase` + `/secrets`.
        pub secret_store: Option<String>,
        /// Where keysets are kept; default `configBase` + `/pki`.
        pub key_store: Option<String>,
        /// Where the cluster's files are kept, when not `configBase`.
        pub config_store: Option<String>,
        /// Hosted zone of the cluster's names: a name or an id; default the longest zone that fits.
        pub dns_zone: Option<String>,
        /// Names without DNS; left kOps with gossip.
        pub dns_controller_gossip_config: Option<Value>,
        /// Further names and addresses in the API's certificate.
        pub additional_sans: Vec<String>,
        /// Domain of services inside the cluster; default `cluster.local`.
        #[serde(rename = "clusterDNSDomain")]
        pub cluster_dns_domain: Option<String>,
        /// Range of service addresses, inside `nonMasqueradeCIDR`.
        #[serde(rename = "serviceClusterIPRange")]
        pub service_cluster_ip_range: Option<String>,
        /// Range of pod addresses, inside `nonMasqueradeCIDR`.
        #[serde(rename = "podCIDR")]
        pub pod_cidr: Option<String>,
        /// Range that pods reach without address translation: pods and services.
        #[serde(rename = "nonMasqueradeCIDR")]
        pub non_masquerade_cidr: Option<String>,
        /// CIDRs and prefix lists that may reach port 22.
        pub ssh_access: Vec<String>,
        /// CIDRs and prefix lists that may reach NodePort services.
        pub node_port_access: Vec<String>,
        /// HTTP proxy through which instances reach the internet.
        pub egress_proxy: Option<EgressProxySpec>,
        /// Name of an existing EC2 key pair; empty: none.
        pub ssh_key_name: Option<String>,
        /// CIDRs and prefix lists that may reach the API.
        pub kubernetes_api_access: Vec<String>,
        /// Removed from kOps.
        pub isolate_masters: Option<bool>,
        /// `automatic` (security updates by the system) or `external`.
        pub update_policy: Option<String>,
        /// ARNs of managed policies per role (`master`, `node`, `bastion`).
        pub external_policies: BTreeMap<String, Vec<String>>,
        /// IAM statements as JSON text per role (`master`, `node`, `bastion`).
        pub additional_policies: BTreeMap<String, String>,
        /// Files written on instances.
        pub file_assets: Vec<FileAssetSpec>,
        /// The etcd clusters: `main` and `events`.
        pub etcd_clusters: Vec<EtcdClusterSpec>,
        /// Docker as container runtime; removed from kOps.
        pub docker: Option<Value>,
        pub containerd: Option<ContainerdConfig>,
        #[serde(rename = "kubeDNS")]
        pub kube_dns: Option<KubeDNSConfig>,
        #[serde(rename = "kubeAPIServer")]
        pub kube_api_server: Option<KubeAPIServerConfig>,
        pub kube_controller_manager: Option<KubeControllerManagerConfig>,
        /// The AWS cloud controller manager.
        pub cloud_controller_manager: Option<CloudControllerManagerConfig>,
        pub kube_scheduler: Option<KubeSchedulerConfig>,
        pub kube_proxy: Option<KubeProxyConfig>,
        /// kubelet of every instance.
        pub kubelet: Option<KubeletConfigSpec>,
        /// kubelet of control-plane instances; wins over `kubelet`.
        pub master_kubelet: Option<KubeletConfigSpec>,
        /// Settings of the cloud's controllers and drivers.
        pub cloud_config: Option<CloudConfiguration>,
        /// external-dns, or the publication of names for ingresses.
        pub external_dns: Option<ExternalDNSConfig>,
        pub ntp: Option<NTPConfig>,
        /// System packages installed on every instance.
        pub packages: Vec<String>,
        /// Drains instances that AWS is about to stop.
        pub node_termination_handler: Option<NodeTerminationHandlerSpec>,
        pub node_problem_detector: Option<NodeProblemDetectorConfig>,
        pub metrics_server: Option<MetricsServerConfig>,
        pub cert_manager: Option<CertManagerConfig>,
        /// Makes load balancers for Ingresses and Services.
        pub aws_load_balancer_controller: Option<LoadBalancerControllerSpec>,
        /// The CNI; exactly one.
        pub networking: Option<NetworkingSpec>,
        /// How the API is reached: DNS names or a load balancer.
        pub api: Option<APISpec>,
        /// Webhook that API servers ask who sent a token.
        pub authentication: Option<AuthenticationSpec>,
        /// Authorization mode of the API.
        pub authorization: Option<AuthorizationSpec>,
        /// Removed from kOps.
        pub node_authorization: Option<Value>,
        /// Tags put on every cloud resource.
        pub cloud_labels: BTreeMap<String, String>,
        /// systemd units run on instances.
        pub hooks: Vec<HookSpec>,
        /// Where images and binaries come from.
        pub assets: Option<AssetsSpec>,
        /// IAM roles of the instances.
        pub iam: Option<IAMSpec>,
        /// True: secrets are encrypted at rest with the secret `encryptionconfig`.
        pub encryption_config: Option<bool>,
        /// True: shared subnets get no tags.
        #[serde(rename = "DisableSubnetTags")]
        pub disable_subnet_tags: Option<bool>,
        /// What further outputs need, of which kctl has none.
        pub target: Option<TargetSpec>,
        /// True: what calls AWS trusts the CA certificates of the instance, which in kctl is always so.
        pub use_host_certificates: Option<bool>,
        /// Kernel parameters, `name=value`.
        pub sysctl_parameters: Vec<String>,
        /// Defaults of rolling updates.
        pub rolling_update: Option<RollingUpdate>,
        /// Adds and removes instances as pods need them.
        pub cluster_autoscaler: Option<ClusterAutoscalerConfig>,
        /// Defaults of warm pools.
        pub warm_pool: Option<WarmPoolSpec>,
        /// Public OIDC discovery of service account tokens.
        pub service_account_issuer_discovery: Option<ServiceAccountIssuerDiscoveryConfig>,
        /// Volume snapshot controller addon.
        pub snapshot_controller: Option<SnapshotControllerConfig>,
        pub karpenter: Option<Value>,
        /// Gives pods the AWS role of their service account.
        pub pod_identity_webhook: Option<PodIdentityWebhookSpec>,
    }

    /// While it is in the spec, the control plane's components are of `kubernetesVersion` and emulate the minor before, and everything else
    /// is of the version before.
    pub struct KubernetesUpgrade {
        /// The version before the upgrade.
        pub from: Option<String>,
    }

    /// Settings of outputs other than AWS itself.
    pub struct TargetSpec {
        pub terraform: Option<TerraformSpec>,
    }

    /// What Terraform's AWS providers get beside the region.
    pub struct TerraformSpec {
        pub provider_extra_config: BTreeMap<String, String>,
        pub files_provider_extra_config: BTreeMap<String, String>,
    }

    /// One manifest applied beside the cluster's own addons.
    pub struct AddonSpec {
        /// URL or path of the manifest or channel.
        pub manifest: String,
    }
}

impl ClusterSpec {
    /// True if pods, Services and instances have IPv6 addresses: kOps decides by this field too.
    pub fn is_ipv6(&self) -> bool {
        let range = self.non_masquerade_cidr.as_deref();
        range.is_some_and(|range| range.contains(':'))
    }
}
