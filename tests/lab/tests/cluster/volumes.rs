//! Volumes, attached by control planes as protokube does: by AWS's API, with their role.

use super::{CLUSTER, CONTROL_PLANES, WORKERS, only};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab};
use lab::world::{Instance, Volume};
use serde_json::json;

/// A volume in a host's zone that its role may attach and protokube does not look for; made when first asked for.
pub fn volume(lab: &Lab, host: &Instance) -> Result<Volume> {
    let name = format!("scenario-{}", host.zone);
    let by_name = json!({"Filters": [{"Name": "tag:Name", "Values": [name]}]});
    let found = lab.aws("ec2", "DescribeVolumes", &by_name)?;
    let id = match found["Volumes"][0]["VolumeId"].as_str() {
        Some(id) => id.to_owned(),
        None => make(lab, &name, &host.zone)?,
    };
    let mut volumes = lab.world()?.volumes.into_iter();
    let found = volumes.find(|volume| volume.id == id);
    found.with_context(|| format!("{id} is not in the world"))
}

fn make(lab: &Lab, name: &str, zone: &str) -> Result<String> {
    let tags = [
        ("Name", name),
        ("KubernetesCluster", CLUSTER),
        ("k8s.io/role/master", "1"),
    ];
    let tags = tags.map(|(key, value)| json!({"Key": key, "Value": value}));
    let wanted = json!({
        "AvailabilityZone": zone,
        "Size": 1,
        "TagSpecifications": [{"ResourceType": "volume", "Tags": tags}],
    });
    let made = lab.aws("ec2", "CreateVolume", &wanted)?;
    let id = made["VolumeId"].as_str();
    Ok(id.context("the answer names no volume")?.to_owned())
}

fn state(lab: &Lab, id: &str) -> Result<String> {
    let volumes = lab.world()?.volumes;
    let volume = volumes.into_iter().find(|volume| volume.id == id);
    let attachment = volume.context("the volume is gone")?.attachment;
    Ok(attachment.map_or_else(|| "free".to_owned(), |attachment| attachment.state))
}

pub fn becomes(lab: &Lab, id: &str, wanted: &str) -> Result<()> {
    lab.until(&format!("{id} is {wanted}"), LIMIT, |lab| {
        let state = state(lab, id)?;
        ensure!(state == wanted, "it is {state}");
        Ok(())
    })
}

/// Where the host has it.
pub fn link(id: &str) -> String {
    let serial = id.replace('-', "");
    format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}")
}

pub fn comes_and_goes(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[0])?;
    let volume = volume(lab, &host)?;
    let link = link(&volume.id);
    lab.sh(&host.id, &format!("! test -e {link}"))?;
    let attach = [
        ("VolumeId", &*volume.id),
        ("InstanceId", &host.id),
        ("Device", "/dev/xvdz"),
    ];
    lab.caller(&host.id)?
        .query("ec2", "AttachVolume", &attach)?
        .done()?;
    becomes(lab, &volume.id, "attached")?;
    let bytes = lab.sh(
        &host.id,
        &format!("blockdev --getsize64 $(readlink -f {link})"),
    )?;
    ensure!(
        bytes == (u64::from(volume.size) << 30).to_string(),
        "it has {bytes} bytes"
    );
    lab.sh(
        &host.id,
        &format!(
            "mkfs.ext4 -q {link}; mkdir -p /mnt/v; mount {link} /mnt/v; echo kept >/mnt/v/word"
        ),
    )?;
    // As long as it is mounted, it does not go.
    let detach = [("VolumeId", &*volume.id), ("InstanceId", &host.id)];
    let detached = lab.aws("ec2", "DetachVolume", &json!({"VolumeId": volume.id}))?;
    ensure!(detached["State"] == "detaching", "{detached}");
    ensure!(state(lab, &volume.id)? == "detaching");
    lab.sh(&host.id, "grep -q kept /mnt/v/word; umount /mnt/v")?;
    becomes(lab, &volume.id, "free")?;
    lab.sh(&host.id, &format!("! test -e {link}"))?;
    // What was written is on the volume.
    lab.caller(&host.id)?
        .query("ec2", "AttachVolume", &attach)?
        .done()?;
    becomes(lab, &volume.id, "attached")?;
    lab.sh(
        &host.id,
        &format!("mount {link} /mnt/v; grep -q kept /mnt/v/word; umount /mnt/v"),
    )?;
    lab.aws("ec2", "DetachVolume", &json!({"VolumeId": detach[0].1}))?;
    becomes(lab, &volume.id, "free")
}

pub fn second_attach(lab: &mut Lab) -> Result<()> {
    let (host, other) = (only(lab, CONTROL_PLANES[0])?, only(lab, WORKERS[0])?);
    ensure!(host.zone == other.zone);
    let volume = volume(lab, &host)?.id;
    let caller = lab.caller(&host.id)?;
    let to = |instance| {
        [
            ("VolumeId", volume.as_str()),
            ("InstanceId", instance),
            ("Device", "/dev/xvdz"),
        ]
    };
    caller.query("ec2", "AttachVolume", &to(&host.id))?.done()?;
    for instance in [&other.id, &host.id] {
        let refused = caller.query("ec2", "AttachVolume", &to(instance))?;
        ensure!(refused.refusal() == (400, "VolumeInUse"), "{refused:?}");
    }
    becomes(lab, &volume, "attached")
}

/// It is as large as AWS says, while it is attached.
pub fn grows(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[0])?;
    let volume = volume(lab, &host)?.id;
    lab.aws(
        "ec2",
        "ModifyVolume",
        &json!({"VolumeId": volume, "Size": 2}),
    )?;
    let size = format!("blockdev --getsize64 $(readlink -f {})", link(&volume));
    lab.until("the host sees the larger volume", LIMIT, |lab| {
        let bytes = lab.sh(&host.id, &size)?;
        ensure!(bytes == (2_u64 << 30).to_string(), "it has {bytes} bytes");
        Ok(())
    })
}

/// As a power failure does. The volume has a file system from a step before, and is attached.
pub fn crash_loses_what_was_not_flushed(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[0])?.id;
    let volume = volume(lab, &only(lab, CONTROL_PLANES[0])?)?.id;
    let (mount, boot) = (format!("mount {} /mnt/v", link(&volume)), lab.boot(&host)?);
    let write =
        "cd /mnt/v; echo is there >flushed; sync flushed; echo is gone >unflushed; cat *flushed";
    let written = lab.sh(&host, &format!("{mount}; {write}"))?;
    ensure!(written == "is there\nis gone", "{written}");
    lab.kill(&host)?;
    lab.start(&host)?;
    lab.booted_again(&host, &boot)?;
    // Its name may be there, without what was written.
    let left = format!("{mount}; cd /mnt/v; cat flushed; cat unflushed 2>/dev/null || true");
    let left = lab.sh(&host, &left)?;
    ensure!(left == "is there", "after the crash there is {left:?}");
    lab.sh(&host, "umount /mnt/v").map(drop)
}

pub fn other_zone(lab: &mut Lab) -> Result<()> {
    let (host, other) = (only(lab, CONTROL_PLANES[1])?, only(lab, CONTROL_PLANES[2])?);
    let volume = volume(lab, &other)?.id;
    let attach = [
        ("VolumeId", &*volume),
        ("InstanceId", &host.id),
        ("Device", "/dev/xvdz"),
    ];
    let refused = lab
        .caller(&host.id)?
        .query("ec2", "AttachVolume", &attach)?;
    ensure!(
        refused.refusal() == (400, "InvalidVolume.ZoneMismatch"),
        "{refused:?}"
    );
    ensure!(state(lab, &volume)? == "free");
    Ok(())
}
