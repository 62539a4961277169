//! An upgrade to another minor is taken back, then made again and finalized, while clients write.

use super::super::cluster::{self, CLUSTER};
use super::super::faults::crashes;
use super::upgraded::{Upgrade, expect_ended, expect_kubelets, expect_versions, replace_all};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Writers};
use serde_json::Value;
use std::collections::BTreeSet;

const UPGRADE: Upgrade = Upgrade {
    from: "1.35.4",
    to: "1.36.3",
    control_planes: 3,
};

/// The minor that is emulated.
const OLD_MINOR: &str = "1.35";

/// What `--emulated-version` is for, by the label of their pods.
const COMPONENTS: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster of the minor before", |lab| {
        UPGRADE.make_cluster(lab)?;
        cluster::expect_ready(lab, UPGRADE.control_planes)?;
        cluster::expect_healthy(lab)
    })?;
    let workers = worker_ids(lab)?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    lab.run_step("new control planes emulate the minor before", |lab| {
        emulate(lab, &writers)
    })?;
    lab.run_step("the upgrade is taken back", |lab| {
        write_spec(lab, &["--rollback"])?;
        replace_all(lab, &writers, "reconcile")?;
        lab.wait_until("all is of the version before", LIMIT, |lab| {
            expect_versions(lab, UPGRADE.from)?;
            expect_components(lab, UPGRADE.from, None)
        })?;
        cluster::expect_healthy(lab)
    })?;
    lab.run_step("it is made again", |lab| emulate(lab, &writers))?;
    ensure!(worker_ids(lab)? == workers, "workers were replaced");
    lab.run_step("it is finalized, control planes first", |lab| {
        write_spec(lab, &["--finalize"])?;
        replace_all(lab, &writers, "reconcile")?;
        // The cloud controller manager removes the Node of an instance that has ended once it is not Ready.
        lab.wait_until("all is of the new version", LIMIT, |lab| {
            expect_versions(lab, UPGRADE.to)?;
            expect_components(lab, UPGRADE.to, None)
        })?;
        expect_ended(lab)
    })?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

/// The spec gets the new version, and control planes with it take the places of the others.
fn emulate(lab: &mut Lab, writers: &Writers) -> Result<()> {
    write_spec(lab, &["--kubernetes-version", UPGRADE.to])?;
    replace_all(lab, writers, "reconcile")?;
    lab.wait_until("control planes emulate", LIMIT, |lab| {
        expect_components(lab, UPGRADE.to, Some(OLD_MINOR))?;
        expect_kubelets(lab, UPGRADE.from)
    })?;
    let api: Value = serde_json::from_str(&lab.run_kubectl(&["get", "--raw=/version"])?)?;
    let minor = OLD_MINOR.rsplit('.').next();
    ensure!(api["emulationMinor"].as_str() == minor, "{api}");
    cluster::expect_healthy(lab)
}

/// `kctl upgrade` with these options, which takes snapshots before it begins and before it is finalized.
fn write_spec(lab: &Lab, options: &[&str]) -> Result<()> {
    let words = [&["upgrade", CLUSTER][..], options, &["--yes"]].concat();
    let what = "kctl upgrade finds nothing in the way";
    lab.wait_until(what, LIMIT, |lab| lab.run_kctl(&words).map(drop))
}

/// The components of all control planes are of this version, and emulate this minor or none.
fn expect_components(lab: &Lab, version: &str, emulated: Option<&str>) -> Result<()> {
    let pods = lab.get_objects(&["pods", "--namespace=kube-system"])?;
    let pods = pods["items"].as_array().context("pods")?;
    let tag = format!(":v{version}");
    let mut found = 0;
    for pod in pods {
        let app = pod["metadata"]["labels"]["k8s-app"].as_str();
        if !app.is_some_and(|app| COMPONENTS.contains(&app)) {
            continue;
        }
        let containers = pod["spec"]["containers"].to_string();
        let flag = emulated.map(|minor| format!("--emulated-version={minor}"));
        let is_right = match flag {
            Some(flag) => containers.contains(&flag),
            None => !containers.contains("--emulated-version"),
        };
        ensure!(is_right && containers.contains(&tag), "{containers}");
        found += 1;
    }
    let wanted = COMPONENTS.len() * UPGRADE.control_planes;
    ensure!(found == wanted, "{found} pods of {wanted}");
    Ok(())
}

fn worker_ids(lab: &Lab) -> Result<BTreeSet<String>> {
    let all = cluster::worker_instances(lab)?;
    Ok(all.into_iter().map(|one| one.id).collect())
}
