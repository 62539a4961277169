//! Auto Scaling groups and their termination hooks.

use super::{AttrLookup, Kind, Rename};
use engine::{Id, Ref, Text};
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
    /// The template and its version.
    pub launch_template: LaunchTemplateRef,
    /// Classic load balancers of the user's, sorted.
    pub load_balancer_names: Vec<String>,
    /// Seconds; 0: no limit.
    pub max_instance_lifetime: i32,
    /// Upper bound.
    pub max_size: i32,
    /// Lower bound.
    pub min_size: i32,
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
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
    /// Instances get it too.
    pub propagate_at_launch: bool,
}

/// Which launch template, at which version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchTemplateRef {
    /// The template.
    pub launch_template_id: Ref,
    /// Its version number: the template's attribute `latest_version`.
    pub version: Text,
}

impl Kind for AutoscalingGroup {
    const TYPE: &'static str = "autoscaling_group";

    fn name(&self) -> String {
        self.auto_scaling_group_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        let mut refs = vec![self.launch_template.launch_template_id.clone()];
        refs.extend(self.target_group_arns.iter().cloned());
        refs.extend(self.vpc_zone_identifier.iter().cloned());
        refs
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            launch_template: LaunchTemplateRef {
                launch_template_id: rename(&self.launch_template.launch_template_id),
                version: super::renamed_text(&self.launch_template.version, rename),
            },
            target_group_arns: super::renamed_set(&self.target_group_arns, rename),
            vpc_zone_identifier: super::renamed_set(&self.vpc_zone_identifier, rename),
            ..self.clone()
        }
    }

    fn late(&self) -> Vec<Id> {
        self.launch_template.version.needs()
    }

    fn resolved(&self, attr: AttrLookup<'_>) -> Self {
        let mut resolved = self.clone();
        resolved.launch_template.version = self.launch_template.version.resolved(attr);
        resolved
    }
}

/// A lifecycle hook of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoscalingLifecycleHook {
    /// `IG-NTHLifecycleHook`.
    pub lifecycle_hook_name: String,
    /// The group.
    pub auto_scaling_group_name: Ref,
    /// `CONTINUE` or `ABANDON`.
    pub default_result: String,
    /// Seconds.
    pub heartbeat_timeout: i32,
    /// `autoscaling:EC2_INSTANCE_TERMINATING`.
    pub lifecycle_transition: String,
}

impl Kind for AutoscalingLifecycleHook {
    const TYPE: &'static str = "autoscaling_lifecycle_hook";

    fn name(&self) -> String {
        self.lifecycle_hook_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.auto_scaling_group_name.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            auto_scaling_group_name: rename(&self.auto_scaling_group_name),
            ..self.clone()
        }
    }
}
