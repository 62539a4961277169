//! etcd as EC2, the machines and the API show it.

use super::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Of the tag that says whose a volume is.
pub const MAIN: &str = "k8s.io/etcd/main";

/// Every volume with an etcd cluster's tag, by id: that tag, and its value.
pub fn volumes(lab: &Lab) -> Result<BTreeMap<String, (String, String)>> {
    let filters = json!({"Filters": [{"Name": format!("tag:kubernetes.io/cluster/{CLUSTER}"), "Values": ["owned"]}]});
    let told = lab.aws("ec2", "DescribeVolumes", &filters)?;
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

/// Volume of a member of etcd `main`.
pub fn volume(lab: &Lab, member: &str) -> Result<String> {
    let all = volumes(lab)?;
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

/// Where a control plane has a volume mounted.
pub fn folder(volume: &str) -> String {
    format!("/mnt/master-{volume}")
}

/// How often the containers of etcd's pods were started again, by pod.
pub fn restarts(lab: &Lab) -> Result<BTreeMap<String, i64>> {
    let pods = lab.objects(&["pods", "--namespace=kube-system"])?;
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
