//! etcd's volumes and pods.

use super::PATIENCE;
use super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{LIMIT, Lab};
use node::manifests::ETCD_SERVES;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
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

/// Waits until protokube has taken and verified a snapshot of each etcd cluster.
pub fn expect_snapshots(lab: &mut Lab) -> Result<()> {
    ["main", "events"]
        .iter()
        .try_for_each(|etcd| expect_snapshot(lab, etcd))
}

fn expect_snapshot(lab: &Lab, etcd: &str) -> Result<()> {
    lab.wait_until("a snapshot is listed", PATIENCE, |lab| {
        let words = ["etcd", "snapshot", "list", "--etcd", etcd, "-o", "json"];
        let said = lab.run_kctl(&[&words[..], &["--name", CLUSTER]].concat())?;
        let said: Value = serde_json::from_str(&said)?;
        let all = said["snapshots"].as_array().context("snapshots")?;
        let one = all.iter().find(|one| one["kind"] == "scheduled");
        let one = one.with_context(|| said.to_string())?;
        ensure!(one["verified"] == true, "{one}");
        let verified = &one["manifest"]["verified"];
        eprintln!(
            "       {etcd}: {} keys at revision {}, {} bytes, verified after {} s",
            verified["keys"], verified["revision"], one["compressedBytes"], verified["seconds"]
        );
        Ok(())
    })
}

/// Waits until three members have started and vote in each etcd cluster.
pub fn expect_three_voters(lab: &Lab) -> Result<()> {
    expect_voters(lab, 3)
}

/// Waits until as many members have started and vote in each etcd cluster, and no others are in its list.
pub fn expect_voters(lab: &Lab, count: usize) -> Result<()> {
    let what = format!("{count} members vote in each etcd cluster");
    lab.wait_until(&what, PATIENCE, |lab| {
        let said = lab.run_kctl(&["etcd", "members", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let members = said["members"].as_array().context("members")?;
        for name in ["main", "events"] {
            let voters = members.iter().filter(|one| {
                one["etcd"] == name && one["voter"] == true && one["started"] == true
            });
            ensure!(voters.count() == count, "{said}");
            let listed = members.iter().filter(|one| one["etcd"] == name);
            ensure!(listed.count() == count, "{said}");
        }
        Ok(())
    })
}

/// What etcd says about its data (`/v3/maintenance/hashkv`).
#[derive(Debug, Deserialize)]
struct HashAnswer {
    header: HashHeader,
    #[serde(default)]
    hash: u32,
    /// The hash is only of what is newer, and of what was kept of the rest.
    #[serde(default)]
    compact_revision: String,
}

#[derive(Debug, Deserialize)]
struct HashHeader {
    revision: String,
}

/// The members of etcd cluster `main` in these groups hold the same data: equal hashes at one revision, after the same compaction.
pub fn expect_equal_hashes(lab: &Lab, groups: &[usize]) -> Result<()> {
    let hosts: Vec<String> = groups
        .iter()
        .map(|group| Ok(cluster::control_plane(lab, *group)?.id))
        .collect::<Result<_>>()?;
    // A member that is behind knows neither the revision nor the compaction of the others.
    let hashes = lab.wait_until("members are at one revision", LIMIT, |lab| {
        let first = hosts.first().context("control planes")?;
        let revision = ask_hash(lab, first, "0")?.header.revision;
        let ask = |host: &String| Ok((ask_hash(lab, host, &revision)?, host.clone()));
        let answers: Vec<(HashAnswer, String)> = hosts.iter().map(ask).collect::<Result<_>>()?;
        let compacted: BTreeSet<&str> = answers
            .iter()
            .map(|(answer, _)| answer.compact_revision.as_str())
            .collect();
        ensure!(compacted.len() == 1, "they compacted: {answers:?}");
        Ok(answers)
    })?;
    let equal: BTreeSet<u32> = hashes.iter().map(|(answer, _)| answer.hash).collect();
    ensure!(
        equal.len() == 1 && !equal.contains(&0),
        "data differs: {hashes:?}"
    );
    eprintln!("       {} members have hash {equal:?}", hosts.len());
    Ok(())
}

/// The hash of a member's data up to a revision; 0: the newest.
fn ask_hash(lab: &Lab, host: &str, revision: &str) -> Result<HashAnswer> {
    let body = json!({"revision": revision});
    let said = call_member(lab, host, 4001, ("hashkv", &body))?;
    serde_json::from_str(&said).with_context(|| format!("{host} says {said}"))
}

/// Calls a method of etcd's service for maintenance on a control plane, with the certificate of the API server.
fn call_member(lab: &Lab, host: &str, port: u16, (method, body): (&str, &Value)) -> Result<String> {
    let pki = "/srv/kubernetes/kube-apiserver";
    let call = format!(
        "curl --silent --show-error --fail-with-body --max-time 20 --cacert {pki}/etcd-ca.crt \
         --cert {pki}/etcd-client.crt --key {pki}/etcd-client.key \
         --data '{body}' https://127.0.0.1:{port}/v3/maintenance/{method}"
    );
    lab.run_script(host, &call)
}

/// Makes the member of one of three control planes the leader of `main` or `events`.
pub fn make_leader(lab: &Lab, etcd: &str, group: usize) -> Result<()> {
    let port = if etcd == "main" { 4001 } else { 4002 };
    let hosts = cluster::control_planes(lab, 3)?;
    let call =
        |host: &str, method: &str, body: &Value| call_member(lab, host, port, (method, body));
    lab.wait_until("the member leads", LIMIT, |_| {
        let status = call(&hosts[group].id, "status", &json!({}))?;
        let status: Value = serde_json::from_str(&status)?;
        let id = status["header"]["member_id"].as_str().context("an id")?;
        if status["leader"] == id {
            return Ok(());
        }
        // Only the leader accepts it.
        let to = json!({"targetID": id});
        let asked = hosts
            .iter()
            .map(|host| call(&host.id, "transfer-leadership", &to));
        let refused: Vec<String> = asked
            .filter_map(Result::err)
            .map(|error| format!("{error:#}"))
            .collect();
        bail!("another member of {etcd} leads: {status}, {refused:?}")
    })
}

/// Mount point of a volume on a control plane.
pub fn mount_point(volume: &str) -> String {
    format!("/mnt/master-{volume}")
}

/// Waits until the members of both etcd clusters on this control plane answer reads that a quorum confirms.
pub fn expect_serving(lab: &Lab, host: &str) -> Result<()> {
    lab.wait_until("the members of etcd serve", PATIENCE, |lab| {
        let serves = [3992, 3993].map(|port| {
            format!("curl --silent --fail --max-time 5 'http://127.0.0.1:{port}{ETCD_SERVES}'")
        });
        lab.run_script(host, &serves.join(" && ")).map(drop)
    })
}

/// Ids of etcd's containers, by pod; the name of a pod ends with its instance.
pub fn list_containers(lab: &Lab) -> Result<BTreeMap<String, Value>> {
    let pods = lab.get_objects(&["pods", "--namespace=kube-system"])?;
    let pods = pods["items"].as_array().context("pods")?;
    let etcd = pods.iter().filter_map(|pod| {
        let name = pod["metadata"]["name"].as_str()?;
        let container = &pod["status"]["containerStatuses"][0]["containerID"];
        (name.starts_with("etcd-")).then(|| (name.to_owned(), container.clone()))
    });
    let found: BTreeMap<String, Value> = etcd.collect();
    ensure!(found.len() > 1, "no pods of etcd: {pods:?}");
    Ok(found)
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

/// A control plane downloads the newest verified snapshot, and a scratch etcd reads it.
pub fn run_drill(lab: &mut Lab) -> Result<()> {
    let said = lab.run_kctl(&["etcd", "drill", CLUSTER])?;
    eprintln!("       {}", said.trim());
    ensure!(said.contains("/registry/namespaces"), "{said}");
    Ok(())
}
