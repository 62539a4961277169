//! What a spec asks for, or kOps does unasked, and nobody does yet. It is told wherever a cluster is looked at, so that
//! nobody relies on it. An entry leaves this file in the change that makes something act.

use crate::api::{Cluster, InstanceGroup};
use serde::Serialize;

/// Where it is written what to do meanwhile.
pub const PAGE: &str = "docs/not-yet.md";

/// Something that nobody does yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotYet {
    /// In a word; its heading on the page.
    pub topic: &'static str,
    pub message: String,
}

/// What a cluster goes without; of a spec as written or as completed.
pub fn not_yet(cluster: &Cluster, groups: &[InstanceGroup]) -> Vec<NotYet> {
    let spec = &cluster.spec;
    let mut all = vec![not_yet_item(
        "backups",
        "nothing backs up etcd yet: backupStore, backupInterval and backupRetentionDays have no effect",
    )];
    let handler = spec.node_termination_handler.clone().unwrap_or_default();
    let off = |switch: Option<bool>| switch == Some(false);
    if !off(handler.enabled) {
        let text = if off(handler.enable_sqs_termination_draining) {
            "nothing drains nodes yet: the node termination handler is not installed"
        } else {
            "nothing drains nodes yet: what Auto Scaling ends waits for 300 s first, and Spot interruptions come unheard"
        };
        all.push(not_yet_item("draining", text));
    }
    let cloud = spec.cloud_config.clone().unwrap_or_default();
    let driver = cloud.aws_ebscsi_driver.unwrap_or_default();
    if !off(driver.enabled) && !off(driver.managed) {
        all.push(not_yet_item(
            "volumes",
            "neither the EBS CSI driver nor a StorageClass is installed yet: PersistentVolumeClaims wait for yours",
        ));
    }
    let of_groups = groups
        .iter()
        .any(|group| group.spec.rolling_update.is_some());
    if spec.rolling_update.is_some() || of_groups {
        all.push(not_yet_item(
            "rolling-updates",
            "nothing replaces machines one by one yet: rollingUpdate has no effect",
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
            &format!("nothing scales groups yet: autoscale of {names} has no effect"),
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
