//! An etcd member loses its log, or its whole volume: it never votes again under its old id, a new member takes its place, and
//! writes go on meanwhile.

use super::super::cluster::{self, CLUSTER, CONTROL_PLANES};
use super::super::{PATIENCE, etcd};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, describe_gaps, unix_time};
use serde_json::{Value, json};
use std::time::Instant;

/// Like an operator who tries to repair etcd; the instance reboots before kubelet can start etcd again.
pub fn remove_log(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let volume = etcd::find_volume(lab, "b")?;
    let (old, begun) = (find_member_id(lab, "etcd-b")?, unix_time()?);
    let boot = lab.boot_id(&host)?;
    remove_log_of(lab, &host, &volume)?;
    lab.booted_again(&host, &boot)?;
    let since = Instant::now();
    expect_new_member(lab, "etcd-b", &old)?;
    print_times(writers, begun, since)?;
    cluster::expect_healthy(lab)
}

/// Removes the log of a host's member of `main`, and reboots the host.
pub fn remove_log_of(lab: &Lab, host: &str, volume: &str) -> Result<()> {
    let data = format!("{}/var/etcd/data", etcd::mount_point(volume));
    lab.run_script(
        host,
        &format!("systemctl stop kubelet; rm -r {data}/member; sync -f {data}"),
    )?;
    lab.call_aws("ec2", "RebootInstances", &json!({"InstanceIds": [host]}))
        .map(drop)
}

/// The volume is deleted after its instance was terminated; `kctl update` creates another.
pub fn delete_volume(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let instance = cluster::control_plane(lab, 2)?.id;
    let volume = etcd::find_volume(lab, "c")?;
    let (old, begun) = (find_member_id(lab, "etcd-c")?, unix_time()?);
    // The group launches no replacement until the volume is gone, so that none takes it first.
    let suspended =
        json!({"AutoScalingGroupName": CONTROL_PLANES[2], "ScalingProcesses": ["Launch"]});
    lab.call_aws("autoscaling", "SuspendProcesses", &suspended)?;
    lab.call_aws(
        "ec2",
        "TerminateInstances",
        &json!({"InstanceIds": [instance]}),
    )?;
    lab.wait_until("the volume is deleted", PATIENCE, |lab| {
        lab.call_aws("ec2", "DeleteVolume", &json!({"VolumeId": volume}))
            .map(drop)
    })?;
    lab.call_aws("autoscaling", "ResumeProcesses", &suspended)?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let new = lab.wait_until("another control plane runs", PATIENCE, |lab| {
        let mut now = lab.group_instances(CONTROL_PLANES[2])?;
        now.retain(|one| one.id != instance);
        now.pop().context("the group has launched none")
    })?;
    let since = Instant::now();
    expect_new_member(lab, "etcd-c", &old)?;
    print_times(writers, begun, since)?;
    lab.becomes_ready(&new.id, PATIENCE)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_reported(lab)
}

/// Waits until a member with another id votes in the place of this one, and all others are those from before.
fn expect_new_member(lab: &Lab, name: &str, old: &str) -> Result<()> {
    lab.wait_until("a new member votes", PATIENCE, |lab| {
        let members = list_members(lab)?;
        ensure!(members.len() == 3, "{members:?}");
        let own = members.iter().find(|one| one["name"] == name);
        let own = own.with_context(|| format!("no {name} in {members:?}"))?;
        let votes = own["isLearner"] != true;
        ensure!(own["ID"] != old && votes, "{members:?}");
        Ok(())
    })
}

fn find_member_id(lab: &Lab, name: &str) -> Result<String> {
    let members = list_members(lab)?;
    let own = members.iter().find(|one| one["name"] == name);
    let id = own.and_then(|own| own["ID"].as_str());
    id.map(str::to_owned)
        .with_context(|| format!("no {name} in {members:?}"))
}

/// The members of main, as etcd on the first control plane confirms them.
fn list_members(lab: &Lab) -> Result<Vec<Value>> {
    let host = cluster::control_plane(lab, 0)?.id;
    let pki = "/srv/kubernetes/etcd";
    let said = lab.run_script(
        &host,
        &format!(
            "curl -sS --fail --max-time 10 --cacert {pki}/clients-ca.crt --cert {pki}/server.crt --key {pki}/server.key \
             -d '{{}}' https://etcd-a.internal.{CLUSTER}:4001/v3/cluster/member/list"
        ),
    )?;
    let said: Value = serde_json::from_str(&said)?;
    let members = said["members"].as_array();
    Ok(members.context("members")?.clone())
}

fn print_times(writers: &Writers, begun: f64, since: Instant) -> Result<()> {
    let gaps = describe_gaps(&writers.read_attempts()?, begun, unix_time()?);
    eprintln!(
        "       the new member votes {:.1} s after its instance was there; {gaps}",
        since.elapsed().as_secs_f64()
    );
    Ok(())
}
