//! Looks at a member's volume, and resumes the member from it after a reboot.

use super::disk_worker::run_blocking;
use super::manifest::{
    MODE, hidden_link_path, hide_link, leads_to, manifest_path_on, show_link, volume_of,
    withdraw_manifest,
};
use super::{EtcdDisk, MemberSettings};
use anyhow::{Error, bail};
use etcd_rules::{
    FileSystemContent, VolumeContent, as_existing, can_resume, has_founded, may_reopen,
    must_stay_stopped,
};
use host::{Host, is_outgrown};
use std::path::Path;

/// Result of inspecting a disk.
pub(super) struct InspectedDisk {
    /// Content of the disk.
    pub content: VolumeContent,
    /// An error that does not keep the member from running.
    pub warning: Option<String>,
}

/// Resumes the member after a reboot from the volume in the link, without AWS, so that an instance comes back while AWS is down. A
/// member that founded its cluster becomes a member of an existing one. If the data on the volume is not the member's own any more,
/// it is hidden from kubelet and an error is returned. Returns an error text that does not keep the member from running, if any.
pub(super) async fn resume_member(
    host: &Host,
    settings: &MemberSettings,
) -> anyhow::Result<Option<String>> {
    let (host, settings) = (host.clone(), settings.clone());
    run_blocking(move || {
        let link = settings.manifest_link();
        let target = match host.link_target(&link)? {
            None => host.link_target(&hidden_link_path(&link))?,
            target => target,
        };
        let Some((to, volume)) = target.and_then(|to| Some((to.clone(), volume_of(&to)?))) else {
            return Ok(None);
        };
        let disk = EtcdDisk {
            volume: &volume,
            requested_device: "",
            prefix: &settings.member_names().prefix,
        };
        let Some(device) = disk.find_device(&host)? else {
            return Ok(None);
        };
        let (cluster, etcd) = (&settings.config.cluster, &settings.etcd.name);
        if !disk.is_mounted(&host, &device)? {
            hide_link(&host, &link)?;
            let first = disk.look_first(&host, &device)?;
            let is_by_id = host.device_of_volume(&volume)?.is_some();
            if !may_reopen(cluster, etcd, &volume, &first, is_by_id) {
                can_resume(cluster, etcd, &volume, &first.content).map_err(Error::msg)?;
                bail!("{volume} is not the one that this instance ran from");
            }
        }
        let seen = mount_and_look(&host, &settings, &disk, &device)?;
        if must_stay_stopped("", None, &seen.content) {
            withdraw_manifest(&host, &settings, &disk)?;
            return Ok(seen.warning);
        }
        match can_resume(cluster, etcd, &volume, &seen.content) {
            Ok(true) => show_link(&host, &link, &to.to_string_lossy())?,
            Ok(false) => {}
            Err(why) => {
                hide_link(&host, &link)?;
                // The device name may lead to another disk than before the reboot.
                disk.unmount_disk(&host)?;
                bail!(why);
            }
        }
        Ok(seen.warning)
    })
    .await
}

/// Mounts and inspects a disk, and grows its file system before anything is written, because it may be full. kubelet must not see
/// the manifest until [`show_link`]: on a lone control plane kubelet never restarts a changed etcd pod, because it waits for the
/// API server before it ends the old one. While the link is hidden, the manifest of a member that has founded its cluster is
/// rewritten to an existing cluster, so that it never founds a second one, whatever is decided next.
pub(super) fn mount_and_look(
    host: &Host,
    settings: &MemberSettings,
    disk: &EtcdDisk<'_>,
    device: &Path,
) -> anyhow::Result<InspectedDisk> {
    let link = settings.manifest_link();
    let was_mounted = disk.is_mounted(host, device)?;
    // A link to another volume belongs to a member that runs from there.
    if !was_mounted && leads_to(host, &link, disk)? {
        hide_link(host, &link)?;
    }
    let content = disk.inspect(host, device)?;
    let VolumeContent::FileSystem(FileSystemContent::Marked { .. }) = &content else {
        return Ok(InspectedDisk {
            content,
            warning: None,
        });
    };
    let (content, trouble) = match grow_if_outgrown(host, disk, device, was_mounted) {
        Ok(false) => (content, None),
        Ok(true) => (disk.inspect(host, device)?, None),
        Err(error) => (disk.inspect(host, device)?, Some(format!("{error:#}"))),
    };
    let manifest = manifest_path_on(disk, &settings.pod_name());
    if host.link_target(&link)?.is_none()
        && has_founded(&content)
        && let Some(said) = host.read_text(&manifest)?
    {
        host.write_changed(&manifest, &as_existing(&said)?, MODE)?;
    }
    Ok(InspectedDisk {
        content,
        warning: trouble,
    })
}

/// Grows the file system if the volume is larger. An unused file system is unmounted first, so that it is not grown online. False
/// if there is nothing to do.
fn grow_if_outgrown(
    host: &Host,
    disk: &EtcdDisk<'_>,
    device: &Path,
    in_use: bool,
) -> anyhow::Result<bool> {
    if !is_outgrown(device)? {
        return Ok(false);
    }
    if !in_use {
        disk.unmount_disk(host)?;
    }
    disk.grow_file_system(host, device)?;
    Ok(true)
}
