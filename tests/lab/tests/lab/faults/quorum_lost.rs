//! Two of three control planes are lost with all their volumes: etcd begins anew with the data of the one that is left, and nothing
//! that was acknowledged is lost.

use super::super::cluster::{self, CLUSTER, CONTROL_PLANES};
use super::super::{PATIENCE, etcd};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, unix_time};
use serde_json::json;

const ETCDS: [&str; 2] = ["main", "events"];

/// Member a leads before, so that it has every acknowledged write.
pub fn lose_two(lab: &mut Lab, writers: &Writers) -> Result<()> {
    for name in ETCDS {
        etcd::make_leader(lab, name, 0)?;
    }
    let begun = unix_time()?;
    delete_control_planes(lab, writers)?;
    for etcd in ETCDS {
        let words = ["etcd", "recover", CLUSTER, "--etcd", etcd];
        lab.wait_until("kctl sees that the quorum is lost", PATIENCE, |lab| {
            lab.run_kctl(&[&words[..], &["--from", "a"]].concat())
                .map(drop)
        })?;
        let asked = unix_time()?;
        lab.run_kctl(&[&words[..], &["--from", "a", "--yes"]].concat())?;
        eprintln!(
            "       {etcd} runs again {:.1} s after kctl asked",
            unix_time()? - asked
        );
    }
    let down = unix_time()?;
    let back = lab.wait_until("writes are acknowledged again", PATIENCE, |_| {
        let all = writers.read_attempts()?;
        let mut after = all.iter().filter(|one| one.begun > begun + 1.0);
        let done = after.find(|one| one.is_acknowledged() && one.ended > down - 60.0);
        Ok(done.with_context(|| format!("{:?}", all.last()))?.ended)
    })?;
    eprintln!(
        "       writes are back {:.1} s after the loss",
        back - begun
    );
    bring_back(lab)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_reported(lab)
}

/// The groups of b and c launch no replacements until kctl has made new volumes.
pub fn set_launches(lab: &Lab, operation: &str) -> Result<()> {
    for group in &CONTROL_PLANES[1..] {
        let launch = json!({"AutoScalingGroupName": group, "ScalingProcesses": ["Launch"]});
        lab.call_aws("autoscaling", operation, &launch)?;
    }
    Ok(())
}

fn delete_control_planes(lab: &Lab, writers: &Writers) -> Result<()> {
    set_launches(lab, "SuspendProcesses")?;
    let lost = [
        cluster::control_plane(lab, 1)?.id,
        cluster::control_plane(lab, 2)?.id,
    ];
    let volumes = etcd::list_volumes(lab)?;
    let volumes = volumes
        .iter()
        .filter(|(_, (_, tag))| !tag.starts_with("a/"));
    let volumes: Vec<&String> = volumes.map(|(id, _)| id).collect();
    ensure!(volumes.len() == 4, "{volumes:?}");
    writers.acknowledged_just_before(lab, || {
        let ended = lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": lost}));
        ended.map(drop)
    })?;
    for volume in volumes {
        lab.wait_until("the volume is deleted", PATIENCE, |lab| {
            lab.call_aws("ec2", "DeleteVolume", &json!({"VolumeId": volume}))
                .map(drop)
        })?;
    }
    Ok(())
}

/// New volumes, and the instances that take them.
pub fn bring_back(lab: &Lab) -> Result<()> {
    let begun = unix_time()?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    set_launches(lab, "ResumeProcesses")?;
    etcd::expect_three_voters(lab)?;
    eprintln!(
        "       three members vote {:.1} s after kctl update",
        unix_time()? - begun
    );
    for instance in cluster::control_planes(lab, 3)? {
        cluster::becomes_ready(lab, &instance.id)?;
    }
    Ok(())
}
