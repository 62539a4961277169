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
    /// A group of instances of one role: an Auto Scaling group and its launch template.
    pub struct InstanceGroupSpec {
        /// Who starts the instances; only `CloudGroup` is possible, an Auto Scaling group.
        pub manager: Option<String>,
        /// What the instances do: `ControlPlane` (or `Master`), `Node` or `Bastion`.
        pub role: Option<InstanceGroupRole>,
        /// Image of the instances: `ami-...`, `OWNER/NAME`, in which `*` and `?` select the newest match, or `ssm:/PARAMETER`.
        /// Default an image of Ubuntu; `kctl create` writes one of Debian.
        pub image: Option<String>,
        /// Instances of the group at least. Default 2 for nodes, else 1.
        pub min_size: Option<i32>,
        /// Instances of the group at most. Default 2 for nodes, else 1, or `minSize` if that is more.
        pub max_size: Option<i32>,
        /// Whether the cluster autoscaler changes the size of a group of nodes. Default true where it is on.
        pub autoscale: Option<bool>,
        /// With the cluster autoscaler's expander `priority`: the group with the highest number grows first. Default 0.
        pub autoscale_priority: Option<i32>,
        /// Instance type, such as `m7i.large`. Default the first of `t3.medium` and similar types (bastions: `t3.micro`) that
        /// all zones offer.
        pub machine_type: Option<String>,
        /// Size of the root volume in GiB. Default 64 for control planes, 128 for nodes, 32 for bastions.
        pub root_volume_size: Option<i32>,
        /// EBS type of the root volume. Default `gp3`.
        pub root_volume_type: Option<String>,
        /// IOPS of the root volume, for the types gp3, io1 and io2. Default the least of the type: 3000, 100, 100.
        pub root_volume_iops: Option<i32>,
        /// Throughput of the root volume in MiB/s, for gp3. Default 125.
        pub root_volume_throughput: Option<i32>,
        /// Launches instances with dedicated bandwidth to EBS, for types that have it only on request. Default that of the
        /// type.
        pub root_volume_optimization: Option<bool>,
        /// Whether the root volume goes with its instance. It always does, in kOps too: no effect.
        pub root_volume_delete_on_termination: Option<bool>,
        /// Encrypts the root volume. Default true.
        pub root_volume_encryption: Option<bool>,
        /// KMS key with which the root volume is encrypted. Default the account's key for EBS.
        pub root_volume_encryption_key: Option<String>,
        /// Further EBS volumes of every instance.
        pub volumes: Vec<VolumeSpec>,
        /// File systems that are made on further volumes and mounted.
        pub volume_mounts: Vec<VolumeMountSpec>,
        /// Names of the cluster's subnets in which the instances are. Default those in `zones`; without zones, for nodes and
        /// bastions, all but utility subnets.
        pub subnets: Vec<String>,
        /// Zones in which the instances are, for groups without `subnets`.
        pub zones: Vec<String>,
        /// systemd units that run on the instances, beside those of the cluster. A hook takes the place of the cluster's with
        /// the same name.
        pub hooks: Vec<HookSpec>,
        /// Highest price of a spot instance, in dollars per hour. Without `mixedInstancesPolicy` it makes all instances spot
        /// instances.
        pub max_price: Option<String>,
        /// Minutes that a spot instance runs at least: 60 to 360, in whole hours.
        pub spot_duration_in_minutes: Option<i32>,
        /// CPU credits of burstable types: `standard` or `unlimited`. Default that of the type.
        pub cpu_credits: Option<String>,
        /// Whether instances get public addresses, in public subnets. Default true there.
        pub associate_public_ip: Option<bool>,
        /// IDs of further security groups of the instances.
        pub additional_security_groups: Vec<String>,
        /// Tags of the group, its instances and their volumes, beside those of the cluster.
        pub cloud_labels: BTreeMap<String, String>,
        /// Labels of the Nodes.
        pub node_labels: BTreeMap<String, String>,
        /// Files that are written on the instances, beside those of the cluster. A file takes the place of the cluster's at the
        /// same path.
        pub file_assets: Vec<FileAssetSpec>,
        /// On which hardware instances run: `default`, `dedicated` or `host`. Default `default`.
        pub tenancy: Option<String>,
        /// kubelet of the instances. Its values win over the cluster's.
        pub kubelet: Option<KubeletConfigSpec>,
        /// Taints of the Nodes, as `key=value:Effect`. Default none; for control planes
        /// `node-role.kubernetes.io/control-plane=:NoSchedule`.
        pub taints: Vec<String>,
        /// Several instance types, on demand and spot, in the place of `machineType` alone.
        pub mixed_instances_policy: Option<MixedInstancesPolicySpec>,
        /// Auto Scaling replaces spot instances before AWS interrupts them. Default false.
        pub capacity_rebalance: Option<bool>,
        /// Further parts of user data, which cloud-init reads.
        pub additional_user_data: Vec<UserData>,
        /// Processes of Auto Scaling that are suspended, such as `AZRebalance`.
        pub suspend_processes: Vec<String>,
        /// Existing load balancers that the instances join.
        pub external_load_balancers: Vec<LoadBalancerSpec>,
        /// Metrics of the instances in CloudWatch every minute, not every five. Default false.
        pub detailed_instance_monitoring: Option<bool>,
        /// The instance profile of the instances. Default one that kctl makes.
        pub iam: Option<IAMProfileSpec>,
        /// ID of an existing security group that takes the place of the one that kctl makes for the role.
        pub security_group_override: Option<String>,
        /// Auto Scaling ends no instance to make the group smaller. Default false.
        pub instance_protection: Option<bool>,
        /// Kernel parameters of the instances, each as `name=value`, after those of the cluster.
        pub sysctl_parameters: Vec<String>,
        /// How fast a rolling update replaces the instances. Its values win over the cluster's.
        pub rolling_update: Option<RollingUpdate>,
        /// What AWS does to spot instances that it interrupts: `terminate`, `stop` or `hibernate`. Default `terminate`.
        pub instance_interruption_behavior: Option<String>,
        /// Compresses user data, of which EC2 takes 16 KB. Default false.
        pub compress_user_data: Option<bool>,
        /// The metadata service of the instances.
        pub instance_metadata: Option<InstanceMetadataOptions>,
        /// `automatic` or `external`, as the cluster's, over which it wins.
        pub update_policy: Option<String>,
        /// Stopped instances that are kept ready, for groups of nodes. Its values win over the cluster's.
        pub warm_pool: Option<WarmPoolSpec>,
        /// The container runtime of the instances. Its values win over the cluster's.
        pub containerd: Option<ContainerdConfig>,
        /// Packages of the system that the instances install, beside those of the cluster.
        pub packages: Vec<String>,
        /// Google Cloud only.
        pub guest_accelerators: Option<Value>,
        /// Age at which Auto Scaling replaces instances: 24h to 8760h, or 0 for never. Default 0.
        pub max_instance_lifetime: Option<Duration>,
        /// Google Cloud only.
        pub gcp_provisioning_model: Option<String>,
    }
}
