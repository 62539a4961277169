//! The full spec: every decision made and written down. Nothing in it means "default me".

mod components;
mod group;

pub use components::{Addons, CloudControllerManager, ControlPlane, CoreDns, Corefile, Flannel};
pub use group::{ExternalLoadBalancer, Group, NodeSettings, Volume};

use ipnet::{IpNet, Ipv4Net};
use node::components::Component;
use node::config::{Asset, Networking};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cluster, fully decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullSpec {
    /// The cluster's name, a DNS name.
    pub name: String,
    /// Where it runs.
    pub placement: Placement,
    /// Kubernetes version without `v`: `1.36.3`.
    pub kubernetes_version: String,
    /// Where its state lies.
    pub state: StateLocation,
    /// VPC and subnets.
    pub network: Network,
    /// Addresses inside the cluster, and the CNI.
    pub pods: PodNetwork,
    /// Names of the API and of members.
    pub dns: Dns,
    /// How the API is reached.
    pub api: Api,
    /// What stands before bastions, where there are any.
    pub bastion: Bastion,
    /// SSH: sources (CIDR or `pl-`) and key.
    pub ssh_access: Vec<String>,
    /// Name of the key pair instances get: ours (with its public key) or one that exists.
    pub ssh_key: Option<SshKey>,
    /// Sources (CIDR or `pl-`) that may reach node ports.
    pub node_port_access: Vec<String>,
    /// First and last node port.
    pub node_port_range: (u16, u16),
    /// Tags on everything.
    pub cloud_labels: BTreeMap<String, String>,
    /// IAM settings.
    pub iam: Iam,
    /// etcd clusters: main, events.
    pub etcd: Vec<EtcdCluster>,
    /// The components of the control plane.
    pub control_plane: ControlPlane,
    /// kube-proxy; `None`: something else does its work.
    pub kube_proxy: Option<Component>,
    /// What kctl deploys into the cluster.
    pub addons: Addons,
    /// The HTTP proxy through which instances reach the internet.
    pub egress_proxy: Option<EgressProxy>,
    /// Node termination handling; `None`: off.
    pub node_termination: Option<NodeTermination>,
    /// Downloads of every architecture in use, sorted by name and architecture.
    pub assets: Vec<Asset>,
    /// Instance groups, sorted by name.
    pub groups: Vec<Group>,
}

/// Where a cluster runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// `eu-west-1`.
    pub region: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Twelve digits.
    pub account: String,
}

/// Where a cluster's state lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLocation {
    /// `s3://BUCKET[/PREFIX]/NAME` or `file://DIR/NAME`.
    pub config_base: String,
    /// Bucket, for S3.
    pub bucket: Option<String>,
    /// Key of the cluster's folder in the bucket (no slashes at the ends), or the directory.
    pub prefix: String,
}

/// The cluster's network in AWS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The VPC of the user's, by id; `None`: ours.
    pub shared_vpc: Option<String>,
    /// The internet gateway of a shared VPC, if it has one.
    pub shared_internet_gateway: Option<String>,
    /// First range.
    pub cidr: Ipv4Net,
    /// More ranges.
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
    /// Public, for load balancers, NAT gateways and bastions of a private topology.
    Utility,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// The spec's name, often the zone's.
    pub name: String,
    /// Zone.
    pub zone: String,
    /// IPv4 range.
    pub cidr: Ipv4Net,
    /// Type.
    pub kind: SubnetType,
    /// The subnet of the user's, by id; `None`: ours.
    pub shared: Option<String>,
    /// Private subnets: `nat-`, `eipalloc-` (also where the spec says `publicIP`), `i-`, `tgw-`, `External`;
    /// `None`: a NAT gateway and an address of ours.
    pub egress: Option<String>,
    /// More routes: CIDR and target (`pcx-`, `i-`, `nat-`, `tgw-`, `igw-`, `eigw-`).
    pub additional_routes: Vec<(String, String)>,
}

/// Addresses inside the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNetwork {
    /// The CNI.
    pub networking: Networking,
    /// Not masqueraded: pods and services.
    pub non_masquerade_cidr: IpNet,
    /// Pods.
    pub pod_cidr: IpNet,
    /// Services.
    pub service_cidr: IpNet,
    /// CoreDNS' service address.
    pub dns_service_ip: std::net::IpAddr,
    /// `cluster.local`.
    pub dns_domain: String,
}

/// What names the cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Where names are published.
    pub kind: DnsKind,
    /// The hosted zone, unless none.
    pub zone: Option<Zone>,
    /// `api.NAME`.
    pub api_public_name: String,
    /// `api.internal.NAME`.
    pub api_internal_name: String,
}

/// Where names are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DnsKind {
    /// Nowhere: machines find the API at the load balancer.
    None,
    /// In a public hosted zone.
    Public,
    /// In a private hosted zone.
    Private,
}

/// A hosted zone.
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
    /// Sources: CIDR or `pl-`.
    pub access: Vec<String>,
    /// The load balancer; `None`: DNS names of the control planes.
    pub load_balancer: Option<ApiLoadBalancer>,
    /// More names and addresses in the API server's certificate.
    pub additional_names: Vec<String>,
}

/// The API's NLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoadBalancer {
    /// `Internal` instead of `Public`.
    pub internal: bool,
    /// Subnets (one per zone) with optional elastic IP and private address.
    pub subnets: Vec<ApiLoadBalancerSubnet>,
    /// Cross-zone balancing.
    pub cross_zone: bool,
    /// More security groups of the user's, by id.
    pub additional_security_groups: Vec<String>,
    /// One of the user's in place of ours.
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

/// A subnet of the API's NLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiLoadBalancerSubnet {
    /// The subnet's name in the spec.
    pub name: String,
    /// Elastic IP allocation.
    pub allocation_id: Option<String>,
    /// Private address.
    pub private_ipv4_address: Option<String>,
}

/// The load balancer before bastions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bastion {
    /// Only the VPC reaches it.
    pub internal: bool,
    /// More security groups of the user's, by id.
    pub additional_security_groups: Vec<String>,
    /// A name of it, in the hosted zone.
    pub public_name: Option<String>,
}

/// The SSH key of instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SshKey {
    /// A key pair that exists in EC2, by name (`spec.sshKeyName`).
    Existing(String),
    /// Ours: name with fingerprint, and the OpenSSH public key (type and base64).
    Ours {
        /// `kubernetes.NAME-aa:bb:...`.
        name: String,
        /// OpenSSH form without comment.
        public_key: String,
    },
}

/// IAM settings.
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

/// An etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdCluster {
    /// `main` or `events`.
    pub name: String,
    /// etcd version without `v`.
    pub version: String,
    /// Members in the spec's order.
    pub members: Vec<EtcdMember>,
    /// CPU request.
    pub cpu_request: String,
    /// Memory request.
    pub memory_request: String,
    /// Image.
    pub image: String,
    /// Settings that tune its members, as variables of their environment.
    pub environment: BTreeMap<String, String>,
}

/// A member of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdMember {
    /// `a`.
    pub name: String,
    /// Its instance group.
    pub group: String,
    /// Zone of that group's subnet.
    pub zone: String,
    /// GiB.
    pub volume_size: i32,
    /// `gp3`.
    pub volume_type: String,
    /// IOPS, where the type has them.
    pub volume_iops: Option<i32>,
    /// MiB/s, gp3.
    pub volume_throughput: Option<i32>,
    /// Encrypted at rest.
    pub encrypted: bool,
    /// KMS key ARN.
    pub kms_key_id: Option<String>,
}

/// An HTTP proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressProxy {
    /// `http://HOST:PORT`.
    pub url: String,
    /// Names and ranges that are reached without it, besides those of the cluster.
    pub excludes: Vec<String>,
}

/// Node termination handling in queue mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTermination {
    /// Queue, rules and hooks exist.
    pub queue: bool,
    /// The tag that marks managed instances.
    pub managed_tag: String,
    /// Rebalance recommendations are events too.
    pub rebalance: bool,
}
