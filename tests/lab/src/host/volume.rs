//! Volumes: sparse files that outlive hosts, shown in a host as the NVMe devices and links that EC2 and Amazon's udev rules
//! make there.

use super::image::write;
use super::state::{Host, Paths, State};
use crate::ledger::{Ledger, Made};
use crate::place::Place;
use crate::{json_file, teardown, tool};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The script that makes a host's devices: run by its first process at boot, and by attaching.
const DEVICES: &str = "etc/kctl-lab/devices";

/// N of `/dev/nvmeNn1`; 0 is the root volume's.
const NUMBERS: RangeInclusive<u32> = 1..=27;

/// A volume to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSpec {
    /// `vol-0123456789abcdef0`.
    pub id: String,
    /// GiB. A volume that was smaller grows.
    pub size: u32,
    /// As asked for in AttachVolume, `/dev/xvdu`.
    pub device: String,
}

/// A volume attached to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub volume: String,
    /// As asked for.
    pub device: String,
    /// N of the host's `/dev/nvmeNn1`.
    pub number: u32,
    /// The machine's loop device behind it.
    pub loop_device: PathBuf,
    /// Device number, major and minor.
    pub major: u32,
    pub minor: u32,
}

impl Attached {
    /// Name below the host's `/dev`.
    pub fn node(&self) -> String {
        format!("nvme{}n1", self.number)
    }

    /// Links below `/dev` and what they point to: by volume id, with and without the name space, and as asked for.
    pub(super) fn links(&self) -> Vec<(String, String)> {
        let node = self.node();
        let serial = self.volume.replace('-', "");
        let by_id = format!("disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        let mut links = vec![
            (by_id.clone(), format!("../../{node}")),
            (format!("{by_id}_1"), format!("../../{node}")),
        ];
        if let Some(asked) = self.device.strip_prefix("/dev/") {
            links.push((asked.to_owned(), node));
        }
        links
    }
}

/// Where a volume's content is.
pub(super) fn file(place: &Place, volume: &str) -> PathBuf {
    place.data().join("volumes").join(format!("{volume}.img"))
}

/// Attaches a volume to a host that was booted, on or off. Attached there already is fine, and grows it if it is larger
/// now; attached elsewhere is an error, as in EC2.
pub fn attach_volume(
    place: &Place,
    ledger: &Ledger,
    instance: &str,
    spec: &VolumeSpec,
) -> Result<Attached> {
    let context = || format!("attaching {} to {instance}", spec.id);
    attach(place, ledger, instance, spec).with_context(context)
}

fn attach(place: &Place, ledger: &Ledger, instance: &str, spec: &VolumeSpec) -> Result<Attached> {
    named(&spec.id, "vol-")?;
    named(spec.device.strip_prefix("/dev/").unwrap_or(""), "")?;
    let _lock = lock(place)?;
    let host = Host::read(place, instance)?;
    let mut volumes = host.volumes(place)?;
    let known = volumes
        .iter()
        .find(|attached| attached.volume == spec.id)
        .cloned();
    if known.is_none() {
        free(place, spec, &volumes)?;
    }
    let file = grown(place, ledger, spec)?;
    if let Some(attached) = known {
        let mut losetup = ledger.command("losetup")?;
        tool::run(losetup.arg("--set-capacity").arg(&attached.loop_device))?;
        // An attachment that was cut off may not have come to this.
        show(place, &host)?;
        return Ok(attached);
    }
    ledger.record(&Made::Loop { file: file.clone() })?;
    // Left by an attachment that was cut off; or by a forced detachment, and then in use until it is unmounted.
    for stale in teardown::loop_devices(&file)? {
        tool::output(ledger.command("losetup")?.arg("--detach").arg(stale))?;
    }
    let mut losetup = ledger.command("losetup")?;
    losetup.args(["--find", "--show"]).arg(&file);
    let loop_device = PathBuf::from(tool::run(&mut losetup)?.trim());
    let (major, minor) = device_number(&loop_device)?;
    let mut free = NUMBERS;
    let number = free
        .find(|number| volumes.iter().all(|other| other.number != *number))
        .context("the host has as many volumes as EC2 attaches to one instance")?;
    let device = spec.device.clone();
    let attached = Attached {
        volume: spec.id.clone(),
        device,
        number,
        loop_device,
        major,
        minor,
    };
    volumes.push(attached.clone());
    json_file::write(&Paths::of(place, instance).volumes(), &volumes)?;
    write_devices(place, instance)?;
    show(place, &host)?;
    Ok(attached)
}

/// Ids and device names become paths.
fn named(name: &str, prefix: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.len() <= prefix.len() || !name.starts_with(prefix) || !name.bytes().all(plain) {
        bail!("{name:?} is no name of a volume or device: as vol-0123456789abcdef0, /dev/xvdf");
    }
    Ok(())
}

/// Neither the volume nor the device name may be taken.
fn free(place: &Place, spec: &VolumeSpec, volumes: &[Attached]) -> Result<()> {
    if let Some(other) = volumes.iter().find(|other| other.device == spec.device) {
        bail!("{} is taken by {}", spec.device, other.volume);
    }
    for host in super::hosts(place)? {
        if host
            .volumes(place)?
            .iter()
            .any(|other| other.volume == spec.id)
        {
            bail!(
                "it is attached to {}: detach it there first",
                host.spec.instance
            );
        }
    }
    Ok(())
}

/// The volume's file, at least as large as asked.
fn grown(place: &Place, ledger: &Ledger, spec: &VolumeSpec) -> Result<PathBuf> {
    let folder = place.data().join("volumes");
    ledger.record(&Made::Directory {
        path: folder.clone(),
    })?;
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let path = file(place, &spec.id);
    let context = || format!("making {}", path.display());
    let open = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(context)?;
    let bytes = u64::from(spec.size) << 30;
    if open.metadata().with_context(context)?.len() < bytes {
        open.set_len(bytes).with_context(context)?;
    }
    Ok(path)
}

fn device_number(path: &Path) -> Result<(u32, u32)> {
    let metadata = fs::metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    if !metadata.file_type().is_block_device() {
        bail!("{} is no block device", path.display());
    }
    let number = metadata.rdev();
    Ok((rustix::fs::major(number), rustix::fs::minor(number)))
}

/// Writes the host's script of devices, from what is attached.
pub(super) fn write_devices(place: &Place, instance: &str) -> Result<()> {
    let paths = Paths::of(place, instance);
    let volumes: Vec<Attached> = json_file::read(&paths.volumes())?.unwrap_or_default();
    let mut script =
        String::from("# The volumes attached to this machine.\nmkdir -p /dev/disk/by-id\n");
    for attached in &volumes {
        let (node, major, minor) = (attached.node(), attached.major, attached.minor);
        writeln!(
            script,
            "[ -b /dev/{node} ] || mknod -m 660 /dev/{node} b {major} {minor}"
        )?;
        for (link, target) in attached.links() {
            writeln!(script, "ln -sfn {target} /dev/{link}")?;
        }
    }
    write(&paths.root().join(DEVICES), 0o644, &script)
}

/// Makes the devices in a host that is past the point where it does so itself.
fn show(place: &Place, host: &Host) -> Result<()> {
    if matches!(host.state(place)?, State::Off | State::Crashed) {
        return Ok(());
    }
    let output = super::exec_output(place, &host.spec.instance, &["sh", &format!("/{DEVICES}")])?;
    if !output.status.success() {
        bail!(
            "making the devices in the host: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// One change of attachments at a time.
pub(super) fn lock(place: &Place) -> Result<File> {
    let path = place.run().join("volumes.lock");
    let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
    file.lock()
        .with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}
