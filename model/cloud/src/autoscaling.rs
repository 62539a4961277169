//! Auto Scaling groups, their lifecycle hooks and warm pools.

use super::listing::{ListingPosition, PartOf, Section, count_words, reference_words};
use super::{Kind, MixedInstancesPolicy, Tags};
use engine::{Ref, Text};
use serde::{Deserialize, Serialize};

/// An instance group's Auto Scaling group. Desired capacity is the autoscaler's, not ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoscalingGroup {
    /// `IG.masters.NAME` for control planes, `IG.NAME` otherwise.
    pub auto_scaling_group_name: String,
    /// Capacity rebalancing for spot.
    pub capacity_rebalance: bool,
    /// Names of the enabled metrics, sorted; granularity is always one minute.
    pub enabled_metrics: Vec<String>,
    /// The template and its version; with a policy, the policy's.
    pub launch_template: LaunchTemplateRef,
    /// Classic load balancers of the user's, sorted.
    pub load_balancer_names: Vec<String>,
    /// Seconds; 0: no limit.
    pub max_instance_lifetime: i32,
    pub max_size: i32,
    pub min_size: i32,
    /// Several instance types, on demand and spot; `None`: the template's type, as the template says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed_instances_policy: Option<MixedInstancesPolicy>,
    /// Instances are protected from scale-in.
    pub new_instances_protected_from_scale_in: bool,
    /// Suspended processes, sorted.
    pub suspended_processes: Vec<String>,
    /// Tags, all propagated at launch but the digest of the hooks; sorted by key.
    pub tags: Vec<GroupTag>,
    /// Target groups, sorted.
    pub target_group_arns: Vec<Ref>,
    /// Subnets, sorted.
    pub vpc_zone_identifier: Vec<Ref>,
}

/// A tag of an Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupTag {
    pub key: String,
    pub value: String,
    /// Instances get it too.
    pub propagate_at_launch: bool,
}

/// Which launch template, at which version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchTemplateRef {
    pub launch_template_id: Ref,
    /// Its version number: the template's attribute `latest_version`.
    pub version: Text,
}

impl Kind for AutoscalingGroup {
    const TYPE: &'static str = "autoscaling_group";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Instances, 2);
    const CAN_BE_REMADE: bool = false;

    fn name(&self) -> String {
        self.auto_scaling_group_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let template = std::iter::once(&mut self.launch_template.launch_template_id);
        let targets = self.target_group_arns.iter_mut();
        let subnets = self.vpc_zone_identifier.iter_mut();
        template.chain(targets).chain(subnets).collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.launch_template.version]
    }

    fn refs_changed(&mut self) {
        self.target_group_arns.sort();
        self.vpc_zone_identifier.sort();
    }

    fn describe(&self) -> String {
        let instances = match (self.min_size, self.max_size) {
            (1, 1) => "1 instance".to_owned(),
            (min, max) if min == max => format!("{min} instances"),
            (min, max) => format!("{min} to {max} instances"),
        };
        let subnets = count_words(self.vpc_zone_identifier.len(), "subnet");
        format!("{instances} in {subnets}")
    }
}

/// A lifecycle hook of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoscalingLifecycleHook {
    /// `IG-NTHLifecycleHook`, or `kops-warmpool` in every group with a warm pool that has one.
    pub lifecycle_hook_name: String,
    pub auto_scaling_group_name: Ref,
    /// `CONTINUE` or `ABANDON`.
    pub default_result: String,
    /// Seconds.
    pub heartbeat_timeout: i32,
    /// `autoscaling:EC2_INSTANCE_LAUNCHING` or `autoscaling:EC2_INSTANCE_TERMINATING`.
    pub lifecycle_transition: String,
}

impl Kind for AutoscalingLifecycleHook {
    const TYPE: &'static str = "autoscaling_lifecycle_hook";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Instances, 3);

    /// Hooks of two groups may have the same name.
    fn name(&self) -> String {
        let group = reference_words(&self.auto_scaling_group_name);
        format!("{group}/{}", self.lifecycle_hook_name)
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.auto_scaling_group_name]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(
            &self.auto_scaling_group_name,
            "lifecycle hook",
            "lifecycle hooks",
        )
    }
}

/// The warm pool of a group: instances that were started once, and wait stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoscalingWarmPool {
    pub auto_scaling_group_name: Ref,
    /// The hook that instances complete when they have prepared. Instances that are launched before the hook would not wait for
    /// it (kubernetes/kops#16582), so the pool follows the hook.
    pub launch_hook: Option<Ref>,
    /// Instances of the group and the pool together that are prepared at most; `None`: the group's maximum size.
    pub max_group_prepared_capacity: Option<i32>,
    /// Instances in the pool at least.
    pub min_size: i32,
    /// `Stopped`: the boot that takes an instance into service is the one in which it joins.
    pub pool_state: String,
    /// Instances that leave the group come back to the pool.
    pub reuse_on_scale_in: bool,
}

impl Kind for AutoscalingWarmPool {
    const TYPE: &'static str = "autoscaling_warm_pool";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Instances, 4);

    fn name(&self) -> String {
        reference_words(&self.auto_scaling_group_name).to_owned()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let group = std::iter::once(&mut self.auto_scaling_group_name);
        group.chain(self.launch_hook.as_mut()).collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.auto_scaling_group_name, "warm pool", "warm pools")
    }

    fn describe(&self) -> String {
        let most = self.max_group_prepared_capacity;
        let most = most.map(|most| format!("up to {most} instances with its group's"));
        let least = (self.min_size > 0).then(|| format!("at least {}", self.min_size));
        let parts: Vec<String> = most.into_iter().chain(least).collect();
        parts.join(", ")
    }
}
