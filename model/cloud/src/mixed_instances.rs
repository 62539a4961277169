//! Which instance types a group launches, and how many of its instances are spot instances.

use serde::{Deserialize, Serialize};

/// The strategy whose cheapest pools can be counted.
pub const LOWEST_PRICE: &str = "lowest-price";

/// A policy of an Auto Scaling group. AWS keeps what an update leaves out, so everything has a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixedInstancesPolicy {
    pub instances_distribution: InstancesDistribution,
    /// What is launched instead of the template's instance type; of types the first one comes first.
    pub overrides: Vec<LaunchOverride>,
}

/// On-demand and spot instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancesDistribution {
    /// `prioritized`: in the order of the overrides; or `lowest-price`.
    pub on_demand_allocation_strategy: String,
    /// This many instances are always on demand.
    pub on_demand_base_capacity: i32,
    /// Percentage of on-demand instances above the base.
    pub on_demand_percentage_above_base_capacity: i32,
    /// `lowest-price`, `capacity-optimized`, `capacity-optimized-prioritized` or `price-capacity-optimized`.
    pub spot_allocation_strategy: String,
    /// Cheapest pools used; only with `lowest-price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_instance_pools: Option<i32>,
    /// Highest price an hour in US dollars, in the form of [`super::canonical_price`]; `None`: the on-demand price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_max_price: Option<String>,
}

/// What is launched instead of the template's instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchOverride {
    InstanceType(String),
    InstanceRequirements(InstanceRequirements),
}

/// Attributes of the instance types that AWS chooses from; those of the image's architecture count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRequirements {
    /// Number of vCPUs.
    pub vcpu_count: AmountRange,
    /// In MiB.
    pub memory_mib: AmountRange,
    /// `included`, `excluded` or `required`: types such as t3.
    pub burstable_performance: String,
    /// Types that are never chosen; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_instance_types: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountRange {
    pub min: i32,
    /// `None`: without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i32>,
}
