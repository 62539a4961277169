//! A control plane that is terminated: the machine that comes for it takes its volumes over.

use super::{CONTROL_PLANES, PATIENCE, cluster, crashes, etcd};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writer, longest_gap};
use serde_json::json;

pub fn terminated(lab: &mut Lab, writer: &Writer) -> Result<()> {
    let volumes = etcd::volumes(lab)?;
    let old = cluster::control_plane(lab, 2)?.id;
    let begun = crashes::now()?;
    lab.aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let new = lab.until("another control plane runs", PATIENCE, |lab| {
        let mut now = lab.group(CONTROL_PLANES[2])?;
        now.retain(|one| one.id != old);
        now.pop().context("the group has launched none")
    })?;
    lab.becomes_ready(&new.id, PATIENCE)?;
    let ended = crashes::now()?;
    lab.until("the old Node is gone", PATIENCE, |lab| {
        let there = lab.objects(&["nodes"])?.to_string();
        ensure!(!there.contains(&old), "there is still a Node {old}");
        Ok(())
    })?;
    cluster::healthy(lab)?;
    let gap = longest_gap(&writer.all()?, begun, crashes::now()?);
    eprintln!(
        "       its replacement is Ready after {:.1} s; the longest gap in writes: {gap:.1} s",
        ended - begun
    );
    let now = etcd::volumes(lab)?;
    ensure!(now == volumes, "there were {volumes:?}, and are {now:?}");
    let own = etcd::folder(&etcd::volume(lab, "c")?);
    lab.sh(
        &new.id,
        &format!("mountpoint {own} && ls {own}/var/etcd/data/member/wal"),
    )
    .map(drop)
}
