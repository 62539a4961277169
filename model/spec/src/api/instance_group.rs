//! What a group of instances is: `kind: InstanceGroup`, `spec`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::containerd::ContainerdConfig;
use super::enums::InstanceGroupRole;
use super::fields::spec;
use super::host::{FileAssetSpec, HookSpec, RollingUpdate};
use super::iam::IAMProfileSpec;
use super::instance::{
    InstanceMetadataOptions, LoadBalancerSpec, MixedInstancesPolicySpec, UserData, VolumeMountSpec,
    VolumeSpec, WarmPoolSpec,
};
use super::kubelet::KubeletConfigSpec;
use super::scalars::Duration;

spec! {
    /// The spec of an InstanceGroup: one Auto Scaling group and its launch template.
    pub struct InstanceGroupSpec {
        /// Who starts instances: `CloudGroup` or `Karpenter`.
        pub manager: Option<String>,
        /// What its instances do.
        pub role: Option<InstanceGroupRole>,
        /// AMI: `ami-...`, `OWNER/NAME` or `ssm:/PARAMETER`.
        pub image: Option<String>,
        /// Instances at least.
        pub min_size: Option<i32>,
        /// Instances at most.
        pub max_size: Option<i32>,
        /// False: the cluster autoscaler leaves the group alone.
        pub autoscale: Option<bool>,
        /// Priority for the cluster autoscaler's expander `priority`; the highest wins.
        pub autoscale_priority: Option<i32>,
        pub machine_type: Option<String>,
        /// GiB.
        pub root_volume_size: Option<i32>,
        /// EBS type.
        pub root_volume_type: Option<String>,
        /// IOPS, where the type lets them be chosen.
        pub root_volume_iops: Option<i32>,
        /// MiB/s, gp3 only.
        pub root_volume_throughput: Option<i32>,
        /// EBS optimization.
        pub root_volume_optimization: Option<bool>,
        /// Not read, in kOps either: the volume goes with its instance.
        pub root_volume_delete_on_termination: Option<bool>,
        /// Whether the volume is encrypted; default true.
        pub root_volume_encryption: Option<bool>,
        /// KMS key of the volume.
        pub root_volume_encryption_key: Option<String>,
        pub volumes: Vec<VolumeSpec>,
        /// File systems made and mounted on further volumes.
        pub volume_mounts: Vec<VolumeMountSpec>,
        /// Names of subnets of the cluster.
        pub subnets: Vec<String>,
        /// Zones; instead of subnets.
        pub zones: Vec<String>,
        /// systemd units run on its instances.
        pub hooks: Vec<HookSpec>,
        /// Spot price limit, dollars per hour; without a mixed instances policy its presence makes them spot instances.
        pub max_price: Option<String>,
        /// Minutes a spot instance runs at least: 60, 120, ... 360.
        pub spot_duration_in_minutes: Option<i32>,
        /// `standard` or `unlimited`, burstable types only.
        pub cpu_credits: Option<String>,
        /// Whether instances get public addresses.
        pub associate_public_ip: Option<bool>,
        pub additional_security_groups: Vec<String>,
        /// Tags put on the group, its instances and volumes.
        pub cloud_labels: BTreeMap<String, String>,
        /// Labels of its Nodes.
        pub node_labels: BTreeMap<String, String>,
        /// Files written on its instances.
        pub file_assets: Vec<FileAssetSpec>,
        /// `default`, `dedicated` or `host`.
        pub tenancy: Option<String>,
        /// kubelet; wins over the cluster's.
        pub kubelet: Option<KubeletConfigSpec>,
        /// Taints of its Nodes, `key=value:effect`.
        pub taints: Vec<String>,
        /// Several instance types, on demand and spot.
        pub mixed_instances_policy: Option<MixedInstancesPolicySpec>,
        /// True: replaces spot instances before they are interrupted.
        pub capacity_rebalance: Option<bool>,
        /// Further parts of the user data.
        pub additional_user_data: Vec<UserData>,
        /// Auto Scaling processes to suspend.
        pub suspend_processes: Vec<String>,
        /// Existing load balancers its instances join.
        pub external_load_balancers: Vec<LoadBalancerSpec>,
        /// True: metrics every minute.
        pub detailed_instance_monitoring: Option<bool>,
        pub iam: Option<IAMProfileSpec>,
        /// An existing security group instead of our own.
        pub security_group_override: Option<String>,
        /// True: scale-in spares its instances.
        pub instance_protection: Option<bool>,
        /// Kernel parameters, `name=value`.
        pub sysctl_parameters: Vec<String>,
        /// Wins over the cluster's.
        pub rolling_update: Option<RollingUpdate>,
        /// What becomes of interrupted spot instances: `terminate`, `stop` or `hibernate`.
        pub instance_interruption_behavior: Option<String>,
        /// True: user data is gzipped.
        pub compress_user_data: Option<bool>,
        pub instance_metadata: Option<InstanceMetadataOptions>,
        /// `automatic` or `external`; wins over the cluster's.
        pub update_policy: Option<String>,
        /// Stopped instances kept ready.
        pub warm_pool: Option<WarmPoolSpec>,
        /// Wins over the cluster's.
        pub containerd: Option<ContainerdConfig>,
        /// System packages installed on its instances.
        pub packages: Vec<String>,
        /// Google Cloud only.
        pub guest_accelerators: Option<Value>,
        /// Age at which instances are replaced: 0, or 1 to 365 days.
        pub max_instance_lifetime: Option<Duration>,
        /// Google Cloud only.
        pub gcp_provisioning_model: Option<String>,
    }
}
