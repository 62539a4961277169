//! What a spec asks for without effect: features of kOps that kctl does not implement yet, and what another field would have to turn on.
//! `kctl update` and `kctl validate` warn about each. The change that implements a feature removes its entry here.

use crate::api::InstanceGroup;
use crate::api::cluster::ClusterSpec;
use crate::expand::{BY_PRIORITY, is_scaled};
use serde::Serialize;

/// The page with a workaround for each feature.
pub const PAGE: &str = "docs/not-yet.md";

/// What a spec asks for without effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotYet {
    /// Its heading on the page, one word.
    pub topic: &'static str,
    pub message: String,
}

/// What a spec asks for without effect. Takes the spec as written or as completed.
pub fn not_yet(spec: &ClusterSpec, groups: &[InstanceGroup]) -> Vec<NotYet> {
    let config = spec.cluster_autoscaler.as_ref();
    let config = config.filter(|config| config.enabled == Some(true));
    let wanted = |group: &InstanceGroup| group.spec.autoscale == Some(true);
    let scaled = |group: &InstanceGroup| config.is_some() && is_scaled(group);
    let weighed = |group: &InstanceGroup| {
        let reads = config.is_some_and(|config| {
            config.expander.as_deref() == Some(BY_PRIORITY)
                && config.create_priority_expander_config != Some(false)
                && config.custom_priority_expander_config.is_empty()
        });
        reads && is_scaled(group)
    };
    [
        idle(groups, "autoscale", |group| wanted(group) && !scaled(group)),
        idle(groups, "autoscalePriority", |group| {
            group.spec.autoscale_priority.is_some() && !weighed(group)
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A field of groups that the cluster autoscaler does not read.
fn idle(
    groups: &[InstanceGroup],
    field: &str,
    is_idle: impl Fn(&InstanceGroup) -> bool,
) -> Option<NotYet> {
    let names = groups.iter().filter(|group| is_idle(group));
    let names: Vec<&str> = names.map(InstanceGroup::name).collect();
    let names = names.join(", ");
    let message = format!("{field} of {names} has no effect with this spec.clusterAutoscaler");
    (!names.is_empty()).then(|| not_yet_item("autoscaling", &message))
}

fn not_yet_item(topic: &'static str, message: &str) -> NotYet {
    NotYet {
        topic,
        message: message.to_owned(),
    }
}
