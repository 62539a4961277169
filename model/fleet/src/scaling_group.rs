//! An Auto Scaling group, and why its last launch failed.

use crate::{Instance, TemplateVersion};

/// An Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingGroup {
    /// Its name in AWS.
    pub name: String,
    /// Name of its instance group, from its tag.
    pub instance_group: Option<String>,
    /// Smallest number of instances.
    pub min: i32,
    /// Number of instances that Auto Scaling aims for.
    pub desired: i32,
    /// Largest number of instances.
    pub max: i32,
    /// The launch template version that it launches.
    pub template: Option<TemplateVersion>,
    /// Its suspended processes: `Launch`, ...
    pub suspended: Vec<String>,
    /// ARNs of the target groups in which its instances are registered.
    pub target_groups: Vec<String>,
}

impl ScalingGroup {
    /// True if fewer of these instances are members of the group than it aims for.
    pub fn lacks_instances(&self, instances: &[Instance]) -> bool {
        let is_member = |one: &&Instance| one.scaling_group.as_ref() == Some(&self.name);
        instances.iter().filter(is_member).count() < self.desired_count()
    }

    /// The desired number of instances.
    pub(crate) fn desired_count(&self) -> usize {
        usize::try_from(self.desired).unwrap_or_default()
    }
}

/// A failed launch of an Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFailure {
    pub message: String,
    /// When it failed, in seconds since 1970.
    pub at: Option<i64>,
}
