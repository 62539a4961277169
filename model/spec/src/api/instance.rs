//! Parts of a group's instances: volumes, user data, IMDS, mixed types, warm pools.

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// One further EBS volume.
    pub struct VolumeSpec {
        /// Whether it goes with its instance; default true.
        pub delete_on_termination: Option<bool>,
        /// Device name, `/dev/xvd[b-z]` or similar.
        pub device: String,
        /// Whether it is encrypted.
        pub encrypted: Option<bool>,
        /// IOPS, where the type lets them be chosen.
        pub iops: Option<i32>,
        /// MiB/s, gp3 only.
        pub throughput: Option<i32>,
        /// KMS key.
        pub key: Option<String>,
        /// GiB.
        pub size: Option<i32>,
        /// EBS type.
        #[serde(rename = "type")]
        pub type_: Option<String>,
    }

    /// A file system made and mounted on a further volume.
    pub struct VolumeMountSpec {
        /// Device name of the volume.
        pub device: String,
        /// `ext4` or `xfs` or another that mkfs knows.
        pub filesystem: String,
        pub format_options: Vec<String>,
        pub mount_options: Vec<String>,
        /// Where it is mounted.
        pub path: String,
    }

    /// One more part of the MIME user data.
    pub struct UserData {
        /// File name of the part.
        pub name: String,
        /// MIME type of the part.
        #[serde(rename = "type")]
        pub type_: String,
        pub content: String,
    }

    /// An existing load balancer that instances join.
    pub struct LoadBalancerSpec {
        /// Name of a classic load balancer.
        pub load_balancer_name: Option<String>,
        /// ARN of a target group.
        pub target_group_arn: Option<String>,
    }

    /// The instance metadata service.
    pub struct InstanceMetadataOptions {
        /// Hops an IMDSv2 answer may travel: 1 to 64.
        pub http_put_response_hop_limit: Option<i32>,
        /// `required` (IMDSv2 only) or `optional`.
        pub http_tokens: Option<String>,
    }

    /// Several instance types, on demand and spot.
    pub struct MixedInstancesPolicySpec {
        /// In order of preference; none: the group's machineType.
        pub instances: Vec<String>,
        /// Attributes instead of types.
        pub instance_requirements: Option<InstanceRequirementsSpec>,
        /// `prioritized` (the default) or `lowest-price`.
        pub on_demand_allocation_strategy: Option<String>,
        /// Instances always on demand; default 0.
        pub on_demand_base: Option<i32>,
        /// Percentage on demand above the base; default 100.
        pub on_demand_above_base: Option<i32>,
        /// `lowest-price` (the default), `capacity-optimized`, ...
        pub spot_allocation_strategy: Option<String>,
        /// Pools used with `lowest-price`; default 2.
        pub spot_instance_pools: Option<i32>,
    }

    /// Attributes an instance type must have.
    pub struct InstanceRequirementsSpec {
        pub cpu: Option<MinMaxSpec>,
        pub memory: Option<MinMaxSpec>,
        /// Instance types that are never chosen.
        pub excluded_instance_types: Vec<String>,
    }

    /// A range.
    pub struct MinMaxSpec {
        /// At most.
        pub max: Option<Quantity>,
        /// At least.
        pub min: Option<Quantity>,
    }

    /// Stopped instances kept ready.
    pub struct WarmPoolSpec {
        /// Instances in the pool at least; default 0.
        pub min_size: Option<i32>,
        /// Instances of the group and the pool together at most; default the group's maxSize. 0: no pool.
        pub max_size: Option<i32>,
        /// True: AWS waits until an instance has prepared, and replaces one that cannot.
        pub enable_lifecycle_hook: Option<bool>,
        /// Seconds that it waits; default 600.
        pub lifecycle_hook_timeout: Option<i32>,
        /// Images pulled while preparing, besides those of the cluster.
        pub additional_images: Vec<String>,
    }
}
