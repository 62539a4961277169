//! The types of the full spec. All defaults are filled in: no `None` means "use a default".

mod components;
mod group;
mod images;
mod pod_identity;

pub use crate::addons::amazon_vpc::{
    AmazonVpc, FORCED as FORCED_VPC_VARIABLES, RESERVED as RESERVED_VPC_VARIABLES,
};
pub use crate::addons::aws_iam_authenticator::{AwsIamAuthenticator, IdentityMapping};
pub use crate::addons::calico::{
    Calico, Encapsulated, Encapsulation, SourceDestinationCheck, Typha,
};
pub use crate::addons::cert_manager::CertManager;
pub use crate::addons::cilium::hubble::Hubble;
pub use crate::addons::cilium::{Cilium, CiliumIngress};
pub use crate::addons::cluster_autoscaler::ClusterAutoscaler;
pub use crate::addons::ebs_csi_driver::EbsCsiDriver;
pub use crate::addons::external_dns::ExternalDns;
pub use crate::addons::kindnet::Kindnet;
pub use crate::addons::kube_router::KubeRouter;
pub use crate::addons::load_balancer_controller::LoadBalancerController;
pub use crate::addons::metrics_server::MetricsServer;
pub use crate::addons::node_local_dns::NodeLocalDns;
pub use crate::addons::node_problem_detector::NodeProblemDetector;
pub use crate::addons::nvidia::NvidiaDevicePlugin;
pub use crate::addons::pod_identity_webhook::PodIdentityWebhook;
pub use crate::addons::snapshot_controller::SnapshotController;
pub use crate::addons::values::AddonValues;
pub use components::{Addons, CloudControllerManager, ControlPlane, CoreDns, Corefile, Flannel};
pub use group::{ExternalLoadBalancer, Group, NodeSettings, Volume, WarmPool};
pub use images::ImageSource;
pub use pod_identity::{PodIdentity, ServiceAccountRole};

use cloud::SubnetIpv6Range;
use ipnet::{IpNet, Ipv4Net};
use node::backup::EtcdBackupSettings;
use node::components::Component;
use node::config::{Asset, ImageArchive, Networking, Rebalance};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The full spec of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullSpec {
    /// The cluster's name, a DNS name.
    pub name: String,
    pub placement: Placement,
    /// Kubernetes version of nodes without `v`: `1.36.3`. The images of the control plane's components may be of a newer one.
    pub kubernetes_version: String,
    pub state: StateLocation,
    pub network: Network,
    /// Address ranges inside the cluster, and the network plugin.
    pub pods: PodNetwork,
    /// DNS names of the API, and their hosted zone.
    pub dns: Dns,
    pub api: Api,
    /// The load balancer in front of bastions; unused without bastions.
    pub bastion: Bastion,
    /// Sources (CIDR or `pl-`) that may use SSH.
    pub ssh_access: Vec<String>,
    /// The key pair of instances; `None`: no key.
    pub ssh_key: Option<SshKey>,
    /// Sources (CIDR or `pl-`) that may reach node ports.
    pub node_port_access: Vec<String>,
    /// First and last node port.
    pub node_port_range: (u16, u16),
    /// Tags of the user on all resources.
    pub cloud_labels: BTreeMap<String, String>,
    pub iam: Iam,
    /// The published issuer of service accounts' tokens; `None`: only the API knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
    /// etcd clusters: main, events.
    pub etcd: Vec<EtcdCluster>,
    /// The components of the control plane.
    pub control_plane: ControlPlane,
    /// kube-proxy; `None`: the spec disables it.
    pub kube_proxy: Option<Component>,
    pub addons: Addons,
    /// Where images come from.
    #[serde(default)]
    pub images: ImageSource,
    /// The HTTP proxy through which instances reach the internet.
    pub egress_proxy: Option<EgressProxy>,
    /// Node termination handling; `None`: off.
    pub node_termination: Option<NodeTermination>,
    /// Downloads of every architecture in use, sorted by name and architecture.
    pub assets: Vec<Asset>,
    /// Archives of images in the state store, which instances import instead of pulling the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_archives: Vec<ImageArchive>,
    /// Instance groups, sorted by name.
    pub groups: Vec<Group>,
}

impl FullSpec {
    /// True if Kubernetes is of this minor or a later one.
    pub fn is_at_least(&self, minor: u32) -> bool {
        let own = self.kubernetes_version.split('.').nth(1);
        own.and_then(|own| own.parse::<u32>().ok()) >= Some(minor)
    }

    /// True if pods, Services and instances have IPv6 addresses.
    pub fn is_ipv6(&self) -> bool {
        matches!(self.pods.non_masquerade_cidr, IpNet::V6(_))
    }

    /// True if the permissions of addons go to roles of their service accounts.
    pub fn addons_have_roles(&self) -> bool {
        let identity = self.pod_identity.as_ref();
        identity.is_some_and(|identity| identity.addon_roles)
    }
}

/// Account and region of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// For example `eu-west-1`.
    pub region: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Account id, twelve digits.
    pub account: String,
}

/// The location of a cluster in the state store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLocation {
    /// `s3://BUCKET[/PREFIX]/NAME` or `file://DIR/NAME`.
    pub config_base: String,
    /// The S3 bucket; `None` for a directory.
    pub bucket: Option<String>,
    /// Key of the cluster's folder in the bucket (no slashes at the ends), or the directory.
    pub prefix: String,
    /// Account that owns the bucket, and those of backups: instances use no bucket of another one. `None`: nobody could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The cluster's network in AWS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Id of an existing VPC to use; `None`: kctl creates one.
    pub shared_vpc: Option<String>,
    /// The internet gateway of a shared VPC, if it has one.
    pub shared_internet_gateway: Option<String>,
    /// The egress-only internet gateway of a shared VPC, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_egress_only_internet_gateway: Option<String>,
    /// The VPC's first range.
    pub cidr: Ipv4Net,
    /// Further ranges of the VPC.
    pub additional_cidrs: Vec<Ipv4Net>,
    /// Subnets in the spec's order.
    pub subnets: Vec<Subnet>,
    /// Do not tag subnets for load balancers.
    pub disable_subnet_tags: bool,
}

/// The type of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SubnetType {
    /// Routed to the internet gateway.
    Public,
    /// Behind a NAT gateway.
    Private,
    /// Private, in an IPv6 cluster with IPv4 too: for control planes and internal load balancers.
    DualStack,
    /// Public, for load balancers, NAT gateways and bastions of a private topology.
    Utility,
}

impl SubnetType {
    /// True if its instances reach the internet, and nobody there reaches them.
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::DualStack)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// The spec's name, often the zone's.
    pub name: String,
    pub zone: String,
    /// IPv4 range; `None`: IPv6 only.
    pub cidr: Option<Ipv4Net>,
    /// IPv6 range; `None`: IPv4 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr: Option<SubnetIpv6Range>,
    pub kind: SubnetType,
    /// Id of an existing subnet to use; `None`: kctl creates one.
    pub shared: Option<String>,
    /// Private subnets: `nat-`, `eipalloc-` (also where the spec says `publicIP`), `i-`, `tgw-`, `External`;
    /// `None`: kctl creates a NAT gateway and an address.
    pub egress: Option<String>,
    /// More routes: CIDR and target (`pcx-`, `i-`, `nat-`, `tgw-`, `igw-`, `eigw-`).
    pub additional_routes: Vec<(String, String)>,
}

/// Addresses inside the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNetwork {
    pub networking: Networking,
    /// Traffic to this range, which contains pods and services, is not masqueraded. `::/0`: an IPv6 cluster.
    pub non_masquerade_cidr: IpNet,
    /// Pods' addresses; `None`: each instance has a range of its subnet for them, in IPv6 clusters.
    pub pod_cidr: Option<IpNet>,
    pub service_cidr: IpNet,
    /// Service address of the cluster's DNS server.
    pub dns_service_ip: std::net::IpAddr,
    /// For example `cluster.local`.
    pub dns_domain: String,
}

/// DNS names of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    pub kind: DnsKind,
    /// The hosted zone; `None` only without DNS.
    pub zone: Option<Zone>,
    /// By default `api.NAME`.
    pub api_public_name: String,
    /// By default `api.internal.NAME`.
    pub api_internal_name: String,
    /// protokube publishes the names of Services, Ingresses and pods; `None`: it does not.
    pub object_names: Option<ObjectNames>,
}

/// Names of Services, Ingresses and pods, as kOps' dns-controller publishes them. protokube reads its settings from the completed spec;
/// here is what its rights depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectNames {
    /// Hosts in the rules of Ingresses are published too.
    pub watch_ingress: bool,
}

/// Where the cluster's DNS names are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DnsKind {
    /// Nowhere: instances find the API at the load balancer.
    None,
    /// In a public hosted zone.
    Public,
    /// In a private hosted zone.
    Private,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Without `/hostedzone/`.
    pub id: String,
    /// Without the trailing dot.
    pub name: String,
}

/// How the API is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// Sources (CIDR or `pl-`) that may reach the API.
    pub access: Vec<String>,
    /// The load balancer; `None`: DNS names of the control planes.
    pub load_balancer: Option<ApiLoadBalancer>,
    /// More names and addresses in the API server's certificate.
    pub additional_names: Vec<String>,
    /// Every node reaches the API through a proxy of its own.
    pub node_proxy: bool,
}

/// The API's network load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoadBalancer {
    /// `Internal` instead of `Public`.
    pub internal: bool,
    /// Subnets (one per zone) with optional elastic IP and private address.
    pub subnets: Vec<ApiLoadBalancerSubnet>,
    pub cross_zone: bool,
    /// Ids of additional security groups.
    pub additional_security_groups: Vec<String>,
    /// Id of a security group to use instead of kctl's.
    pub security_group_override: Option<String>,
    /// ACM certificate: 443 becomes TLS, TCP moves to 8443.
    pub ssl_certificate: Option<String>,
    /// TLS policy with a certificate.
    pub ssl_policy: Option<String>,
    /// Access log bucket and prefix.
    pub access_log: Option<(String, Option<String>)>,
    /// The internal name points at it too.
    pub use_for_internal_api: bool,
}

/// A subnet of the API's load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoadBalancerSubnet {
    /// The subnet's name in the spec.
    pub name: String,
    /// Allocation id of an Elastic IP.
    pub allocation_id: Option<String>,
    pub private_ipv4_address: Option<String>,
}

/// The load balancer in front of bastions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bastion {
    /// Only the VPC reaches it.
    pub internal: bool,
    /// Ids of additional security groups.
    pub additional_security_groups: Vec<String>,
    /// Its name in the hosted zone.
    pub public_name: Option<String>,
}

/// The SSH key of instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SshKey {
    /// A key pair that exists in EC2, by name (`spec.sshKeyName`).
    Existing(String),
    /// A key pair that kctl creates.
    Ours {
        /// With fingerprint: `kubernetes.NAME-aa:bb:...`.
        name: String,
        /// OpenSSH public key without comment: type and base64.
        public_key: String,
    },
}

/// IAM settings of instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iam {
    /// ARN of the policy that bounds every role.
    pub permissions_boundary: Option<String>,
    /// Nodes may read from ECR.
    pub allow_container_registry: bool,
    /// Managed policies by role (`control-plane`, `node`, `bastion`).
    pub external_policies: BTreeMap<String, Vec<String>>,
    /// Statements by role, as parsed JSON lists.
    pub additional_policies: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdCluster {
    /// `main` or `events`.
    pub name: String,
    /// etcd version without `v`.
    pub version: String,
    /// Members in the spec's order.
    pub members: Vec<EtcdMember>,
    pub cpu_request: String,
    pub memory_request: String,
    pub image: String,
    /// Settings that tune its members, as variables of their environment.
    pub environment: BTreeMap<String, String>,
    /// Where and how often it is backed up.
    pub backups: EtcdBackupSettings,
}

/// A member of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdMember {
    /// Short name: `a`.
    pub name: String,
    /// Name of its instance group.
    pub group: String,
    /// Zone of that group's subnet.
    pub zone: String,
    /// In GiB.
    pub volume_size: i32,
    /// For example `gp3`.
    pub volume_type: String,
    /// IOPS, where the type has them.
    pub volume_iops: Option<i32>,
    /// In MiB/s; gp3 only.
    pub volume_throughput: Option<i32>,
    pub encrypted: bool,
    /// ARN of the KMS key.
    pub kms_key_id: Option<String>,
}

/// The HTTP proxy through which instances reach the internet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressProxy {
    /// `http://HOST:PORT`.
    pub url: String,
    /// Names and ranges that are reached without it, besides those of the cluster.
    pub excludes: Vec<String>,
}

/// Node termination handling: Nodes are drained before AWS ends their instances. A queue receives the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTermination {
    /// The tag that marks managed instances.
    pub managed_tag: String,
    /// Drains at spot interruptions.
    pub spot_interruption: bool,
    /// Drains at scheduled events.
    pub scheduled_events: bool,
    /// What happens at rebalance recommendations.
    pub rebalance: Rebalance,
    /// Takes drained Nodes out of load balancers of Services.
    pub exclude_from_load_balancers: bool,
    /// Taints Nodes with the reason.
    pub taint: bool,
    /// Termination grace period of evicted pods; `None`: their own.
    pub pod_grace_seconds: Option<u32>,
}
