//! A changed spec and `kctl update` without a roll: what runs goes on as it is, also over a reboot; new machines would differ.

use super::{CLUSTER, CONTROL_PLANE, cluster};
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{LIMIT, Lab};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;

/// A setting of the spec, and the flag of kube-apiserver that it becomes.
const SETTING: &str = "spec.kubeAPIServer.maxRequestsInflight=512";
const FLAG: &str = "--max-requests-inflight=512";

/// protokube and nodeup look at what they know every few seconds; what they wrongly did would show by then.
const LOOK: Duration = Duration::from_secs(20);

pub fn flag(lab: &mut Lab) -> Result<()> {
    let before = settled(lab)?;
    let control = cluster::control_plane(lab)?;
    lab.kctl(&["edit", "cluster", CLUSTER, "--set", SETTING])?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    sleep(LOOK);
    let after = containers(lab)?;
    let changed = differing(&before, &after);
    ensure!(changed.is_empty(), "{}", changed.join("\n"));
    let new = newest_user_data(lab)?;
    let own = lab.instance(&control.id)?.user_data;
    ensure!(
        own.is_some_and(|own| own != new),
        "the launch template is as it was"
    );
    ensure!(
        !up_to_date(lab, &control.id)?,
        "kctl does not say that the machine is of another configuration"
    );
    Ok(())
}

/// After the control plane booted again.
pub fn still_old(lab: &mut Lab) -> Result<()> {
    let pods = lab.objects(&[
        "pods",
        "--namespace=kube-system",
        "--selector=k8s-app=kube-apiserver",
    ])?;
    let text = pods.to_string();
    ensure!(text.contains("--etcd-servers"), "{pods}");
    ensure!(!text.contains(FLAG), "the old machine has the new flag");
    Ok(())
}

/// Of every pod, its containers: which, and how often each was started again.
type Containers = BTreeMap<String, Vec<(Value, Value)>>;

/// What runs, once nothing of it changes any more. Pods of a machine that has just booted are replaced long after its node
/// is Ready.
fn settled(lab: &Lab) -> Result<Containers> {
    let mut last = Containers::new();
    lab.until("every pod runs, and goes on to", LIMIT, |lab| {
        let now = containers(lab)?;
        let changed = differing(&last, &now);
        last = now;
        if changed.is_empty() {
            return Ok(last.clone());
        }
        sleep(LOOK);
        bail!("{}", changed.join("\n"))
    })
}

/// The pods that are not the same, as they were and as they are.
fn differing(before: &Containers, after: &Containers) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let told = |name: &String| {
        let (was, is) = (before.get(name), after.get(name));
        format!("{name}: {was:?} became {is:?}")
    };
    names.into_iter().filter(differs).map(told).collect()
}

/// All of them run.
fn containers(lab: &Lab) -> Result<Containers> {
    let pods = lab.objects(&["pods", "--all-namespaces"])?;
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
    // A machine that shuts down in order leaves its pods behind, ended.
    let ended = |pod: &&Value| {
        ["Succeeded", "Failed"]
            .iter()
            .any(|word| pod["status"]["phase"] == *word)
    };
    pods.iter().filter(|pod| !ended(pod)).map(of).collect()
}

/// Base64, as the control plane's next machine gets it.
fn newest_user_data(lab: &Lab) -> Result<String> {
    let asked = json!({"LaunchTemplateName": CONTROL_PLANE, "Versions": ["$Latest"]});
    let told = lab.aws("ec2", "DescribeLaunchTemplateVersions", &asked)?;
    let text = told["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"].as_str();
    Ok(text.context("user data")?.to_owned())
}

fn up_to_date(lab: &Lab, id: &str) -> Result<bool> {
    let said = lab.kctl(&["get", "instances", "--name", CLUSTER, "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let machines = said.as_array().context("a list of machines")?;
    let machine = machines.iter().find(|one| one["id"] == id);
    machine.context("the machine")?["upToDate"]
        .as_bool()
        .context("upToDate")
}
