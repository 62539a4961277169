//! A member whose log is gone: it never votes again under the id it had, is named, and the others go on.

use super::{CLUSTER, PATIENCE, cluster, etcd};
use anyhow::{Result, ensure};
use lab::scenario::{LIMIT, Lab, Writer};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Looks of protokube and kubelet in which a second life would begin.
const LOOKS: Duration = Duration::from_secs(20);

/// How protokube names it.
const GONE: &str = "the log of member b of etcd main is gone";

pub fn removed(lab: &mut Lab, writer: &Writer) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let volume = etcd::volume(lab, "b")?;
    let data = format!("{}/var/etcd/data", etcd::folder(&volume));
    let boot = lab.boot(&host)?;
    // As who "repairs" etcd does it; the machine goes down before kubelet could begin anew.
    lab.sh(
        &host,
        &format!("systemctl stop kubelet; rm -r {data}/member; sync"),
    )?;
    lab.aws("ec2", "RebootInstances", &json!({"InstanceIds": [host]}))?;
    lab.booted_again(&host, &boot)?;
    lab.until("protokube names it on the console", PATIENCE, |lab| {
        nothing_began(lab, &host, &data)?;
        let stages = lab.stages(&host)?;
        let said = stages.iter().any(|one| one.detail.contains(GONE));
        ensure!(said, "it said {:?}", stages.last());
        Ok(())
    })?;
    lab.until("kctl validate names it", LIMIT, |lab| {
        let said = lab.kctl(&["validate", CLUSTER, "-o", "json"]);
        let Err(said) = said else {
            anyhow::bail!("it says that the cluster is healthy");
        };
        let said = format!("{said:#}");
        ensure!(said.contains(&host) && said.contains(GONE), "{said}");
        Ok(())
    })?;
    sleep(LOOKS);
    nothing_began(lab, &host, &data)?;
    writer.goes_on(lab, PATIENCE)?;
    members(lab)
}

/// No log was begun on the volume.
fn nothing_began(lab: &Lab, host: &str, data: &str) -> Result<()> {
    let said = lab.sh(host, &format!("ls -A {data}/member 2>/dev/null || true"))?;
    ensure!(said.is_empty(), "etcd began anew: {said}");
    Ok(())
}

/// The other two have a leader.
fn members(lab: &Lab) -> Result<()> {
    for group in [0, 2] {
        let host = cluster::control_plane(lab, group)?.id;
        let said = lab.sh(
            &host,
            "curl -sS --max-time 10 'http://127.0.0.1:3992/health'",
        )?;
        let said: Value = serde_json::from_str(&said)?;
        ensure!(said["health"] == "true", "etcd of {host}: {said}");
    }
    Ok(())
}
