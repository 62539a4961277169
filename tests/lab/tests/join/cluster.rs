//! The cluster: made, waited for, looked at.

use super::{CLUSTER, CONTROL_PLANE, PATIENCE, WORKERS, reports};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use lab::world::Instance;
use serde_json::Value;
use std::time::Instant;

/// By `kctl create cluster` with those words too, and `kctl update`.
pub fn make(lab: &Lab, words: &[&str]) -> Result<()> {
    create(lab, words)?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    lab.kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])
        .map(drop)
}

/// Its spec, in a new store.
pub fn create(lab: &Lab, words: &[&str]) -> Result<()> {
    lab.store()?;
    let size = [
        "--zones=us-east-1a",
        "--control-plane-count=1",
        "--node-count=2",
    ];
    lab.create(CLUSTER, &[&size, words].concat()).map(drop)
}

/// The control plane.
pub fn control_plane(lab: &Lab) -> Result<Instance> {
    Ok(lab.members(CONTROL_PLANE, 1)?.remove(0))
}

/// Both workers.
pub fn workers(lab: &Lab) -> Result<Vec<Instance>> {
    lab.members(WORKERS, 2)
}

/// Waits until a machine is a Ready node.
pub fn becomes_ready(lab: &Lab, id: &str) -> Result<()> {
    lab.becomes_ready(id, PATIENCE)
}

pub fn ready(lab: &mut Lab) -> Result<()> {
    let begun = Instant::now();
    let mut all = workers(lab)?;
    all.insert(0, control_plane(lab)?);
    for machine in &all {
        becomes_ready(lab, &machine.id)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("       three Ready nodes {seconds:.1} s after the end of kctl update");
    for machine in &all {
        let report = reports::told(lab, &machine.id)?;
        eprintln!("       {}", reports::figures(&report));
    }
    Ok(())
}

pub fn healthy(lab: &mut Lab) -> Result<()> {
    let said = lab.kctl(&[
        "validate",
        CLUSTER,
        "--wait=15m",
        "--interval=2s",
        "-o",
        "json",
    ])?;
    let said: Value = serde_json::from_str(&said)?;
    ensure!(said["healthy"] == true, "{said}");
    let nodes = said["nodes"].as_array().context("nodes")?;
    ensure!(nodes.len() == 3, "{said}");
    Ok(())
}
