//! A member's manifest: it lies on the volume, and kubelet's folder of manifests has a link to it, so that kubelet runs etcd on
//! its own volume or not at all.

use super::work::blocking;
use super::{Disk, Settings};
use anyhow::bail;
use host::{Host, is_outgrown};
use node::components::EtcdStart;
use node::etcd::{Content, Inside, as_existing, has_founded, manifest_on_volume, resumes};
use node::yaml::to_yaml;
use std::path::Path;

/// Manifests hold no secrets, and nobody edits them.
const MODE: u32 = 0o440;

/// A look at a disk.
pub(super) struct Seen {
    /// What it holds.
    pub content: Content,
    /// What else went wrong: the member may run all the same.
    pub trouble: Option<String>,
}

/// After a reboot the link says which volume was here: it is mounted without asking anybody, so that a machine comes back while AWS
/// does not answer. What is on it was decided when the link was made; a member that founded its cluster is one of what exists from now
/// on. What is not the member's own log any more is kept from kubelet, and the error says why. The answer: what else went wrong.
pub(super) async fn resume(host: &Host, settings: &Settings) -> anyhow::Result<Option<String>> {
    let (host, settings) = (host.clone(), settings.clone());
    blocking(move || {
        let link = settings.link();
        let said = match host.link_target(&link)? {
            None => host.link_target(&aside(&link))?,
            said => said,
        };
        let Some((to, volume)) = said.and_then(|to| Some((to.clone(), volume_of(&to)?))) else {
            return Ok(None);
        };
        let disk = Disk {
            volume: &volume,
            asked: "",
            prefix: &settings.names().prefix,
        };
        let Some(device) = disk.device(&host)? else {
            return Ok(None);
        };
        let seen = mount_and_look(&host, &settings, &disk, &device)?;
        let (cluster, etcd) = (&settings.config.cluster, &settings.etcd.name);
        match resumes(cluster, etcd, &volume, &seen.content) {
            Ok(true) => show(&host, &link, &to.to_string_lossy())?,
            Ok(false) => {}
            Err(why) => {
                hide(&host, &link)?;
                // A name may lead to another disk than before the reboot.
                disk.unmount(&host)?;
                bail!(why);
            }
        }
        Ok(seen.trouble)
    })
    .await
}

/// What a disk holds; one with a file system is mounted to see, and grown before anything is written to it: it may be full. kubelet
/// sees a manifest on it only once [`show`] says so: one that changes after kubelet read it never starts where this is the only API
/// server, since kubelet waits for the first to end, and ends none before it has heard of the API. Until then the manifest of a member
/// that founded its cluster becomes that of one of a cluster that exists: whatever is decided next, and whatever became of the data, it
/// founds no second one.
pub(super) fn mount_and_look(
    host: &Host,
    settings: &Settings,
    disk: &Disk<'_>,
    device: &Path,
) -> anyhow::Result<Seen> {
    let link = settings.link();
    let was_mounted = disk.is_mounted(host, device)?;
    // A link that leads to another volume is of a member that runs from there.
    if !was_mounted && leads_to(host, &link, disk)? {
        hide(host, &link)?;
    }
    let content = disk.look(host, device)?;
    let Content::FileSystem(Inside::Marked { .. }) = &content else {
        return Ok(Seen {
            content,
            trouble: None,
        });
    };
    let (content, trouble) = match grow(host, disk, device, was_mounted) {
        Ok(false) => (content, None),
        Ok(true) => (disk.look(host, device)?, None),
        Err(error) => (disk.look(host, device)?, Some(format!("{error:#}"))),
    };
    let manifest = on_volume(disk, &settings.pod_name());
    if host.link_target(&link)?.is_none()
        && has_founded(&content)
        && let Some(said) = host.read_text(&manifest)?
    {
        host.write_changed(&manifest, &as_existing(&said)?, MODE)?;
    }
    Ok(Seen { content, trouble })
}

/// Lets the member's file system follow its volume. One that nobody uses yet is taken out for it: then the kernel grows nothing that is
/// in use. False: there is nothing to do.
fn grow(host: &Host, disk: &Disk<'_>, device: &Path, in_use: bool) -> anyhow::Result<bool> {
    if !is_outgrown(device)? {
        return Ok(false);
    }
    if !in_use {
        disk.unmount(host)?;
    }
    disk.grow(host, device)?;
    Ok(true)
}

/// Takes the manifest on a disk from kubelet's sight for good: what is on it is not run.
pub(super) fn withdraw(host: &Host, settings: &Settings, disk: &Disk<'_>) -> anyhow::Result<()> {
    let link = settings.link();
    for link in [aside(&link), link] {
        if leads_to(host, &link, disk)? {
            host.remove(&link)?;
        }
    }
    Ok(())
}

fn leads_to(host: &Host, link: &str, disk: &Disk<'_>) -> anyhow::Result<bool> {
    let to = host.link_target(link)?.and_then(|to| volume_of(&to));
    Ok(to.is_some_and(|volume| volume == disk.volume))
}

/// The volume from which kubelet runs the member: the link leads to it, and it is mounted from a device that is there.
pub(super) async fn runs_from(host: &Host, settings: &Settings) -> anyhow::Result<Option<String>> {
    let (host, settings) = (host.clone(), settings.clone());
    blocking(move || {
        let to = host.link_target(&settings.link())?;
        let Some(volume) = to.and_then(|to| volume_of(&to)) else {
            return Ok(None);
        };
        let disk = Disk {
            volume: &volume,
            asked: "",
            prefix: &settings.names().prefix,
        };
        let Some(device) = disk.device(&host)? else {
            return Ok(None);
        };
        let runs = disk.is_mounted(&host, &device)?;
        Ok(runs.then_some(volume))
    })
    .await
}

/// Takes the link from kubelet's sight, and keeps what it says.
fn hide(host: &Host, link: &str) -> anyhow::Result<()> {
    let Some(to) = host.link_target(link)? else {
        return Ok(());
    };
    host.make_link(&aside(link), &to.to_string_lossy())?;
    Ok(host.remove(link)?)
}

/// Lets kubelet see the manifest. It watches the folder, and not what links in it lead to.
fn show(host: &Host, link: &str, manifest: &str) -> anyhow::Result<()> {
    let to = host.link_target(link)?;
    if to.is_none_or(|to| to != Path::new(manifest)) {
        host.make_link(link, manifest)?;
    }
    Ok(host.remove(&aside(link))?)
}

/// Beside a link, where kubelet passes over it.
fn aside(link: &str) -> String {
    match link.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/.{name}.aside"),
        None => format!(".{link}.aside"),
    }
}

/// Puts the manifest on the volume, and the link to it in kubelet's folder. One that kubelet runs is left as it is, so that forming
/// costs no restart.
pub(super) fn put(
    host: &Host,
    settings: &Settings,
    disk: &Disk<'_>,
    member: &str,
    start: &EtcdStart,
) -> anyhow::Result<()> {
    let link = settings.link();
    let manifest = on_volume(disk, &settings.pod_name());
    let leads_there = host
        .link_target(&link)?
        .is_some_and(|to| to == Path::new(&manifest));
    if leads_there && host.read_text(&manifest)?.is_some() {
        return Ok(());
    }
    if matches!(start, EtcdStart::New { .. }) {
        disk.make_data(host)?;
    }
    let pod = settings.pod(member, start, &disk.data())?;
    host.write_changed(&manifest, &to_yaml(&pod)?, MODE)?;
    show(host, &link, &manifest)
}

fn on_volume(disk: &Disk<'_>, pod: &str) -> String {
    format!("{}/{}", disk.folder(), manifest_on_volume(pod))
}

/// The volume that a link in the folder of manifests leads to: `/mnt/master-VOLUME/...`.
fn volume_of(link: &Path) -> Option<String> {
    let rest = link.to_str()?.strip_prefix("/mnt/master-")?;
    rest.split('/').next().map(str::to_owned)
}
