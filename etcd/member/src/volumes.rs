//! Finds an etcd volume by its tags, attaches it, and waits until the kernel shows it. EC2 attaches a volume to one instance at a
//! time. Nothing here ever detaches a volume.

use super::EtcdDisk;
use crate::ec2::Ec2;
use anyhow::{Context, bail};
use etcd_rules::{Choice, FormationRecord, SeenVolume, VolumeRequest, choose_volume, device_name};
use host::Host;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A volume that is attached to this instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachedVolume {
    /// Volume id, `vol-...`.
    pub volume: String,
    /// Member of the volume.
    pub member: String,
    /// Device name in the attach request.
    pub requested_device: String,
    /// Device that the kernel shows.
    pub device: PathBuf,
    /// A message about other volumes of the etcd cluster that are attached here, if there are any.
    pub surplus_message: Option<String>,
}

/// Result of looking for the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeSearch {
    /// The volume is attached and its device exists.
    Attached(AttachedVolume),
    /// Not available yet; the text is the reason.
    Waiting(String),
    /// EC2 has accepted to attach this volume.
    Asked(String),
}

/// Looks for the volume, and requests the attachment of a free one. `first` is the index of the first device name to try.
pub(crate) async fn find_or_attach(
    ec2: &impl Ec2,
    host: &Host,
    request: &VolumeRequest<'_>,
    seen: &[SeenVolume],
    record: Option<&FormationRecord>,
    first: usize,
) -> anyhow::Result<VolumeSearch> {
    match choose_volume(request, seen, record) {
        Choice::Wait(why) => Ok(VolumeSearch::Waiting(format!(
            "{why}{}",
            describe_holders(ec2, request, seen).await?
        ))),
        Choice::Stay(why) => bail!(why),
        Choice::Held {
            volume,
            member,
            besides,
        } => to_attached_volume(host, volume, member, &besides),
        Choice::Attach { volume, .. } => {
            // The kernel may show a volume before EC2 does; attaching another would be the second one.
            for one in seen {
                if host.device_of_volume(&one.id)?.is_some() {
                    let why = format!("{} is attached here, but EC2 does not show it yet", one.id);
                    return Ok(VolumeSearch::Waiting(why));
                }
            }
            let used = devices_in_use(ec2, request.instance).await?;
            let device = device_name(&used, first)
                .context("all device names for etcd volumes are in use")?;
            let attached = ec2
                .attach_volume(&volume.id, request.instance, device)
                .await
                .with_context(|| format!("could not attach {} as {device}", volume.id));
            attached?;
            Ok(VolumeSearch::Asked(volume.id.clone()))
        }
    }
}

fn to_attached_volume(
    host: &Host,
    volume: &SeenVolume,
    member: String,
    besides: &[&SeenVolume],
) -> anyhow::Result<VolumeSearch> {
    let device = volume.holder.as_ref().map(|holder| holder.device.clone());
    let requested_device = device.unwrap_or_default();
    let disk = EtcdDisk {
        volume: &volume.id,
        requested_device: &requested_device,
        prefix: "",
    };
    Ok(match disk.find_device(host)? {
        Some(device) => VolumeSearch::Attached(AttachedVolume {
            surplus_message: describe_surplus(volume, besides),
            volume: volume.id.clone(),
            member,
            requested_device,
            device,
        }),
        None => VolumeSearch::Waiting(format!(
            "{} is attached, but the kernel does not show it yet",
            volume.id
        )),
    })
}

fn describe_surplus(runs: &SeenVolume, besides: &[&SeenVolume]) -> Option<String> {
    let others = besides
        .iter()
        .map(|one| format!("{} ({})", one.id, one.tag));
    let others: Vec<String> = others.collect();
    (!others.is_empty()).then(|| {
        format!(
            "this instance runs one member, from {}, but also has {}, which blocks other instances: detach it with \
             `aws ec2 detach-volume`",
            runs.id,
            others.join(" and ")
        )
    })
}

/// Describes state and zone of the other instances that have volumes of this group's members.
async fn describe_holders(
    ec2: &impl Ec2,
    request: &VolumeRequest<'_>,
    seen: &[SeenVolume],
) -> anyhow::Result<String> {
    let wanted = |volume: &&SeenVolume| {
        let member = volume.member();
        request
            .members
            .iter()
            .any(|one| Some(one.as_str()) == member)
    };
    let ids: BTreeSet<&str> = seen
        .iter()
        .filter(wanted)
        .filter_map(|volume| Some(volume.holder.as_ref()?.instance.as_str()))
        .filter(|id| *id != request.instance)
        .collect();
    if ids.is_empty() {
        return Ok(String::new());
    }
    let ids: Vec<&str> = ids.into_iter().collect();
    let instances = ec2.describe_instances(&[("instance-id", &ids)]).await?;
    let holders = instances
        .iter()
        .filter(|one| ids.contains(&one.id.as_str()));
    let descriptions = holders.map(|one| format!("; {} is {} in {}", one.id, one.state, one.zone));
    Ok(descriptions.collect())
}

/// Device names of all volumes of this instance.
async fn devices_in_use(ec2: &impl Ec2, instance: &str) -> anyhow::Result<BTreeSet<String>> {
    let own = ec2
        .describe_volumes(&[("attachment.instance-id", &[instance])])
        .await?;
    let attachments = own.into_iter().filter_map(|volume| volume.attachment);
    Ok(attachments.map(|attachment| attachment.device).collect())
}
