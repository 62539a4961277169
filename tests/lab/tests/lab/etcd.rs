//! etcd's volumes and pods.

use super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A status is written at once when a member settles, and then once a minute.
const REPORTED: Duration = Duration::from_mins(3);

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

/// `kctl etcd status` shows three members of each etcd cluster, as etcd says it, and one of them leads.
pub fn expect_reported(lab: &mut Lab) -> Result<()> {
    lab.wait_until("members report", REPORTED, |lab| {
        let said = lab.run_kctl(&["etcd", "status", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let members = said["members"].as_array().context("members")?;
        for name in ["main", "events"] {
            let own = members.iter().filter(|one| one["etcd"] == name);
            let own: Vec<&Value> = own.collect();
            let leaders = own.iter().filter(|one| one["role"] == "leader").count();
            ensure!((own.len(), leaders) == (3, 1), "{said}");
            for member in own {
                let running = &member["running"];
                let number = |of: &Value, key: &str| of[key].as_u64().unwrap_or_default();
                ensure!(
                    number(running, "revision") > 0 && number(running, "quotaBytes") > 0,
                    "{member}"
                );
                ensure!(number(member, "freeBytes") > 0, "{member}");
                ensure!(running["fsyncP99Seconds"].as_f64().is_some(), "{member}");
                let listed = running["members"].as_array().map(Vec::len);
                ensure!(listed == Some(3), "{member}");
            }
        }
        ensure!(said["problems"] == json!([]), "{said}");
        Ok(())
    })
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
