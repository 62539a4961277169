//! A changed spec and `kctl update` without replacing instances: running instances stay unchanged, also after a crash. Only new
//! instances get the change.

use super::super::cluster::{self, CLUSTER, CONTROL_PLANES};
use super::reboots;
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{LIMIT, Lab};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;

/// A field of the spec, and the flag of kube-apiserver for it.
const SETTING: &str = "spec.kubeAPIServer.maxRequestsInflight=512";
const FLAG: &str = "--max-requests-inflight=512";

/// Time in which protokube or nodeup would wrongly apply the change.
const LOOK: Duration = Duration::from_secs(20);

pub fn change_flag(lab: &mut Lab) -> Result<()> {
    let before = wait_until_settled(lab)?;
    let control = cluster::control_plane(lab, 0)?;
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", SETTING])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    sleep(LOOK);
    let after = list_containers(lab)?;
    let changed = differing_pods(&before, &after);
    ensure!(changed.is_empty(), "{}", changed.join("\n"));
    let new = newest_user_data(lab)?;
    let own = lab.find_instance(&control.id)?.user_data;
    ensure!(
        own.is_some_and(|own| own != new),
        "the launch template is as it was"
    );
    ensure!(
        !is_up_to_date(lab, &control.id)?,
        "kctl does not say that the instance is out of date"
    );
    reboots::crash_control_plane(lab)?;
    expect_old_flags(lab)
}

/// No control plane has the new flag, including the one that crashed.
fn expect_old_flags(lab: &Lab) -> Result<()> {
    let pods = lab.get_objects(&[
        "pods",
        "--namespace=kube-system",
        "--selector=k8s-app=kube-apiserver",
    ])?;
    let text = pods.to_string();
    ensure!(text.contains("--etcd-servers"), "{pods}");
    ensure!(!text.contains(FLAG), "the old instance has the new flag");
    Ok(())
}

/// By pod: id and restarts of each container.
type Containers = BTreeMap<String, Vec<(Value, Value)>>;

/// Waits until the containers no longer change. Pods of an instance that has just booted are replaced long after its node is
/// Ready.
fn wait_until_settled(lab: &Lab) -> Result<Containers> {
    let mut last = Containers::new();
    lab.wait_until("every pod runs, and goes on to", LIMIT, |lab| {
        let now = list_containers(lab)?;
        let changed = differing_pods(&last, &now);
        last = now;
        if changed.is_empty() {
            return Ok(last.clone());
        }
        sleep(LOOK);
        bail!("{}", changed.join("\n"))
    })
}

/// The pods that differ, before and after.
fn differing_pods(before: &Containers, after: &Containers) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let told = |name: &String| {
        let (was, is) = (before.get(name), after.get(name));
        format!("{name}: {was:?} became {is:?}")
    };
    names.into_iter().filter(differs).map(told).collect()
}

/// The containers of all pods; an error if one is not ready.
fn list_containers(lab: &Lab) -> Result<Containers> {
    let pods = lab.get_objects(&["pods", "--all-namespaces"])?;
    let pods = pods["items"].as_array().context("pods")?;
    let of = |pod: &Value| {
        let statuses = pod["status"]["containerStatuses"].as_array();
        let statuses = statuses.context("a pod without containers")?;
        let running = statuses.iter().all(|one| one["ready"] == true);
        ensure!(running, "{}", pod["status"]);
        let name = format!(
            "{}/{}",
            pod["metadata"]["namespace"], pod["metadata"]["name"]
        );
        let runs = statuses
            .iter()
            .map(|one| (one["containerID"].clone(), one["restartCount"].clone()));
        Ok((name, runs.collect()))
    };
    // A instance that shuts down in order leaves ended pods behind.
    let ended = |pod: &&Value| {
        ["Succeeded", "Failed"]
            .iter()
            .any(|word| pod["status"]["phase"] == *word)
    };
    pods.iter().filter(|pod| !ended(pod)).map(of).collect()
}

/// The user data of the newest launch template version, in base64.
fn newest_user_data(lab: &Lab) -> Result<String> {
    let asked = json!({"LaunchTemplateName": CONTROL_PLANES[0], "Versions": ["$Latest"]});
    let told = lab.call_aws("ec2", "DescribeLaunchTemplateVersions", &asked)?;
    let text = told["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"].as_str();
    Ok(text.context("user data")?.to_owned())
}

fn is_up_to_date(lab: &Lab, id: &str) -> Result<bool> {
    let said = lab.run_kctl(&["get", "instances", "--name", CLUSTER, "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let instances = said.as_array().context("a list of instances")?;
    let instance = instances.iter().find(|one| one["id"] == id);
    instance.context("the instance")?["upToDate"]
        .as_bool()
        .context("upToDate")
}
