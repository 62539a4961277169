//! A member's manifest. It is on the volume, and kubelet's folder of manifests has a link to it, so that kubelet runs etcd with its
//! own volume or not at all.

use super::disk::read_marker;
use super::disk_worker::run_blocking;
use super::{EtcdDisk, MemberSettings};
use etcd_rules::{FormationRecord, manifest_on_volume, manifest_version};
use host::Host;
use node::components::EtcdStart;
use node::yaml::to_yaml;
use std::path::Path;

/// kubelet reads it as root.
pub(super) const MODE: u32 = 0o400;

/// Removes all links to the manifest on a disk, so that kubelet does not run it.
pub(super) fn withdraw_manifest(
    host: &Host,
    settings: &MemberSettings,
    disk: &EtcdDisk<'_>,
) -> anyhow::Result<()> {
    let link = settings.manifest_link();
    for link in [hidden_link_path(&link), link] {
        if leads_to(host, &link, disk)? {
            host.remove_file(&link)?;
        }
    }
    Ok(())
}

pub(super) fn leads_to(host: &Host, link: &str, disk: &EtcdDisk<'_>) -> anyhow::Result<bool> {
    let to = host.link_target(link)?.and_then(|to| volume_of(&to));
    Ok(to.is_some_and(|volume| volume == disk.volume))
}

/// The volume from which kubelet runs the member: the target of the link, if it is mounted from an existing device.
pub(super) async fn runs_from(
    host: &Host,
    settings: &MemberSettings,
) -> anyhow::Result<Option<String>> {
    let (host, settings) = (host.clone(), settings.clone());
    run_blocking(move || {
        let to = host.link_target(&settings.manifest_link())?;
        let Some(volume) = to.and_then(|to| volume_of(&to)) else {
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
        let runs = disk.is_mounted(&host, &device)?;
        Ok(runs.then_some(volume))
    })
    .await
}

/// The recorded member that kubelet runs on this instance, by its short name. At most one instance runs a member: a volume is attached
/// to one instance at a time, and a detached one has no device. (EBS Multi-Attach, which kctl never asks for, would break this.)
pub async fn running_member(
    host: &Host,
    settings: &MemberSettings,
    record: &FormationRecord,
) -> anyhow::Result<Option<String>> {
    let volume = runs_from(host, settings).await?;
    let mut members = record.members.iter();
    let member = members.find(|(_, member)| Some(&member.volume) == volume.as_ref());
    Ok(member.map(|(name, _)| name.clone()))
}

/// The volume of this etcd cluster that is mounted here, also if its member does not run.
pub(super) async fn mounted_volume(
    host: &Host,
    settings: &MemberSettings,
) -> anyhow::Result<Option<String>> {
    let (host, settings) = (host.clone(), settings.clone());
    run_blocking(move || {
        let own = (&settings.config.cluster, &settings.etcd.name);
        for mount in host.mounts()? {
            let path = mount.path.strip_prefix(host.root()).map(Path::to_owned);
            let Some(volume) = path
                .ok()
                .and_then(|path| volume_of(&Path::new("/").join(path)))
            else {
                continue;
            };
            let marker = read_marker(&host, &format!("/mnt/master-{volume}"))
                .ok()
                .flatten();
            if marker.is_some_and(|marker| (&marker.cluster, &marker.etcd) == own) {
                return Ok(Some(volume));
            }
        }
        Ok(None)
    })
    .await
}

/// Hides the link from kubelet but keeps its target.
pub(super) fn hide_link(host: &Host, link: &str) -> anyhow::Result<()> {
    let Some(to) = host.link_target(link)? else {
        return Ok(());
    };
    host.make_link(&hidden_link_path(link), &to.to_string_lossy())?;
    Ok(host.remove_file(link)?)
}

/// Shows the manifest to kubelet, which watches the folder but not the targets of links.
pub(super) fn show_link(host: &Host, link: &str, manifest: &str) -> anyhow::Result<()> {
    let to = host.link_target(link)?;
    if to.is_none_or(|to| to != Path::new(manifest)) {
        host.make_link(link, manifest)?;
    }
    Ok(host.remove_file(&hidden_link_path(link))?)
}

/// Path of a hidden link, which kubelet ignores.
pub(super) fn hidden_link_path(link: &str) -> String {
    match link.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/.{name}.aside"),
        None => format!(".{link}.aside"),
    }
}

/// Writes the manifest to the volume and the link to kubelet's folder. A running manifest is not changed, so forming the cluster
/// causes no restart.
pub(super) fn put_manifest(
    host: &Host,
    settings: &MemberSettings,
    disk: &EtcdDisk<'_>,
    member: &str,
    start: &EtcdStart,
) -> anyhow::Result<()> {
    let link = settings.manifest_link();
    let manifest = manifest_path_on(disk, &settings.pod_name());
    let leads_there = host
        .link_target(&link)?
        .is_some_and(|to| to == Path::new(&manifest));
    if leads_there && host.read_text(&manifest)?.is_some() {
        return Ok(());
    }
    if !matches!(start, EtcdStart::Existing) {
        disk.make_data_folder(host)?;
    }
    let pod = settings.build_pod(member, start, &disk.data_path())?;
    host.write_changed(&manifest, &to_yaml(&pod)?, MODE)?;
    // One that was there already may be of a release with another mode.
    host.set_mode(&manifest, MODE)?;
    show_link(host, &link, &manifest)
}

/// Version of etcd that the manifest on a disk names: the last that kubelet saw.
pub(super) fn read_version(
    host: &Host,
    settings: &MemberSettings,
    disk: &EtcdDisk<'_>,
) -> anyhow::Result<Option<String>> {
    let manifest = host.read_text(&manifest_path_on(disk, &settings.pod_name()))?;
    Ok(manifest.and_then(|text| manifest_version(&text)))
}

pub(super) fn manifest_path_on(disk: &EtcdDisk<'_>, pod: &str) -> String {
    format!("{}/{}", disk.mount_point(), manifest_on_volume(pod))
}

/// The volume id in a link target `/mnt/master-VOLUME/...`.
pub(super) fn volume_of(link: &Path) -> Option<String> {
    let rest = link.to_str()?.strip_prefix("/mnt/master-")?;
    rest.split('/').next().map(str::to_owned)
}
