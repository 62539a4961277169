//! Instances are terminated, by EC2 or by Auto Scaling: replacements join, and a control plane's takes over its volumes.

use super::super::cluster::{self, CONTROL_PLANES};
use super::super::{PATIENCE, etcd, pods};
use anyhow::{Context, Result, ensure};
use lab::aws_state::{Instance, InstanceState};
use lab::scenario::{Lab, Writers, describe_gaps, unix_time};
use serde_json::json;
use std::time::Instant;

/// EC2 terminates a control plane.
pub fn terminate_one(lab: &mut Lab, writers: &Writers) -> Result<()> {
    replace_control_plane(lab, writers, |lab, id| {
        lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [id]}))
            .map(drop)
    })
}

/// EC2 terminates every control plane, one after the other.
pub fn terminate_each(lab: &mut Lab, writers: &Writers) -> Result<()> {
    for group in 0..CONTROL_PLANES.len() {
        terminate_and_serve(lab, writers, group, cluster::expect_healthy)?;
    }
    Ok(())
}

/// EC2 terminates a control plane. The members of its replacement serve again, `is_well` passes, and no container of etcd on another
/// instance restarts because a name has another address. Returns the replacement.
pub fn terminate_and_serve(
    lab: &mut Lab,
    writers: &Writers,
    group: usize,
    is_well: impl FnOnce(&mut Lab) -> Result<()>,
) -> Result<Instance> {
    let begun = unix_time()?;
    let before = etcd::list_containers(lab)?;
    let old = cluster::control_plane(lab, group)?.id;
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let new = wait_for_replacement(lab, group, &old)?;
    let launched = unix_time()?;
    etcd::expect_serving(lab, &new.id)?;
    let served = unix_time()?;
    lab.becomes_ready(&new.id, PATIENCE)?;
    is_well(lab)?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, unix_time()?);
    eprintln!(
        "       its members serve again {:.1} s after the launch of the replacement; {gaps}",
        served - launched
    );
    let now = etcd::list_containers(lab)?;
    for (pod, container) in before {
        let same = now.get(&pod) == Some(&container);
        ensure!(same || pod.ends_with(&old), "{pod} was restarted: {now:?}");
    }
    Ok(new)
}

/// Auto Scaling ends a worker and a control plane. Both are drained, and Auto Scaling does not wait out its hooks (300 s).
pub fn end_by_groups(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(0).id;
    end_by_group(lab, &worker)?;
    replace_control_plane(lab, writers, end_by_group)?;
    lab.wait_for_instance_state(&worker, InstanceState::Terminated)?;
    for instance in cluster::worker_instances(lab)? {
        lab.becomes_ready(&instance.id, PATIENCE)?;
    }
    pods::run_pods_again(lab)
}

fn end_by_group(lab: &Lab, id: &str) -> Result<()> {
    let begun = Instant::now();
    let instance = json!({"InstanceId": id, "ShouldDecrementDesiredCapacity": false});
    lab.call_aws(
        "autoscaling",
        "TerminateInstanceInAutoScalingGroup",
        &instance,
    )?;
    lab.wait_until("the drain and the end of the instance", PATIENCE, |lab| {
        let state = lab.find_instance(id)?.state;
        ensure!(state != InstanceState::Running, "{id} is {state:?}");
        Ok(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("       Auto Scaling ended {id} {seconds:.1} s after it was asked to");
    ensure!(seconds < 290.0, "{id} waited out its hook");
    Ok(())
}

/// The instance that a group has launched in the place of one that ended.
pub fn wait_for_replacement(lab: &Lab, group: usize, old: &str) -> Result<Instance> {
    lab.wait_until("another control plane runs", PATIENCE, |lab| {
        let mut now = lab.group_instances(CONTROL_PLANES[group])?;
        now.retain(|one| one.id != old);
        now.pop().context("the group has launched none")
    })
}

fn replace_control_plane(
    lab: &mut Lab,
    writers: &Writers,
    end: impl Fn(&Lab, &str) -> Result<()>,
) -> Result<()> {
    let volumes = etcd::list_volumes(lab)?;
    let old = cluster::control_plane(lab, 2)?.id;
    let begun = unix_time()?;
    end(lab, &old)?;
    let new = wait_for_replacement(lab, 2, &old)?;
    lab.becomes_ready(&new.id, PATIENCE)?;
    let ended = unix_time()?;
    lab.wait_until("the old Node is gone", PATIENCE, |lab| {
        let there = lab.get_objects(&["nodes"])?.to_string();
        ensure!(!there.contains(&old), "there is still a Node {old}");
        Ok(())
    })?;
    cluster::expect_healthy(lab)?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, unix_time()?);
    eprintln!(
        "       its replacement is Ready after {:.1} s; {gaps}",
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
