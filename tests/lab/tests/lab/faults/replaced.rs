//! A control plane is terminated: its replacement takes over its volumes.

use super::super::cluster::{self, CONTROL_PLANES};
use super::super::{PATIENCE, etcd};
use super::crashes;
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writer, longest_gap};
use serde_json::json;

pub fn terminate_one(lab: &mut Lab, writer: &Writer) -> Result<()> {
    let volumes = etcd::list_volumes(lab)?;
    let old = cluster::control_plane(lab, 2)?.id;
    let begun = crashes::unix_time()?;
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let new = lab.wait_until("another control plane runs", PATIENCE, |lab| {
        let mut now = lab.group_instances(CONTROL_PLANES[2])?;
        now.retain(|one| one.id != old);
        now.pop().context("the group has launched none")
    })?;
    lab.becomes_ready(&new.id, PATIENCE)?;
    let ended = crashes::unix_time()?;
    lab.wait_until("the old Node is gone", PATIENCE, |lab| {
        let there = lab.get_objects(&["nodes"])?.to_string();
        ensure!(!there.contains(&old), "there is still a Node {old}");
        Ok(())
    })?;
    cluster::expect_healthy(lab)?;
    let gap = longest_gap(&writer.read_attempts()?, begun, crashes::unix_time()?);
    eprintln!(
        "       its replacement is Ready after {:.1} s; the longest gap in writes: {gap:.1} s",
        ended - begun
    );
    let now = etcd::list_volumes(lab)?;
    ensure!(now == volumes, "there were {volumes:?}, and are {now:?}");
    let own = etcd::mount_point(&etcd::find_volume(lab, "c")?);
    lab.run_script(
        &new.id,
        &format!("mountpoint {own} && ls {own}/var/etcd/data/member/wal"),
    )
    .map(drop)
}
