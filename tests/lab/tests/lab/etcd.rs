//! etcd's volumes and pods.

use super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Key of the tag on volumes of etcd cluster `main`.
pub const MAIN: &str = "k8s.io/etcd/main";

/// Every volume of an etcd cluster by id, with key and value of its tag.
pub fn list_volumes(lab: &Lab) -> Result<BTreeMap<String, (String, String)>> {
    let filters = json!({"Filters": [{"Name": format!("tag:kubernetes.io/cluster/{CLUSTER}"), "Values": ["owned"]}]});
    let told = lab.call_aws("ec2", "DescribeVolumes", &filters)?;
    let told = told["Volumes"].as_array().context("volumes")?;
    let mut found = BTreeMap::new();
    for volume in told {
        let id = volume["VolumeId"].as_str().context("an id")?;
        let tags = volume["Tags"].as_array().context("tags")?;
        let text = |tag: &Value, key: &str| tag[key].as_str().unwrap_or_default().to_owned();
        let own = tags
            .iter()
            .find(|tag| text(tag, "Key").starts_with("k8s.io/etcd/"));
        if let Some(own) = own {
            found.insert(id.to_owned(), (text(own, "Key"), text(own, "Value")));
        }
    }
    Ok(found)
}

/// The volume of a member of etcd cluster `main`.
pub fn find_volume(lab: &Lab, member: &str) -> Result<String> {
    let all = list_volumes(lab)?;
    let own =
        |(key, value): &(String, String)| key == MAIN && value.split('/').next() == Some(member);
    let mut of: Vec<String> = all
        .iter()
        .filter(|(_, tag)| own(tag))
        .map(|(id, _)| id.clone())
        .collect();
    ensure!(of.len() == 1, "volumes of {member}: {of:?} of {all:?}");
    Ok(of.remove(0))
}

/// Mount point of a volume on a control plane.
pub fn mount_point(volume: &str) -> String {
    format!("/mnt/master-{volume}")
}

/// Restarts of etcd's containers, by pod.
pub fn count_restarts(lab: &Lab) -> Result<BTreeMap<String, i64>> {
    let pods = lab.get_objects(&["pods", "--namespace=kube-system"])?;
    let pods = pods["items"].as_array().context("pods")?;
    let mut found = BTreeMap::new();
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().context("a name")?;
        if name.starts_with("etcd-") {
            let statuses = pod["status"]["containerStatuses"].as_array();
            let statuses = statuses.with_context(|| format!("{name} has no containers"))?;
            let count = statuses
                .iter()
                .filter_map(|one| one["restartCount"].as_i64());
            found.insert(name.to_owned(), count.sum());
        }
    }
    ensure!(found.len() > 1, "no pods of etcd: {pods:?}");
    Ok(found)
}
