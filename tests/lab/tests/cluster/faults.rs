//! What happens to machines: reboots, crashes, partitions.

use super::{CONTROL_PLANES, WORKERS, only, volumes};
use anyhow::{Result, ensure};
use lab::network::faults::Partition;
use lab::scenario::{LIMIT, Lab, Stage};
use lab::world::InstanceState;
use serde_json::json;

/// How often user data ran, and how often nodeup began.
fn begun(stages: &[Stage]) -> (usize, usize) {
    let count = |words: &str| stages.iter().filter(|stage| stage.words() == words).count();
    (
        count("user-data fetch started"),
        count("nodeup identify started"),
    )
}

/// It boots with what it had, runs no user data again, but nodeup.
fn comes_back(lab: &Lab, id: &str, before: &str, stages: &[Stage]) -> Result<()> {
    lab.booted_again(id, before)?;
    ensure!(lab.sh(id, "cat /root/mark")? == "kept");
    lab.until("nodeup runs again", LIMIT, |lab| {
        let (user_data, nodeup) = begun(&lab.stages(id)?);
        ensure!(nodeup > begun(stages).1, "it began {nodeup} times");
        ensure!(user_data == 1, "user data ran {user_data} times");
        Ok(())
    })
}

pub fn reboot(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[1])?;
    // Stopped, so that a nodeup that begins is the next boot's.
    lab.sh(&host.id, "systemctl stop nodeup; echo kept >/root/mark")?;
    let (before, stages) = (lab.boot(&host.id)?, lab.stages(&host.id)?);
    lab.aws("ec2", "RebootInstances", &json!({"InstanceIds": [host.id]}))?;
    comes_back(lab, &host.id, &before, &stages)?;
    let after = lab.instance(&host.id)?;
    ensure!((after.address, after.state) == (host.address, InstanceState::Running));
    Ok(())
}

pub fn kill(lab: &mut Lab) -> Result<()> {
    let host = only(lab, WORKERS[1])?;
    lab.sh(
        &host.id,
        "systemctl stop nodeup; echo kept >/root/mark; sync",
    )?;
    let (before, stages) = (lab.boot(&host.id)?, lab.stages(&host.id)?);
    lab.kill(&host.id)?;
    ensure!(
        lab.instance(&host.id)?.state == InstanceState::Running,
        "AWS sees a crash"
    );
    lab.start(&host.id)?;
    comes_back(lab, &host.id, &before, &stages)
}

/// AWS sees no crash: it attaches, and the disk is there at the next boot.
pub fn attach_to_killed(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[2])?;
    let volume = volumes::volume(lab, &host)?.id;
    let before = lab.boot(&host.id)?;
    lab.kill(&host.id)?;
    let attach = json!({"VolumeId": volume, "InstanceId": host.id, "Device": "/dev/xvdz"});
    lab.aws("ec2", "AttachVolume", &attach)?;
    volumes::becomes(lab, &volume, "attached")?;
    lab.start(&host.id)?;
    lab.booted_again(&host.id, &before)?;
    lab.sh(
        &host.id,
        &format!("test -b $(readlink -f {})", volumes::link(&volume)),
    )?;
    lab.aws("ec2", "DetachVolume", &json!({"VolumeId": volume}))?;
    volumes::becomes(lab, &volume, "free")
}

pub fn partition(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[2])?;
    let worker = only(lab, WORKERS[0])?;
    lab.listen(&host.id, 443)?;
    check_by_connecting(lab, 443)?;
    lab.target_is(&host.id, 443, "healthy")?;
    lab.partition(&Partition::Host(host.id.clone()))?;
    lab.target_is(&host.id, 443, "unhealthy")?;
    let seen = lab.connect(&worker.id, host.address, 443)?;
    ensure!(seen == lab::scenario::Reached::Silent, "it is {seen:?}");
    // AWS's own services are not cut off.
    lab.metadata(&host.id, "meta-data/instance-id")?;
    lab.heal(&host.id)?;
    lab.target_is(&host.id, 443, "healthy")?;
    lab.sh(&host.id, "systemctl stop listen-443").map(drop)
}

/// Nothing on these hosts says whether an API server is ready, which kctl's target groups ask for: a connection is enough here.
fn check_by_connecting(lab: &Lab, port: u16) -> Result<()> {
    let told = lab.aws("elbv2", "DescribeTargetGroups", &json!({}))?;
    let groups = told["TargetGroups"].as_array().into_iter().flatten();
    for group in groups.filter(|group| group["Port"] == port) {
        let check = json!({
            "TargetGroupArn": group["TargetGroupArn"],
            "HealthCheckProtocol": "TCP",
            "HealthCheckPort": "traffic-port",
        });
        lab.aws("elbv2", "ModifyTargetGroup", &check)?;
    }
    Ok(())
}
