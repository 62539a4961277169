//! Instance groups of the full spec.

use cloud::MixedInstancesPolicy;
use node::config::{Arch, Containerd, File, Kubelet, Role, UnitFile, VolumeMount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The full spec of an instance group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The name in the spec.
    pub name: String,
    pub role: Role,
    /// Id of the AMI.
    pub image_id: String,
    /// The image's root device: `/dev/xvda`, `/dev/sda1`.
    pub root_device: String,
    pub arch: Arch,
    /// Instance type of the launch template.
    pub machine_type: String,
    /// Instance store disks of that type.
    pub instance_store_disks: u32,
    pub min_size: i32,
    pub max_size: i32,
    /// Names of its subnets in the spec.
    pub subnets: Vec<String>,
    /// Instances get public addresses.
    pub associate_public_ip: bool,
    pub root_volume: Volume,
    pub volumes: Vec<Volume>,
    /// Tags on the group and its instances, besides those of every object.
    pub cloud_labels: BTreeMap<String, String>,
    pub node_labels: BTreeMap<String, String>,
    /// Taints of Nodes: `key=value:Effect`.
    pub taints: Vec<String>,
    /// Ids of additional security groups.
    pub additional_security_groups: Vec<String>,
    /// Id of a security group to use instead of the role's.
    pub security_group_override: Option<String>,
    /// Name of the user's instance profile; `None`: kctl creates one.
    pub iam_profile: Option<String>,
    /// Name of the IAM role in the user's instance profile.
    pub iam_role: Option<String>,
    /// Metrics of EC2 every minute instead of every five.
    pub detailed_monitoring: bool,
    /// Dedicated bandwidth to EBS; `None`: as the instance type has it.
    pub ebs_optimized: Option<bool>,
    /// IMDS: tokens `required` or `optional`.
    pub http_tokens: String,
    /// IMDS: hop limit.
    pub http_put_response_hop_limit: i32,
    /// Maximum spot price; `None`: on-demand instances. With `mixed_instances`, of its spot instances: the policy has it too.
    pub max_price: Option<String>,
    /// Several instance types, on demand and spot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed_instances: Option<MixedInstancesPolicy>,
    /// What EC2 does with an interrupted spot instance: `hibernate`, `stop` or `terminate`.
    pub instance_interruption_behavior: Option<String>,
    pub tenancy: Option<String>,
    /// `standard` or `unlimited`, for burstable instance types.
    pub cpu_credits: Option<String>,
    pub capacity_rebalance: bool,
    /// New instances are protected from scale-in.
    pub instance_protection: bool,
    /// Processes of the Auto Scaling group that are suspended.
    pub suspend_processes: Vec<String>,
    /// Stopped instances that are ready to join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_pool: Option<WarmPool>,
    /// In seconds; 0: no limit.
    pub max_instance_lifetime: i32,
    /// Classic load balancers by name, target groups by ARN.
    pub external_load_balancers: Vec<ExternalLoadBalancer>,
    /// Extra user data parts: name, MIME type, content.
    pub additional_user_data: Vec<(String, String, String)>,
    /// BootConfig is compressed in user data.
    pub compress_user_data: bool,
    /// How its instances run as nodes; `None` for bastions.
    pub node: Option<NodeSettings>,
}

/// The warm pool of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmPool {
    /// Instances in the pool at least.
    pub min_size: i32,
    /// Instances of the group and the pool together at most; `None`: the group's maximum size.
    pub max_size: Option<i32>,
    /// Seconds that an instance has to prepare before it is given up; `None`: AWS does not wait for it.
    pub hook_seconds: Option<i32>,
    /// Images that it pulls while it prepares, besides those of the cluster.
    pub images: Vec<String>,
}

/// How the instances of a group run as nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    pub kubelet: Kubelet,
    pub containerd: Containerd,
    /// nerdctl is installed.
    #[serde(default)]
    pub nerdctl: bool,
    /// The user's files, in the spec's order.
    pub files: Vec<File>,
    /// The user's units, in the spec's order.
    pub units: Vec<UnitFile>,
    /// The user's kernel parameters, each `name=value`; later ones win.
    pub sysctls: Vec<String>,
    /// Packages of the distribution.
    pub packages: Vec<String>,
    /// File systems on further volumes.
    pub volume_mounts: Vec<VolumeMount>,
    /// nodeup sets up chrony.
    pub ntp: bool,
    /// The distribution installs security updates automatically.
    pub automatic_updates: bool,
}

/// An existing load balancer that a group joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExternalLoadBalancer {
    /// Name of a Classic Load Balancer.
    Classic(String),
    /// ARN of a target group.
    TargetGroup(String),
}

/// A volume of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Device name; for the root volume, the root device of the image.
    pub device: String,
    /// In GiB.
    pub size: i32,
    /// For example `gp3`.
    pub volume_type: String,
    pub iops: Option<i32>,
    /// In MiB/s.
    pub throughput: Option<i32>,
    /// `None`: the account's default.
    pub encrypted: Option<bool>,
    /// ARN of the KMS key.
    pub kms_key_id: Option<String>,
    /// The volume is deleted with the instance.
    pub delete_on_termination: bool,
}
