//! The full spec: every decision made and written down, and what is built from it: AWS objects, NodeConfig and user data,
//! manifests, addons, IAM policies. Builders read the full spec and nothing else.

pub mod addons;
pub mod iam;
pub mod manifests;
pub mod nodes;
pub mod objects;
mod spec;

pub use spec::*;

use names::{CLUSTER_TAG, NAME_TAG, Tags, ownership_tag};
use node::names;

/// The tags of an object of this cluster: the user's labels, and over them the cluster, the name and ownership.
pub fn tags(full: &FullSpec, name: &str) -> Tags {
    let mut tags = full.cloud_labels.clone();
    tags.insert(CLUSTER_TAG.into(), full.name.clone());
    tags.insert(NAME_TAG.into(), name.into());
    tags.insert(ownership_tag(&full.name), "owned".into());
    tags
}

/// ARN of that queue.
pub fn queue_arn(full: &FullSpec) -> String {
    let place = &full.placement;
    format!(
        "arn:{}:sqs:{}:{}:{}",
        place.partition,
        place.region,
        place.account,
        names::queue(&full.name)
    )
}
