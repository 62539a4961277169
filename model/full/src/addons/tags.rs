//! Tags of the AWS objects that addons create.

use crate::FullSpec;

/// The cluster's tag and those of the user: `KubernetesCluster=NAME,KEY=VALUE`.
pub(super) fn own_tags(full: &FullSpec) -> String {
    let own = std::iter::once(("KubernetesCluster", full.name.as_str()));
    let labels = full.cloud_labels.iter();
    let all = own.chain(labels.map(|(key, value)| (key.as_str(), value.as_str())));
    let all: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
    all.join(",")
}
