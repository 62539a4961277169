//! A member's manifest: it lies on the volume, and kubelet's folder of manifests has a link to it, so that kubelet runs etcd on
//! its own volume or not at all.

use super::Settings;
use super::disk::{blocking, make_data};
use crate::host::{Disk, Host};
use model::api::write::to_yaml;
use model::components::EtcdStart;
use model::etcd::{Content, as_existing, has_founded, manifest_on_volume};
use std::path::Path;

/// Manifests hold no secrets, and nobody edits them.
const MODE: u32 = 0o440;

/// After a reboot the link says which volume was here: it is mounted without asking anybody, so that a machine comes back while AWS
/// does not answer. What is on it was decided when the link was made; a member that founded its cluster is one of what exists from now on.
pub(super) async fn resume(host: &Host, settings: &Settings) -> anyhow::Result<()> {
    let link = settings.link();
    let said = host.link(&link).or_else(|| host.link(&aside(&link)));
    let Some((to, volume)) = said.and_then(|to| Some((to.clone(), volume_of(&to)?))) else {
        return Ok(());
    };
    let (host, settings) = (host.clone(), settings.clone());
    blocking(move || {
        let disk = Disk {
            volume: &volume,
            asked: "",
            prefix: &settings.names().prefix,
        };
        let Some(device) = host.device(&disk) else {
            return Ok(());
        };
        mount_and_look(&host, &settings, &disk, &device)?;
        show(&host, &link, &to.to_string_lossy())
    })
    .await
}

/// What a disk holds; one with a file system is mounted to see. kubelet sees a manifest on it only once [`show`] says so: one that
/// changes after kubelet read it never starts where this is the only API server, since kubelet waits for the first to end, and ends
/// none before it has heard of the API. Until then the manifest of a member that founded its cluster becomes that of one of a cluster
/// that exists: whatever is decided next, and whatever became of the data, it founds no second one.
pub(super) fn mount_and_look(
    host: &Host,
    settings: &Settings,
    disk: &Disk<'_>,
    device: &Path,
) -> anyhow::Result<Content> {
    let link = settings.link();
    if !host.mounted(disk, device)? {
        hide(host, &link)?;
    }
    let content = host.look(disk, device)?;
    let manifest = on_volume(disk, &settings.pod_name());
    if host.link(&link).is_none()
        && has_founded(&content)
        && let Some(said) = host.read(&manifest)?
    {
        host.write(&manifest, &as_existing(&said)?, MODE)?;
    }
    Ok(content)
}

/// Takes the link from kubelet's sight, and keeps what it says.
fn hide(host: &Host, link: &str) -> anyhow::Result<()> {
    let Some(to) = host.link(link) else {
        return Ok(());
    };
    host.make_link(&aside(link), &to.to_string_lossy())?;
    host.remove(link)
}

/// Lets kubelet see the manifest. It watches the folder, and not what links in it lead to.
fn show(host: &Host, link: &str, manifest: &str) -> anyhow::Result<()> {
    if host.link(link).is_none_or(|to| to != Path::new(manifest)) {
        host.make_link(link, manifest)?;
    }
    host.remove(&aside(link))
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
        .link(&link)
        .is_some_and(|to| to == Path::new(&manifest));
    if leads_there && host.read(&manifest)?.is_some() {
        return Ok(());
    }
    if matches!(start, EtcdStart::New { .. }) {
        make_data(host, disk)?;
    }
    let pod = settings.pod(member, start, &host.data(disk))?;
    host.write(&manifest, &to_yaml(&pod)?, MODE)?;
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
