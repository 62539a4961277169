//! The cluster: made, waited for, looked at.

use super::{CLUSTER, CONTROL_PLANES, PATIENCE, WORKERS};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use lab::world::Instance;
use serde_json::Value;
use std::time::Instant;

/// How much etcd may hold, bytes: so little that a test can reach it, so much that nothing else does.
const QUOTA: &str = "67108864";

/// Volumes as small as EC2 has them, and that quota.
fn settings() -> Vec<String> {
    let env = "spec.etcdClusters[0].manager.env[0]";
    vec![
        "spec.etcdClusters[*].etcdMembers[*].volumeSize=1".to_owned(),
        format!("{env}.name=ETCD_QUOTA_BACKEND_BYTES"),
        format!("{env}.value={QUOTA}"),
    ]
}

pub fn make(lab: &Lab, dns: &str) -> Result<()> {
    lab.store()?;
    let dns = format!("--dns={dns}");
    let mut words = vec![
        "--zones=us-east-1a",
        "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c",
        "--node-count=2",
        "--networking=flannel",
        &dns,
    ];
    let settings = settings();
    words.extend(settings.iter().flat_map(|set| ["--set", set]));
    lab.create(CLUSTER, &words)?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    lab.kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])
        .map(drop)
}

/// The only machine of a control plane's group.
pub fn control_plane(lab: &Lab, group: usize) -> Result<Instance> {
    Ok(lab.members(CONTROL_PLANES[group], 1)?.remove(0))
}

pub fn control_planes(lab: &Lab) -> Result<Vec<Instance>> {
    (0..CONTROL_PLANES.len())
        .map(|group| control_plane(lab, group))
        .collect()
}

/// Both workers.
pub fn workers(lab: &Lab) -> Result<Vec<Instance>> {
    lab.members(WORKERS, 2)
}

pub fn ready(lab: &mut Lab) -> Result<()> {
    let begun = Instant::now();
    for machine in [control_planes(lab)?, workers(lab)?].concat() {
        lab.becomes_ready(&machine.id, PATIENCE)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("       five Ready nodes {seconds:.1} s after the end of kctl update");
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
    ensure!(nodes.len() == 5, "{said}");
    Ok(())
}
