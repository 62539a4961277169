//! How a machine comes to have an etcd cluster's volume: it is found by its tags, attached, and waited for until the kernel shows
//! it. EC2 attaches a volume to one machine at a time; nothing here ever detaches one.

use super::Disk;
use crate::ec2::Ec2;
use anyhow::{Context, bail};
use host::Host;
use node::etcd::{Choice, Place, Record, SeenVolume, choose, device_name};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A volume that this machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// `vol-...`.
    pub volume: String,
    /// The member whose it is.
    pub member: String,
    /// The device that was asked for.
    pub asked: String,
    /// The device that the kernel shows.
    pub device: PathBuf,
    /// Other volumes of the etcd cluster that this machine has: what to do about them.
    pub besides: Option<String>,
}

/// One look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Held(Held),
    /// Not yet: why.
    Waiting(String),
    /// EC2 has begun to attach it.
    Asked(String),
}

/// Looks for the volume, and begins to attach one that is free. `first`: where among names of devices to begin.
pub async fn find(
    ec2: &impl Ec2,
    host: &Host,
    place: &Place<'_>,
    seen: &[SeenVolume],
    record: Option<&Record>,
    first: usize,
) -> anyhow::Result<Found> {
    match choose(place, seen, record) {
        Choice::Wait(why) => Ok(Found::Waiting(format!(
            "{why}{}",
            holders(ec2, place, seen).await?
        ))),
        Choice::Stay(why) => bail!(why),
        Choice::Held {
            volume,
            member,
            besides,
        } => held(host, volume, member, &besides),
        Choice::Attach { volume, .. } => {
            // The kernel may know more than EC2 says: what is asked for next would be a second one.
            for one in seen {
                if host.device_of_volume(&one.id)?.is_some() {
                    let why = format!("{} is here, and EC2 does not show it so", one.id);
                    return Ok(Found::Waiting(why));
                }
            }
            let used = devices(ec2, place.instance).await?;
            let device = device_name(&used, first)
                .context("all names of devices for etcd's volumes are in use")?;
            let attached = ec2
                .attach_volume(&volume.id, place.instance, device)
                .await
                .with_context(|| format!("could not attach {} as {device}", volume.id));
            attached?;
            Ok(Found::Asked(volume.id.clone()))
        }
    }
}

fn held(
    host: &Host,
    volume: &SeenVolume,
    member: String,
    besides: &[&SeenVolume],
) -> anyhow::Result<Found> {
    let asked = volume.holder.as_ref().map(|holder| holder.device.clone());
    let asked = asked.unwrap_or_default();
    let disk = Disk {
        volume: &volume.id,
        asked: &asked,
        prefix: "",
    };
    Ok(match disk.device(host)? {
        Some(device) => Found::Held(Held {
            besides: to_detach(volume, besides),
            volume: volume.id.clone(),
            member,
            asked,
            device,
        }),
        None => Found::Waiting(format!(
            "{} is attached, and the kernel does not show it yet",
            volume.id
        )),
    })
}

fn to_detach(runs: &SeenVolume, besides: &[&SeenVolume]) -> Option<String> {
    let said = besides
        .iter()
        .map(|one| format!("{} ({})", one.id, one.tag));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        format!(
            "this machine runs one member, from {}, and has {} too, which no other machine can take meanwhile: detach it with \
             `aws ec2 detach-volume`",
            runs.id,
            said.join(" and ")
        )
    })
}

/// Of the machines that have volumes of this machine's members: where they are, and whether they run.
async fn holders(ec2: &impl Ec2, place: &Place<'_>, seen: &[SeenVolume]) -> anyhow::Result<String> {
    let wanted = |volume: &&SeenVolume| {
        let member = volume.member();
        place.members.iter().any(|one| Some(one.as_str()) == member)
    };
    let ids: BTreeSet<&str> = seen
        .iter()
        .filter(wanted)
        .filter_map(|volume| Some(volume.holder.as_ref()?.instance.as_str()))
        .filter(|id| *id != place.instance)
        .collect();
    if ids.is_empty() {
        return Ok(String::new());
    }
    let ids: Vec<&str> = ids.into_iter().collect();
    let machines = ec2.instances(&[("instance-id", &ids)]).await?;
    let said = machines.iter().filter(|one| ids.contains(&one.id.as_str()));
    let said = said.map(|one| format!("; {} is {} in {}", one.id, one.state, one.zone));
    Ok(said.collect())
}

/// Names of devices that this machine's volumes have, of whatever kind they are.
async fn devices(ec2: &impl Ec2, instance: &str) -> anyhow::Result<BTreeSet<String>> {
    let own = ec2
        .volumes(&[("attachment.instance-id", &[instance])])
        .await?;
    let attachments = own.into_iter().filter_map(|volume| volume.attachment);
    Ok(attachments.map(|attachment| attachment.device).collect())
}
