//! Instance groups of the full spec.

use node::config::{Arch, Containerd, File, Kubelet, Role, UnitFile, VolumeMount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An instance group, fully decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The spec's name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// AMI id.
    pub image_id: String,
    /// The image's root device: `/dev/xvda`, `/dev/sda1`.
    pub root_device: String,
    /// The image's architecture.
    pub arch: Arch,
    /// First machine type.
    pub machine_type: String,
    /// Instance store disks of that type.
    pub instance_store_disks: u32,
    /// Lower bound.
    pub min_size: i32,
    /// Upper bound.
    pub max_size: i32,
    /// Names of its subnets in the spec.
    pub subnets: Vec<String>,
    /// Instances get public addresses.
    pub associate_public_ip: bool,
    /// Root volume.
    pub root_volume: Volume,
    /// More volumes.
    pub volumes: Vec<Volume>,
    /// Tags on the group and its instances, besides those of every object.
    pub cloud_labels: BTreeMap<String, String>,
    /// Node labels.
    pub node_labels: BTreeMap<String, String>,
    /// Taints, `key=value:Effect`.
    pub taints: Vec<String>,
    /// More security groups of the user's, by id.
    pub additional_security_groups: Vec<String>,
    /// One of the user's in place of the role's.
    pub security_group_override: Option<String>,
    /// Instance profile of the user's, by name, in place of ours.
    pub iam_profile: Option<String>,
    /// The role in that profile, by name: profile and role have names of their own.
    pub iam_role: Option<String>,
    /// Detailed monitoring.
    pub detailed_monitoring: bool,
    /// Dedicated bandwidth to EBS; `None`: as the instance type has it.
    pub ebs_optimized: Option<bool>,
    /// IMDS: tokens `required` or `optional`.
    pub http_tokens: String,
    /// IMDS: hop limit.
    pub http_put_response_hop_limit: i32,
    /// Spot price.
    pub max_price: Option<String>,
    /// Spot interruption behaviour.
    pub instance_interruption_behavior: Option<String>,
    /// Tenancy.
    pub tenancy: Option<String>,
    /// CPU credits.
    pub cpu_credits: Option<String>,
    /// Capacity rebalancing.
    pub capacity_rebalance: bool,
    /// Protected from scale-in.
    pub instance_protection: bool,
    /// Suspended processes.
    pub suspend_processes: Vec<String>,
    /// Seconds; 0: no limit.
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

/// How the instances of a group run as nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// kubelet.
    pub kubelet: Kubelet,
    /// containerd.
    pub containerd: Containerd,
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
    /// chrony keeps the time.
    pub ntp: bool,
    /// The distribution installs its security updates by itself.
    pub automatic_updates: bool,
}

/// A load balancer of the user's that a group joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExternalLoadBalancer {
    /// Classic, by name.
    Classic(String),
    /// A target group, by ARN.
    TargetGroup(String),
}

/// A volume of an instance group's machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Device; the root volume's is the image's.
    pub device: String,
    /// GiB.
    pub size: i32,
    /// `gp3`.
    pub volume_type: String,
    /// IOPS.
    pub iops: Option<i32>,
    /// MiB/s.
    pub throughput: Option<i32>,
    /// Encrypted.
    pub encrypted: Option<bool>,
    /// KMS key ARN.
    pub kms_key_id: Option<String>,
    /// Goes with the instance.
    pub delete_on_termination: bool,
}
