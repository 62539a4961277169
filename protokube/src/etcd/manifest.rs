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
    let path = settings.link();
    let Some(to) = host.link(&path) else {
        return Ok(());
    };
    let Some(volume) = volume_of(&to) else {
        return Ok(());
    };
    let (host, prefix) = (host.clone(), settings.names().prefix);
    let pod = settings.pod_name();
    blocking(move || {
        let disk = Disk {
            volume: &volume,
            asked: "",
            prefix: &prefix,
        };
        let Some(device) = host.device(&disk) else {
            return Ok(());
        };
        if mount_and_look(&host, &disk, &device, &pod)?.1 {
            host.make_link(&path, &to.to_string_lossy())?;
        }
        Ok(())
    })
    .await
}

/// What a disk holds, and whether this mounted it. Where it mounts a member that founded its cluster, the member's manifest says
/// from now on that the cluster exists: whatever is decided next, and whatever became of the data, it founds no second one.
pub(super) fn mount_and_look(
    host: &Host,
    disk: &Disk<'_>,
    device: &Path,
    pod: &str,
) -> anyhow::Result<(Content, bool)> {
    let (content, mounted_now) = host.look(disk, device)?;
    let manifest = on_volume(disk, pod);
    if mounted_now
        && has_founded(&content)
        && let Some(said) = host.read(&manifest)?
    {
        host.write(&manifest, &as_existing(&said)?, MODE)?;
    }
    Ok((content, mounted_now))
}

/// Puts the manifest on the volume, and the link to it in kubelet's folder. One that kubelet runs is left as it is: it changes
/// when the volume is mounted, before kubelet can read it, so that forming costs no restart.
pub(super) fn put(
    host: &Host,
    settings: &Settings,
    disk: &Disk<'_>,
    member: &str,
    start: &EtcdStart,
    mounted_now: bool,
) -> anyhow::Result<()> {
    let link = settings.link();
    let manifest = on_volume(disk, &settings.pod_name());
    let leads_there = host
        .link(&link)
        .is_some_and(|to| to == Path::new(&manifest));
    let runs = leads_there && !mounted_now && host.read(&manifest)?.is_some();
    if runs {
        return Ok(());
    }
    if matches!(start, EtcdStart::New { .. }) {
        make_data(host, disk)?;
    }
    let pod = settings.pod(member, start, &host.data(disk))?;
    host.write(&manifest, &to_yaml(&pod)?, MODE)?;
    // kubelet watches the folder, and not what its links lead to.
    host.make_link(&link, &manifest)
}

fn on_volume(disk: &Disk<'_>, pod: &str) -> String {
    format!("{}/{}", disk.folder(), manifest_on_volume(pod))
}

/// The volume that a link in the folder of manifests leads to: `/mnt/master-VOLUME/...`.
fn volume_of(link: &Path) -> Option<String> {
    let rest = link.to_str()?.strip_prefix("/mnt/master-")?;
    rest.split('/').next().map(str::to_owned)
}
