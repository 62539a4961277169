//! Create a cluster of one or three control planes and two workers, find its instances, and wait for it.

use super::{PATIENCE, reports};
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::content::Versions;
use lab::scenario::Lab;
use serde_json::Value;
use std::time::Instant;

pub const CLUSTER: &str = "demo.example.com";

/// Auto Scaling groups of the control planes, with one instance each. A cluster with one control plane has only the first.
pub const CONTROL_PLANES: [&str; 3] = [
    "control-plane-us-east-1a.masters.demo.example.com",
    "control-plane-us-east-1b.masters.demo.example.com",
    "control-plane-us-east-1c.masters.demo.example.com",
];

/// Auto Scaling group of the two workers.
pub const WORKERS: &str = "nodes-us-east-1a.demo.example.com";

/// The network plugin of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Flannel,
    /// Without kube-proxy.
    Cilium,
}

impl Network {
    /// The argument of `kctl create cluster`.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Flannel => "--networking=flannel",
            Self::Cilium => "--networking=cilium",
        }
    }

    /// The content that its instances download.
    pub fn content(self) -> Versions {
        match self {
            Self::Flannel => Versions::Newest,
            Self::Cilium => Versions::WithCilium,
        }
    }
}

/// Runs `kctl create cluster` with more arguments, `kctl update --yes` and `kctl export kubeconfig`, in a new state store.
pub fn create_cluster(lab: &Lab, words: &[&str]) -> Result<()> {
    create_cluster_of(lab, "2", words)
}

/// The same with another number of workers.
pub fn create_cluster_of(lab: &Lab, workers: &str, words: &[&str]) -> Result<()> {
    create_spec_of(lab, workers, words)?;
    make_cluster(lab)
}

/// Runs `kctl update --yes` and `kctl export kubeconfig`.
pub fn make_cluster(lab: &Lab) -> Result<()> {
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    lab.run_kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])
        .map(drop)
}

/// Creates a state store, and in it the spec.
pub fn create_spec(lab: &Lab, words: &[&str]) -> Result<()> {
    create_spec_of(lab, "2", words)
}

fn create_spec_of(lab: &Lab, workers: &str, words: &[&str]) -> Result<()> {
    lab.create_store()?;
    let size = ["--zones=us-east-1a", "--node-count", workers];
    lab.create_cluster(CLUSTER, &[&size, words].concat())
        .map(drop)
}

/// The instance of one of [`CONTROL_PLANES`].
pub fn control_plane(lab: &Lab, group: usize) -> Result<Instance> {
    Ok(lab.wait_for_members(CONTROL_PLANES[group], 1)?.remove(0))
}

/// All control planes of a cluster with `count` of them.
pub fn control_planes(lab: &Lab, count: usize) -> Result<Vec<Instance>> {
    (0..count).map(|group| control_plane(lab, group)).collect()
}

/// Returns the cluster's two workers.
pub fn worker_instances(lab: &Lab) -> Result<Vec<Instance>> {
    lab.wait_for_members(WORKERS, 2)
}

/// Waits until an instance is a Ready node.
pub fn becomes_ready(lab: &Lab, id: &str) -> Result<()> {
    lab.becomes_ready(id, PATIENCE)
}

/// Waits until all instances of a cluster with `count` control planes are Ready nodes.
pub fn expect_ready(lab: &Lab, count: usize) -> Result<()> {
    let begun = Instant::now();
    let all = [control_planes(lab, count)?, worker_instances(lab)?].concat();
    for instance in &all {
        becomes_ready(lab, &instance.id)?;
    }
    let (nodes, seconds) = (all.len(), begun.elapsed().as_secs_f64());
    eprintln!("       {nodes} Ready nodes {seconds:.1} s after the end of kctl update");
    for instance in &all {
        let report = reports::wait_for_report(lab, &instance.id)?;
        eprintln!("       {}", reports::format_figures(&report));
    }
    Ok(())
}

/// Waits until the unit that pulls images in advance has ended on every instance of such a cluster, and nothing failed.
pub fn expect_images(lab: &Lab, count: usize) -> Result<()> {
    const SHOW: &str =
        "systemctl show --property=SubState --property=ExecMainStatus kctl-images.service";
    for instance in [control_planes(lab, count)?, worker_instances(lab)?].concat() {
        lab.wait_until("images were pulled in advance", PATIENCE, |lab| {
            let said = lab.run_script(&instance.id, SHOW)?;
            let ended = ["SubState=exited", "ExecMainStatus=0"];
            let is_said = |wanted: &&str| said.lines().any(|line| line == *wanted);
            ensure!(ended.iter().all(is_said), "{said}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Waits until `kctl validate` reports a healthy cluster with all its instances, and the Nodes of ended ones are gone.
pub fn expect_healthy(lab: &mut Lab) -> Result<()> {
    expect_healthy_with(lab, &[])
}

/// The same of a cluster with more Auto Scaling groups.
pub fn expect_healthy_with(lab: &mut Lab, groups: &[&str]) -> Result<()> {
    lab.wait_until("the cluster is healthy", PATIENCE, |lab| {
        let wait = ["--wait=15m", "--interval=2s", "-o", "json"];
        let said = lab.run_kctl(&[&["validate", CLUSTER], &wait[..]].concat())?;
        let said: Value = serde_json::from_str(&said)?;
        ensure!(said["healthy"] == true, "{said}");
        let mut instances = worker_instances(lab)?.len();
        for group in CONTROL_PLANES.iter().chain(groups) {
            instances += lab.group_instances(group)?.len();
        }
        let nodes = said["nodes"].as_array().context("nodes")?;
        ensure!(
            nodes.len() == instances,
            "expected {instances} nodes: {said}"
        );
        Ok(())
    })
}
