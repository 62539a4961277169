//! etcd's volumes, attached by control planes as protokube does: by AWS's API, with their role.

use super::{CONTROL_PLANES, WORKERS, only};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab};
use lab::world::{Instance, Volume};

/// The first volume of a host's zone.
pub fn volume(lab: &Lab, host: &Instance) -> Result<Volume> {
    let mut volumes = lab.world()?.volumes.into_iter();
    let found = volumes.find(|volume| volume.zone == host.zone);
    found.with_context(|| format!("no volume in {}", host.zone))
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
        ("Device", "/dev/xvdu"),
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
    let detached = lab.aws(
        "ec2",
        "DetachVolume",
        &serde_json::json!({"VolumeId": volume.id}),
    )?;
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
    lab.aws(
        "ec2",
        "DetachVolume",
        &serde_json::json!({"VolumeId": detach[0].1}),
    )?;
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
            ("Device", "/dev/xvdu"),
        ]
    };
    caller.query("ec2", "AttachVolume", &to(&host.id))?.done()?;
    for instance in [&other.id, &host.id] {
        let refused = caller.query("ec2", "AttachVolume", &to(instance))?;
        ensure!(refused.refusal() == (400, "VolumeInUse"), "{refused:?}");
    }
    becomes(lab, &volume, "attached")
}

pub fn other_zone(lab: &mut Lab) -> Result<()> {
    let (host, other) = (only(lab, CONTROL_PLANES[1])?, only(lab, CONTROL_PLANES[2])?);
    let volume = volume(lab, &other)?.id;
    let attach = [
        ("VolumeId", &*volume),
        ("InstanceId", &host.id),
        ("Device", "/dev/xvdu"),
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
