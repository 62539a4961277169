//! Parts of a group's instances: volumes, user data, IMDS, mixed types, warm pools.

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// A further EBS volume of every instance of a group.
    pub struct VolumeSpec {
        /// Deletes the volume with its instance. Default true.
        pub delete_on_termination: Option<bool>,
        /// Name of the device, such as `/dev/xvdf`.
        pub device: String,
        /// Encrypts the volume. Default true.
        pub encrypted: Option<bool>,
        /// IOPS of the volume, for the types gp3, io1 and io2. Default the least of the type: 3000, 100, 100.
        pub iops: Option<i32>,
        /// Throughput of the volume in MiB/s, for gp3. Default 125.
        pub throughput: Option<i32>,
        /// KMS key with which the volume is encrypted. Default the account's key for EBS.
        pub key: Option<String>,
        /// Size of the volume in GiB.
        pub size: Option<i32>,
        /// EBS type of the volume. Default `gp3`.
        #[serde(rename = "type")]
        pub type_: Option<String>,
    }

    /// A file system on a further volume: made if the volume is blank, and mounted.
    pub struct VolumeMountSpec {
        /// Device of the volume in `volumes`, such as `/dev/xvdf`, or of an instance store, `/dev/nvme1n1`.
        pub device: String,
        /// Kind of file system: `ext4`, `xfs`, `ext3` or `btrfs`.
        pub filesystem: String,
        /// Options of the program that makes the file system.
        pub format_options: Vec<String>,
        /// Options of the mount, such as `noatime`.
        pub mount_options: Vec<String>,
        /// Folder on which the volume is mounted.
        pub path: String,
    }

    /// A part of user data, which cloud-init reads beside kctl's own.
    pub struct UserData {
        /// File name of the part, unique in the group: letters, digits and `_-.()`.
        pub name: String,
        /// MIME type of the part, such as `text/x-shellscript` or `text/cloud-config`.
        #[serde(rename = "type")]
        pub type_: String,
        /// Text of the part.
        pub content: String,
    }

    /// An existing load balancer that the instances of a group join.
    pub struct LoadBalancerSpec {
        /// Name of a classic load balancer.
        pub load_balancer_name: Option<String>,
        /// ARN of a target group of another load balancer.
        pub target_group_arn: Option<String>,
    }

    /// The metadata service of the instances.
    pub struct InstanceMetadataOptions {
        /// Hops that an answer may travel, 1 to 64: 1 keeps pods away from the service, 3 lets them in. Default 1.
        pub http_put_response_hop_limit: Option<i32>,
        /// `required`: the service answers requests with a token only (IMDSv2). `optional`: it answers all. Default `required`.
        pub http_tokens: Option<String>,
    }

    /// Several instance types in one group, on demand and spot.
    pub struct MixedInstancesPolicySpec {
        /// Instance types, the preferred ones first. Default `machineType`.
        pub instances: Vec<String>,
        /// What an instance type must have; AWS chooses among all that do. In the place of `instances`.
        pub instance_requirements: Option<InstanceRequirementsSpec>,
        /// How AWS chooses the type of on-demand instances: `prioritized`, in the order of `instances`, or `lowest-price`.
        /// Default `prioritized`, with `instanceRequirements` `lowest-price`.
        pub on_demand_allocation_strategy: Option<String>,
        /// Number of instances that are always on demand. Default 0.
        pub on_demand_base: Option<i32>,
        /// Percentage of on-demand instances above `onDemandBase`; the others are spot instances. Default 100.
        pub on_demand_above_base: Option<i32>,
        /// How AWS chooses the type of spot instances: `lowest-price`, `capacity-optimized`, `capacity-optimized-prioritized`
        /// or `price-capacity-optimized`. Default `lowest-price`.
        pub spot_allocation_strategy: Option<String>,
        /// With `lowest-price`: how many of the cheapest pools of spot instances are used, 1 to 20. Default 2.
        pub spot_instance_pools: Option<i32>,
    }

    /// What an instance type must have.
    pub struct InstanceRequirementsSpec {
        /// Number of vCPUs.
        pub cpu: Option<MinMaxSpec>,
        /// Memory, such as `4Gi`.
        pub memory: Option<MinMaxSpec>,
        /// Instance types that are never chosen; `*` in them stands for any characters, as in `m5.*`.
        pub excluded_instance_types: Vec<String>,
    }

    /// The least and the most of something.
    pub struct MinMaxSpec {
        /// At most. Default no limit.
        pub max: Option<Quantity>,
        /// At least. Default 0.
        pub min: Option<Quantity>,
    }

    /// Stopped instances of a group that have everything a node needs, and start faster than new ones.
    pub struct WarmPoolSpec {
        /// Instances that the pool has at least. Default 0.
        pub min_size: Option<i32>,
        /// Instances that the group and the pool have together at most; 0 for no pool. Default `maxSize` of the group.
        pub max_size: Option<i32>,
        /// Auto Scaling waits until an instance has prepared, and replaces one that does not. Default false.
        pub enable_lifecycle_hook: Option<bool>,
        /// Seconds that Auto Scaling waits with the hook, 30 to 7200. Default 600.
        pub lifecycle_hook_timeout: Option<i32>,
        /// Images that an instance pulls while it prepares, beside those that every node needs.
        pub additional_images: Vec<String>,
    }
}
