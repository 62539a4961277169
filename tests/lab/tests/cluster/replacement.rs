//! Machines change only by replacement.

use super::launch::{in_host, template};
use super::{CLUSTER, WORKERS, only};
use anyhow::{Result, ensure};
use lab::host;
use lab::network::netns;
use lab::scenario::{LIMIT, Lab};
use lab::world::{Instance, InstanceState};
use serde_json::{Value, json};

pub fn terminated(lab: &mut Lab) -> Result<()> {
    let group = WORKERS[1];
    let (old, before) = (only(lab, group)?, template(lab, group)?);
    lab.kctl(&[
        "edit",
        "ig",
        "nodes-us-east-1b",
        "--name",
        CLUSTER,
        "--set",
        "spec.kubelet.maxPods=42",
    ])?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    let after = template(lab, group)?;
    ensure!(
        after != before,
        "the launch template has the same user data"
    );
    ensure!(
        only(lab, group)?.id == old.id,
        "an update replaced a machine"
    );
    ensure!(
        in_host(lab, &old.id)? == before,
        "a running machine was changed"
    );
    lab.aws(
        "ec2",
        "TerminateInstances",
        &json!({"InstanceIds": [old.id]}),
    )?;
    gone(lab, &old)?;
    let new = lab.until("another instance runs", LIMIT, |lab| {
        let new = only(lab, group)?;
        ensure!(new.id != old.id, "it is the old one");
        Ok(new)
    })?;
    lab.stage(&new.id, "nodeup identify finished")?;
    ensure!(
        in_host(lab, &new.id)? == after,
        "the new machine has another user data"
    );
    Ok(())
}

/// The instance has ended, and nothing of its host is there.
fn gone(lab: &Lab, instance: &Instance) -> Result<()> {
    lab.reaches(&instance.id, InstanceState::Terminated)?;
    let hosts = host::hosts(lab.place())?;
    ensure!(
        hosts.iter().all(|host| host.spec.instance != instance.id),
        "its host is there"
    );
    ensure!(
        !netns::exists(&lab.place().host_netns(&instance.id)),
        "its namespace is there"
    );
    Ok(())
}

fn lifecycle(lab: &Lab, id: &str) -> Result<String> {
    let told = lab.aws(
        "autoscaling",
        "DescribeAutoScalingInstances",
        &json!({"InstanceIds": [id]}),
    )?;
    let state = told["AutoScalingInstances"][0]["LifecycleState"].as_str();
    Ok(state.unwrap_or("none").to_owned())
}

/// The group's own hook: on the way out the machine runs until it is completed.
pub fn hook(lab: &mut Lab) -> Result<()> {
    let group = WORKERS[0];
    let host = only(lab, group)?;
    let name = json!({"AutoScalingGroupName": group});
    let hooks = lab.aws("autoscaling", "DescribeLifecycleHooks", &name)?;
    let hook = hooks["LifecycleHooks"][0]["LifecycleHookName"].clone();
    ensure!(
        hooks["LifecycleHooks"][0]["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING",
        "{hooks}"
    );
    let with = |more: Value| {
        let mut all = name.clone();
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    lab.aws(
        "autoscaling",
        "UpdateAutoScalingGroup",
        &with(json!({"MinSize": 0, "DesiredCapacity": 0})),
    )?;
    lab.until("it waits for the hook", LIMIT, |lab| {
        let state = lifecycle(lab, &host.id)?;
        ensure!(state == "Terminating:Wait", "it is {state}");
        Ok(())
    })?;
    ensure!(lab.instance(&host.id)?.state == InstanceState::Running);
    lab.sh(&host.id, "systemctl is-active basic.target")?;
    let done = json!({"LifecycleHookName": hook, "InstanceId": host.id, "LifecycleActionResult": "CONTINUE"});
    lab.aws("autoscaling", "CompleteLifecycleAction", &with(done))?;
    gone(lab, &host)?;
    ensure!(lab.group(group)?.is_empty());
    Ok(())
}
