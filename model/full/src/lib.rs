//! The full spec, with all defaults filled in, and what is built from it: AWS objects, NodeConfig, user data, manifests,
//! addons and IAM policies. Builders read only the full spec.

pub mod addons;
pub mod greatest_size;
pub mod iam;
pub mod images;
pub mod manifests;
pub mod nodes;
pub mod objects;
mod spec;

pub use spec::*;

use names::{CLUSTER_TAG, NAME_TAG, Tags, ownership_tag};
use node::names;

/// The tags of an object of this cluster: the user's `cloudLabels`, and over them the cluster, the name and ownership.
pub fn cluster_tags(full: &FullSpec, name: &str) -> Tags {
    let mut tags = full.cloud_labels.clone();
    tags.insert(CLUSTER_TAG.into(), full.name.clone());
    tags.insert(NAME_TAG.into(), name.into());
    tags.insert(ownership_tag(&full.name), "owned".into());
    tags
}

/// ARN of the role of a service account.
pub fn service_account_role_arn(full: &FullSpec, namespace: &str, service_account: &str) -> String {
    let placement = &full.placement;
    format!(
        "arn:{}:iam::{}:role/{}",
        placement.partition,
        placement.account,
        names::service_account_role(&full.name, namespace, service_account)
    )
}

/// ARN of the queue of the node termination handler.
pub fn queue_arn(full: &FullSpec) -> String {
    let placement = &full.placement;
    format!(
        "arn:{}:sqs:{}:{}:{}",
        placement.partition,
        placement.region,
        placement.account,
        names::queue_name(&full.name)
    )
}
