//! Features that a spec asks for, or that kOps provides by default, and that kctl does not implement yet. `kctl update` and
//! `kctl validate` warn about each. The change that implements a feature removes its entry here.

use crate::api::{Cluster, InstanceGroup};
use serde::Serialize;

/// The page with a workaround for each feature.
pub const PAGE: &str = "docs/not-yet.md";

/// A feature that kctl does not implement yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotYet {
    /// Its heading on the page, one word.
    pub topic: &'static str,
    pub message: String,
}

/// The features that a spec asks for without effect. Takes the spec as written or as completed.
pub fn not_yet(cluster: &Cluster, groups: &[InstanceGroup]) -> Vec<NotYet> {
    let spec = &cluster.spec;
    let mut all = Vec::new();
    let off = |switch: Option<bool>| switch == Some(false);
    let cloud = spec.cloud_config.clone().unwrap_or_default();
    let driver = cloud.aws_ebscsi_driver.unwrap_or_default();
    if !off(driver.enabled) && !off(driver.managed) {
        all.push(not_yet_item(
            "volumes",
            "the EBS CSI driver and a StorageClass are not installed yet: install your own, or PersistentVolumeClaims stay Pending",
        ));
    }
    let scaled = groups
        .iter()
        .filter(|group| group.spec.autoscale == Some(true));
    let scaled: Vec<&str> = scaled.map(InstanceGroup::name).collect();
    if !scaled.is_empty() {
        let names = scaled.join(", ");
        all.push(not_yet_item(
            "autoscaling",
            &format!(
                "the cluster autoscaler is not installed yet: autoscale of {names} has no effect"
            ),
        ));
    }
    all
}

fn not_yet_item(topic: &'static str, message: &str) -> NotYet {
    NotYet {
        topic,
        message: message.to_owned(),
    }
}
