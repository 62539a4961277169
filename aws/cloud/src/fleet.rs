//! The machines of a cluster as AWS knows them: its Auto Scaling groups and their instances, in two paged calls
//! however many there are.

mod activities;
mod groups;
mod instances;
mod templates;
mod told;

pub use activities::{LaunchFailure, last_launch_failure};
pub use told::{Told, told, told_next};

use crate::CloudClients;
use engine::Failure;
use node::names::ownership_tag;

/// A cluster's groups and instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Auto Scaling groups, by name; none that is being deleted.
    pub groups: Vec<ScalingGroup>,
    /// Instances by id, whatever their state, but for those that are gone.
    pub instances: Vec<Instance>,
}

/// An Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingGroup {
    /// AWS' name of it.
    pub name: String,
    /// Name of its instance group, from its tag.
    pub instance_group: Option<String>,
    /// Bounds and aim.
    pub min: i32,
    /// What it aims for.
    pub desired: i32,
    /// Upper bound.
    pub max: i32,
    /// What it launches.
    pub template: Option<TemplateVersion>,
    /// Processes that are suspended: `Launch`, ...
    pub suspended: Vec<String>,
}

/// A version of a launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateVersion {
    /// `lt-...`.
    pub id: String,
    /// The version's number; `$Latest` and `$Default` are resolved.
    pub version: String,
}

/// An instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// `i-...`.
    pub id: String,
    /// Name of its Auto Scaling group; none once it is detached.
    pub scaling_group: Option<String>,
    /// Name of its instance group, from its tag, else its Auto Scaling group's.
    pub instance_group: Option<String>,
    /// Availability zone.
    pub zone: String,
    /// `t3.medium`.
    pub machine_type: String,
    /// AMI.
    pub image: Option<String>,
    /// EC2's: `pending`, `running`, `shutting-down`, `stopping`, `stopped`.
    pub state: String,
    /// Why it is in that state, if it is not `running` because somebody wanted it.
    pub state_reason: Option<String>,
    /// Auto Scaling's: `Pending`, `InService`, `Terminating:Wait`, `Warmed:Stopped`, ...
    pub lifecycle: Option<String>,
    /// When it was launched, in seconds since 1970.
    pub launched: Option<i64>,
    /// Primary private address.
    pub private_ip: Option<String>,
    /// Public address, if it has one.
    pub public_ip: Option<String>,
    /// `ip-10-0-0-1.ec2.internal`.
    pub private_dns_name: Option<String>,
    /// What it was launched from.
    pub template: Option<TemplateVersion>,
    /// Whether that is what its group launches now; none where it cannot be told.
    pub up_to_date: Option<bool>,
}

/// Looks at all of a cluster's groups and instances: by their ownership tag, in two paged calls, and a third only where
/// a group launches `$Latest` or `$Default`.
pub async fn fleet(clients: &CloudClients, cluster: &str) -> Result<Fleet, Failure> {
    let owned = ownership_tag(cluster);
    let (described, found) = futures::try_join!(
        Box::pin(groups::fetch(clients, &owned)),
        Box::pin(instances::fetch(clients, &owned)),
    )?;
    let newest = templates::resolve(clients, &described).await?;
    let mut groups: Vec<ScalingGroup> = described
        .iter()
        .filter_map(|raw| groups::read(raw, &newest))
        .collect();
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    let members = groups::members(&described, &groups);
    Ok(Fleet {
        instances: instances::joined(found, &members, &groups),
        groups,
    })
}
