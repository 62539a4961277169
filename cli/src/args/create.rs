//! `kctl create`.

use super::{CreateKeypair, KubeconfigCredentials, Setters, SpecFormat};
use clap::{Args, Subcommand, ValueEnum};
use node::secret::{CILIUM_PASSWORD, DOCKER_CONFIG, ENCRYPTION_CONFIG};
use std::path::PathBuf;

/// `kctl create`: a cluster from flags, or objects from files.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  kctl create cluster demo.example.com --zones eu-west-1a\n  kctl create ig nodes-gpu --size g5.xlarge\n  kctl create -f cluster.yaml"
)]
pub struct Create {
    /// What to create.
    #[command(subcommand)]
    pub what: Option<CreateWhat>,
    /// Objects from files.
    #[command(flatten)]
    pub objects: CreateObjects,
}

/// What `kctl create` makes from flags.
#[derive(Debug, Subcommand)]
pub enum CreateWhat {
    /// Create a cluster: store its spec and show the plan; with --yes, create the AWS resources
    Cluster(Box<CreateCluster>),
    /// Add an instance group to a cluster's spec
    #[command(name = "instancegroup", visible_alias = "ig")]
    InstanceGroup(CreateGroup),
    /// Store a secret that the instances of a cluster read
    Secret(CreateSecret),
    /// Add a key to a keyset
    Keypair(CreateKeypair),
}

/// Roles of groups that can be added. Control planes are created with the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupRole {
    /// Workers
    Node,
    /// Lets operators in by SSH
    Bastion,
}

/// `kctl create instancegroup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl create ig nodes-gpu --size g5.xlarge --subnets eu-west-1a --min-size 0 --max-size 4
  kctl create ig nodes-big --size m7i.4xlarge --set spec.nodeLabels.size=big
  kctl create ig nodes-spot --dry-run")]
pub struct CreateGroup {
    /// Name of the instance group
    #[arg(value_name = "GROUP")]
    pub group: String,
    /// What its instances are
    #[arg(long, value_enum, ignore_case = true, default_value = "node")]
    pub role: GroupRole,
    /// Names of subnets, separated by commas; default all but utility subnets
    #[arg(
        long,
        alias = "subnet",
        value_name = "NAME",
        value_delimiter = ',',
        num_args = 1
    )]
    pub subnets: Vec<String>,
    /// Instance type; default by the role and the zones
    #[arg(long, value_name = "TYPE")]
    pub size: Option<String>,
    /// Image; default the usual one
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Smallest number of instances; default 2 workers, 1 bastion
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub min_size: Option<i32>,
    /// Largest number of instances; default 2 workers, 1 bastion, and at least --min-size
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub max_size: Option<i32>,
    /// Other fields.
    #[command(flatten)]
    pub setters: Setters,
    /// Print the instance group and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Form of --dry-run's output
    #[arg(short, long, value_name = "FORMAT", requires = "dry_run")]
    pub output: Option<SpecFormat>,
}

/// The secrets that users can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SecretName {
    /// An EncryptionConfiguration, for spec.encryptionConfig: true
    #[value(name = "encryptionconfig")]
    EncryptionConfig,
    /// Passwords of image registries: a config.json as docker has it
    #[value(name = "dockerconfig")]
    DockerConfig,
    /// cilium's key for IPsec: `keys: 1+ rfc4106(gcm(aes)) HEX 128`
    #[value(name = "ciliumpassword")]
    CiliumPassword,
}

impl SecretName {
    /// Name of the secret in the store.
    pub fn in_store(self) -> &'static str {
        match self {
            Self::EncryptionConfig => ENCRYPTION_CONFIG,
            Self::DockerConfig => DOCKER_CONFIG,
            Self::CiliumPassword => CILIUM_PASSWORD,
        }
    }
}

/// `kctl create secret`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl create secret encryptionconfig -f encryption.yaml
  kctl create secret dockerconfig -f ~/.docker/config.json --force
  generate-config | kctl create secret dockerconfig -f -")]
pub struct CreateSecret {
    /// Which secret
    #[arg(value_name = "SECRET")]
    pub secret: SecretName,
    /// The cluster; instead of --name
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// File with the content; `-` is stdin
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub file: PathBuf,
    /// Replace the one that is there; an encryptionconfig must have all keys of that one
    #[arg(long)]
    pub force: bool,
    /// Replace an encryptionconfig by one that lacks some of its keys; the former one is kept for backups
    #[arg(long, requires = "force")]
    pub drop_keys: bool,
}

/// `kctl create -f`.
#[derive(Debug, Args)]
pub struct CreateObjects {
    /// A file of Cluster, InstanceGroup and SSHCredential objects, and of objects that are applied to the cluster, in YAML; `-` is stdin; repeatable
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
}

/// Whether instances are in public or in private subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Topology {
    /// Instances have public addresses
    Public,
    /// Instances reach the internet through NAT gateways
    Private,
}

/// Where names are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dns {
    /// Nowhere: the API has a load balancer
    None,
    /// In a public hosted zone
    Public,
    /// In a private hosted zone
    Private,
}

/// Who can reach the API's load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadBalancerType {
    /// The internet, as far as --admin-access goes
    Public,
    /// The VPC
    Internal,
}

/// Who may do what in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Authorization {
    /// Kubernetes RBAC
    Rbac,
    /// Every request is allowed
    #[value(name = "alwaysallow")]
    AlwaysAllow,
}

/// `kctl create cluster`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl create cluster demo.example.com --zones eu-west-1a --dry-run
  kctl create cluster demo.example.com --zones eu-west-1a --yes
  kctl create cluster prod.example.com --zones eu-west-1a,eu-west-1b,eu-west-1c \\
    --control-plane-count 3 --node-count 6 --topology private --bastion \\
    --ssh-public-key ~/.ssh/id_ed25519.pub --cloud-labels Owner=platform")]
pub struct CreateCluster {
    /// The cluster's name, a DNS name such as demo.example.com; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,

    /// Single fields of the spec.
    #[command(flatten)]
    pub setters: Setters,

    /// Print the spec and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Form of --dry-run's output
    #[arg(short, long, value_name = "FORMAT", requires = "dry_run")]
    pub output: Option<SpecFormat>,
    /// Create the AWS resources immediately, without a preview
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: write a kubeconfig [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub create_kube_config: Option<bool>,
    /// The kubeconfig's credentials.
    #[command(flatten)]
    pub credentials: KubeconfigCredentials,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,

    /// Availability zones of the nodes, and of the control plane unless --control-plane-zones says otherwise
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ZONES",
        help_heading = "Placement"
    )]
    pub zones: Vec<String>,
    /// The cluster's IPv4 range; further ranges become additionalNetworkCIDRs [default: 172.20.0.0/16]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "CIDRS",
        help_heading = "Placement"
    )]
    pub network_cidr: Vec<String>,
    /// An existing VPC to use
    #[arg(long, alias = "vpc", value_name = "ID", help_heading = "Placement")]
    pub network_id: Option<String>,
    /// Existing subnets to use
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "IDS",
        help_heading = "Placement"
    )]
    pub subnets: Vec<String>,
    /// Existing utility subnets to use
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "IDS",
        help_heading = "Placement"
    )]
    pub utility_subnets: Vec<String>,
    /// Instances in public subnets, or in private ones behind NAT gateways [default: public, private with --ipv6]
    #[arg(short, long, value_name = "TOPOLOGY", help_heading = "Placement")]
    pub topology: Option<Topology>,
    /// Nodes, pods and Services with IPv6 addresses
    #[arg(long, help_heading = "Placement")]
    pub ipv6: bool,
    /// How private subnets reach the internet: nat-..., eipalloc-..., i-..., tgw-... or External [default: NAT gateways]
    #[arg(long, value_name = "EGRESS", help_heading = "Placement")]
    pub egress: Option<String>,
    /// Do not tag subnets for load balancers of services
    #[arg(long, help_heading = "Placement")]
    pub disable_subnet_tags: bool,

    /// Instances of the control plane and of the workers.
    #[command(flatten)]
    pub instances: InstanceOptions,
    /// How the cluster is reached.
    #[command(flatten)]
    pub access: AccessOptions,
    /// What runs in it.
    #[command(flatten)]
    pub software: SoftwareOptions,
    /// Options of kOps that kctl does not have.
    #[command(flatten)]
    pub kops: KopsOnly,
}

/// Options for the instances of the control plane and of the workers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Instances")]
pub struct InstanceOptions {
    /// Zones of the control plane [default: --zones]
    #[arg(
        long,
        alias = "master-zones",
        value_delimiter = ',',
        value_name = "ZONES"
    )]
    pub control_plane_zones: Vec<String>,
    /// Control-plane instances, an odd number [default: one per --control-plane-zones, else 1]
    #[arg(long, alias = "master-count", value_name = "N")]
    pub control_plane_count: Option<usize>,
    /// Instance type of the control plane; several, with commas, make a mixed instances policy
    #[arg(
        long,
        alias = "master-size",
        value_delimiter = ',',
        value_name = "TYPE"
    )]
    pub control_plane_size: Vec<String>,
    /// Image of the control plane
    #[arg(long, alias = "master-image", value_name = "IMAGE")]
    pub control_plane_image: Option<String>,
    /// Root volume of the control plane, GiB [default: 64]
    #[arg(long, alias = "master-volume-size", value_name = "GIB")]
    pub control_plane_volume_size: Option<i32>,
    /// Type of that volume [default: gp3]
    #[arg(long, alias = "master-volume-type", value_name = "TYPE")]
    pub control_plane_volume_type: Option<String>,
    /// Further security groups of the control plane
    #[arg(
        long,
        alias = "master-security-groups",
        value_delimiter = ',',
        value_name = "IDS"
    )]
    pub control_plane_security_groups: Vec<String>,
    /// Tenancy of the control plane
    #[arg(long, alias = "master-tenancy", value_name = "TENANCY")]
    pub control_plane_tenancy: Option<String>,
    /// Workers, spread over the zones [default: one per zone]
    #[arg(long, value_name = "N")]
    pub node_count: Option<usize>,
    /// Instance type of the workers; several, with commas, make a mixed instances policy
    #[arg(long, value_delimiter = ',', value_name = "TYPE")]
    pub node_size: Vec<String>,
    /// Image of the workers
    #[arg(long, value_name = "IMAGE")]
    pub node_image: Option<String>,
    /// Root volume of the workers, GiB [default: 128]
    #[arg(long, value_name = "GIB")]
    pub node_volume_size: Option<i32>,
    /// Type of that volume [default: gp3]
    #[arg(long, value_name = "TYPE")]
    pub node_volume_type: Option<String>,
    /// Further security groups of the workers
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub node_security_groups: Vec<String>,
    /// Tenancy of the workers
    #[arg(long, value_name = "TENANCY")]
    pub node_tenancy: Option<String>,
    /// Image of every group: ami-..., OWNER/NAME or ssm:PATH [default: Debian 13]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Image of the bastion
    #[arg(long, value_name = "IMAGE")]
    pub bastion_image: Option<String>,
    /// Whether instances have public addresses [default: in public subnets]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub associate_public_ip: Option<bool>,
    /// Encrypt etcd's volumes [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub encrypt_etcd_storage: Option<bool>,
    /// Type of etcd's volumes [default: gp3]
    #[arg(long, value_name = "TYPE")]
    pub etcd_storage_type: Option<String>,
    /// Tags on every AWS object: KEY=VALUE,...
    #[arg(
        long,
        value_name = "LABELS",
        default_value = "",
        hide_default_value = true
    )]
    pub cloud_labels: String,
}

/// How the cluster is reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub struct AccessOptions {
    /// Who may reach the API: CIDRs or prefix lists [default: 0.0.0.0/0,::/0]
    #[arg(long, value_delimiter = ',', value_name = "CIDRS")]
    pub admin_access: Vec<String>,
    /// Who may reach port 22 [default: --admin-access]
    #[arg(long, value_delimiter = ',', value_name = "CIDRS")]
    pub ssh_access: Vec<String>,
    /// Public SSH key for the instances
    #[arg(long, value_name = "FILE")]
    pub ssh_public_key: Option<PathBuf>,
    /// An SSH bastion; needs --topology private
    #[arg(long)]
    pub bastion: bool,
    /// Where names are published [default: none, or public with --dns-zone]
    #[arg(long, value_name = "DNS", ignore_case = true)]
    pub dns: Option<Dns>,
    /// Hosted zone of the cluster's names: name or id
    #[arg(long, value_name = "ZONE")]
    pub dns_zone: Option<String>,
    /// A load balancer before the API, for whom [default: public with private topology or without DNS]
    #[arg(long, value_name = "TYPE", ignore_case = true)]
    pub api_loadbalancer_type: Option<LoadBalancerType>,
    /// ACM certificate of the API's load balancer, an ARN
    #[arg(long, value_name = "ARN")]
    pub api_ssl_certificate: Option<String>,
    /// The API's public name [default: api.NAME]
    #[arg(long, alias = "master-public-name", value_name = "NAME")]
    pub api_public_name: Option<String>,
}

/// What runs in the cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Software")]
pub struct SoftwareOptions {
    /// Kubernetes version [default: the one that this kctl has for new clusters]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<String>,
    /// cilium, cilium-eni, flannel, calico, amazonvpc, kube-router, kindnet, kubenet, cni or external [default: cilium]
    #[arg(long, value_name = "CNI")]
    pub networking: Option<String>,
    /// Feature gates of all components: +GATE,-GATE,...
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GATES",
        allow_hyphen_values = true
    )]
    pub kubernetes_feature_gates: Vec<String>,
    /// Who may do what in the cluster [default: rbac]
    #[arg(long, value_name = "MODE", ignore_case = true)]
    pub authorization: Option<Authorization>,
    /// Log who did what and when at the API, without contents, for 30 days: a policy and its flags are written into the spec
    #[arg(long)]
    pub audit_log: bool,
    /// Publish the issuer of service accounts' tokens in this bucket, and give addons and pods AWS permissions of their own
    /// instead of those of their instances: s3://BUCKET[/PATH]
    #[arg(long, value_name = "URL")]
    pub discovery_store: Option<String>,
    /// Names of the etcd clusters [default: main,events]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub etcd_clusters: Vec<String>,
    /// Stored in the spec for kOps; kctl has its own catalog of versions and images [default: stable]
    #[arg(long, value_name = "CHANNEL")]
    pub channel: Option<String>,
}

/// Hidden options of kOps with one value that kctl supports; other values are refused with a reason. Options without any
/// supported value are in `kops`.
#[derive(Debug, Default, Args)]
pub struct KopsOnly {
    /// Only `aws`.
    #[arg(long, hide = true)]
    pub cloud: Option<String>,
    /// Only `direct`.
    #[arg(long, hide = true)]
    pub target: Option<String>,
    /// Output of other targets.
    #[arg(long, hide = true)]
    pub out: Option<String>,
    /// Only `cloudgroups`.
    #[arg(long, hide = true)]
    pub instance_manager: Option<String>,
}
