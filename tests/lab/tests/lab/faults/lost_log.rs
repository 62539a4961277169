//! An etcd member loses its log: it never votes again under its old id, kctl names it, and the other members continue.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, etcd};
use anyhow::{Result, ensure};
use lab::scenario::{LIMIT, Lab, Writers};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Time in which protokube or kubelet would wrongly start the member again.
const LOOKS: Duration = Duration::from_secs(20);

/// What protokube says about it.
const GONE: &str = "the log of member b of etcd main is missing";

pub fn remove_log(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let volume = etcd::find_volume(lab, "b")?;
    let data = format!("{}/var/etcd/data", etcd::mount_point(&volume));
    let boot = lab.boot_id(&host)?;
    // Like an operator who tries to repair etcd; the instance reboots before kubelet can start etcd again.
    lab.run_script(
        &host,
        &format!("systemctl stop kubelet; rm -r {data}/member; sync"),
    )?;
    lab.call_aws("ec2", "RebootInstances", &json!({"InstanceIds": [host]}))?;
    lab.booted_again(&host, &boot)?;
    lab.wait_until("protokube names it on the console", PATIENCE, |lab| {
        expect_no_new_log(lab, &host, &data)?;
        let stages = lab.read_stages(&host)?;
        let said = stages.iter().any(|one| one.detail.contains(GONE));
        ensure!(said, "it said {:?}", stages.last());
        Ok(())
    })?;
    lab.wait_until("kctl validate names it", LIMIT, |lab| {
        let said = lab.run_kctl(&["validate", CLUSTER, "-o", "json"]);
        let Err(said) = said else {
            anyhow::bail!("it says that the cluster is healthy");
        };
        let said = format!("{said:#}");
        ensure!(said.contains(&host) && said.contains(GONE), "{said}");
        Ok(())
    })?;
    sleep(LOOKS);
    expect_no_new_log(lab, &host, &data)?;
    writers.goes_on(lab, PATIENCE)?;
    expect_healthy_others(lab)
}

/// There is no new log on the volume.
fn expect_no_new_log(lab: &Lab, host: &str, data: &str) -> Result<()> {
    let said = lab.run_script(host, &format!("ls -A {data}/member 2>/dev/null || true"))?;
    ensure!(said.is_empty(), "etcd began anew: {said}");
    Ok(())
}

/// The other two members are healthy.
fn expect_healthy_others(lab: &Lab) -> Result<()> {
    for group in [0, 2] {
        let host = cluster::control_plane(lab, group)?.id;
        let said = lab.run_script(
            &host,
            "curl -sS --max-time 10 'http://127.0.0.1:3992/health'",
        )?;
        let said: Value = serde_json::from_str(&said)?;
        ensure!(said["health"] == "true", "etcd of {host}: {said}");
    }
    Ok(())
}
