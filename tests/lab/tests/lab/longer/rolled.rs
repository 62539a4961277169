//! A rolling update of three control planes and two workers, under a client of the API and clients of a service whose deployment has
//! a disruption budget.

use super::super::cluster::{self, CLUSTER, Network};
use super::super::faults::crashes;
use super::super::{PATIENCE, birth, pods};
use anyhow::{Context, Result, ensure};
use lab::host::Release;
use lab::scenario::{
    LIMIT, Lab, ServiceCalls, Writers, count_failures, describe_gaps, number_from_environment,
    random_fraction, unix_time,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A field of the spec that every instance gets only with a new launch.
pub const SETTING: &str = "spec.kubelet.maxPods=77";

/// Longest time in seconds after which kctl is killed: about that of one control plane's replacement.
const LONGEST: f64 = 90.0;

/// Pods of the deployment that the budget keeps.
const KEPT: &str = "--min-available=5";

/// From the creation of the cluster to its end. `dns`: how the API is found, as for `kctl create cluster --dns`.
pub fn run(lab: &mut Lab, dns: &str, network: Network) -> Result<()> {
    make_busy_cluster(lab, dns, network)?;
    lab.run_step("nothing is to be replaced", |lab| {
        ensure!(outdated(lab)?.is_empty(), "{:?}", outdated(lab)?);
        Ok(())
    })?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    let calls = lab.run_step("two pods call the service", |lab| {
        lab.start_service_calls(PATIENCE)
    })?;
    lab.run_step("the spec changes, and the instances stay", |lab| {
        lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", SETTING])?;
        let group = ["edit", "ig", "nodes-us-east-1a", "--name", CLUSTER];
        // The workers go from Debian 12 to 13.
        let image = format!("spec.image={}", Release::Trixie.spec_image());
        lab.run_kctl(&[&group[..], &["--set", &image]].concat())?;
        lab.run_kctl(&["update", CLUSTER, "--yes"])?;
        let outdated = outdated(lab)?;
        ensure!(outdated == instances(lab)?, "{outdated:?}");
        Ok(())
    })?;
    lab.run_step("kctl replaces every instance", |lab| {
        replace_all(lab, &writers)
    })?;
    lab.run_step("kctl replaces one instance by name", replace_one)?;
    lab.run_step(
        "pods reach each other and services",
        pods::expect_connections,
    )?;
    lab.run_step("no call of the service failed", |_| check_calls(calls))?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

/// Three control planes, two workers, and six pods with a budget. `dns` as for [`run`].
pub fn make_busy_cluster(lab: &mut Lab, dns: &str, network: Network) -> Result<()> {
    lab.run_step("kctl makes a cluster", |lab| {
        birth::make_cluster(lab, dns, network)
    })?;
    lab.run_step("five instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 3)
    })?;
    lab.run_step("kctl says that it is healthy", cluster::expect_healthy)?;
    lab.run_step("six pods run, five of which must stay", |lab| {
        pods::run_pods(lab)?;
        let budget = ["create", "poddisruptionbudget", "web", "--selector=app=web"];
        lab.run_kubectl(&[&budget[..], &[KEPT]].concat()).map(drop)
    })
}

pub fn check_calls(calls: ServiceCalls) -> Result<()> {
    let calls = calls.end()?;
    ensure!(!calls.is_empty(), "there were no calls");
    let failed: Vec<_> = calls.iter().filter(|one| !one.failure.is_empty()).collect();
    let longest = calls.iter().map(|one| one.milliseconds).max();
    eprintln!(
        "       {} calls, {} of which failed; the longest took {} ms",
        calls.len(),
        failed.len(),
        longest.unwrap_or_default()
    );
    ensure!(failed.is_empty(), "{failed:#?}");
    Ok(())
}

fn replace_all(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let old = instances(lab)?;
    let begun = unix_time()?;
    let kills = kill_repeatedly(lab)?;
    let done = lab.run_kctl(&["rolling-update", CLUSTER, "--yes", "-o", "json"])?;
    let ended = unix_time()?;
    let done: Value = serde_json::from_str(&done)?;
    ensure!(done["outcome"] == "done", "{done}");
    let new = instances(lab)?;
    ensure!(
        new.len() == 5 && new.is_disjoint(&old),
        "{old:?} became {new:?}"
    );
    ensure!(outdated(lab)?.is_empty(), "{:?}", outdated(lab)?);
    cluster::expect_healthy(lab)?;
    expect_clean_nodes(lab)?;
    let writes = writers.read_attempts()?;
    let gaps = describe_gaps(&writes, begun, ended);
    eprintln!(
        "       five instances were replaced in {:.1} s, with {kills} kills; {gaps}, {} writes by the public name failed",
        ended - begun,
        count_failures(&writes)
    );
    let plan = lab.run_kctl(&["update", CLUSTER])?;
    ensure!(plan.contains("No changes."), "{plan}");
    Ok(())
}

/// Kills kctl with -9 at random moments of the rolling update; the next run goes on. Returns how often it was killed.
fn kill_repeatedly(lab: &Lab) -> Result<u64> {
    let wanted = number_from_environment("KCTL_ROLL_KILLS")?.unwrap_or(3);
    let seed = number_from_environment("KCTL_LAB_SEED")?.unwrap_or(1);
    let mut kills = 0;
    for position in 0..wanted {
        let after = Duration::from_secs_f64(1.0 + LONGEST * random_fraction(seed, position));
        kills += u64::from(lab.kill_kctl(&["reconcile", CLUSTER, "--yes"], after)?);
    }
    Ok(kills)
}

/// `kctl delete instance` replaces a worker of a cluster of three control planes and two workers.
pub fn replace_one(lab: &mut Lab) -> Result<()> {
    let old = instances(lab)?;
    let worker = cluster::worker_instances(lab)?;
    let worker = worker.first().context("a worker")?.id.clone();
    lab.run_kctl(&["delete", "instance", &worker, "--name", CLUSTER, "--yes"])?;
    let new = instances(lab)?;
    let gone: Vec<_> = old.difference(&new).collect();
    ensure!(
        gone == [&worker] && new.len() == 5,
        "{old:?} became {new:?}"
    );
    expect_clean_nodes(lab)
}

/// No Node is cordoned, tainted or marked. The cloud controller manager removes the Node of an instance that has ended once it is
/// not Ready.
fn expect_clean_nodes(lab: &Lab) -> Result<()> {
    const MARKS: [&str; 4] = [
        "unschedulable",
        "scheduled-for-update",
        "rolling-update",
        "kctl.dev/termination",
    ];
    let nodes = lab.wait_until("five Nodes", LIMIT, |lab| {
        let nodes = lab.get_objects(&["nodes"])?;
        let nodes = nodes["items"].as_array().context("nodes")?.clone();
        ensure!(nodes.len() == 5, "{} Nodes", nodes.len());
        Ok(nodes)
    })?;
    for node in nodes {
        let text = node["spec"].to_string() + &node["metadata"]["annotations"].to_string();
        for left in MARKS {
            ensure!(!text.contains(left), "{node}");
        }
    }
    Ok(())
}

/// The ids of all instances that are not being terminated.
fn instances(lab: &Lab) -> Result<BTreeSet<String>> {
    let all = [
        cluster::control_planes(lab, 3)?,
        cluster::worker_instances(lab)?,
    ]
    .concat();
    Ok(all.into_iter().map(|one| one.id).collect())
}

/// The ids of the instances that a rolling update would replace.
pub fn outdated(lab: &Lab) -> Result<BTreeSet<String>> {
    let preview = lab.run_kctl(&["rolling-update", CLUSTER, "-o", "json"])?;
    let preview: Value = serde_json::from_str(&preview)?;
    let rows = preview["instances"].as_array().context("instances")?;
    let id = |row: &Value| row["id"].as_str().map(str::to_owned).context("an id");
    rows.iter().map(id).collect()
}
