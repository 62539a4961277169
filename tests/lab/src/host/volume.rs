//! Volumes: sparse files that outlive hosts, shown in a host as the NVMe devices and links that EC2 and Amazon's udev rules
//! make there.

use super::image::write_file;
use super::machine;
use super::state::{Host, HostPaths};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::{json_file, teardown, tool};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The script that makes a host's devices: run by its first process at boot, and by attaching.
const DEVICES: &str = "etc/kctl-lab/devices";

/// N of `/dev/nvmeNn1`; 0 is the root volume's.
const NUMBERS: RangeInclusive<u32> = 1..=27;

/// A volume to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Volume id, for example `vol-0123456789abcdef0`.
    pub id: String,
    /// GiB. A volume that was smaller grows.
    pub size: u32,
    /// As asked for in AttachVolume, `/dev/xvdu`.
    pub device: String,
}

/// A volume attached to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostVolume {
    pub volume: String,
    /// Device name as in the request, for example `/dev/xvdba`.
    pub device: String,
    /// N of the host's `/dev/nvmeNn1`; the kernel of a virtual machine counts for itself.
    pub number: u32,
    /// The machine's loop device behind it.
    pub loop_device: PathBuf,
    /// Device number, major and minor.
    pub major: u32,
    pub minor: u32,
}

impl HostVolume {
    /// Name below the host's `/dev`.
    pub fn device_node(&self) -> String {
        format!("nvme{}n1", self.number)
    }

    /// Serial number of the disk.
    pub(super) fn serial(&self) -> String {
        self.volume.replace('-', "")
    }

    /// Links below `/dev` and what they point to: by volume id, with and without the name space, and as asked for.
    pub(super) fn device_links(&self) -> Vec<(String, String)> {
        let node = self.device_node();
        let serial = self.serial();
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
pub(super) fn volume_file(place: &LabPaths, volume: &str) -> PathBuf {
    place
        .data_folder()
        .join("volumes")
        .join(format!("{volume}.img"))
}

/// How long volumes take until their host has them, besides the work itself; none unless [`delay_attachments`] was called.
pub fn attachment_delay(place: &LabPaths) -> Result<Duration> {
    let seconds = json_file::read_json::<f64>(&delay_file(place))?;
    Ok(Duration::from_secs_f64(seconds.unwrap_or_default()))
}

/// From now on attachments take longer, as on a busy day of EC2.
pub fn delay_attachments(place: &LabPaths, delay: Duration) -> Result<()> {
    Ok(json_file::write_json(
        &delay_file(place),
        &delay.as_secs_f64(),
    )?)
}

fn delay_file(place: &LabPaths) -> PathBuf {
    place.run().join("attachments.json")
}

/// Attaches a volume to a host that was booted, on or off. Attached there already is fine, and grows it if it is larger
/// now; attached elsewhere is an error, as in EC2.
pub fn attach_volume(
    place: &LabPaths,
    ledger: &Ledger,
    instance: &str,
    spec: &VolumeSpec,
) -> Result<HostVolume> {
    let context = || format!("attaching {} to {instance}", spec.id);
    attach_locked(place, ledger, instance, spec).with_context(context)
}

fn attach_locked(
    place: &LabPaths,
    ledger: &Ledger,
    instance: &str,
    spec: &VolumeSpec,
) -> Result<HostVolume> {
    check_name(&spec.id, "vol-")?;
    check_name(spec.device.strip_prefix("/dev/").unwrap_or(""), "")?;
    let _lock = lock_attachments(place)?;
    let host = Host::read_host(place, instance)?;
    let mut volumes = host.read_volumes(place)?;
    let known = volumes
        .iter()
        .find(|attached| attached.volume == spec.id)
        .cloned();
    if known.is_none() {
        check_free(place, spec, &volumes)?;
    }
    let file = ensure_volume_file(place, ledger, spec)?;
    if let Some(attached) = known {
        let mut losetup = ledger.locked_command("losetup")?;
        tool::run(losetup.arg("--set-capacity").arg(&attached.loop_device))?;
        // An attachment that was cut off may not have come to this.
        show_device(place, &host, &attached)?;
        return Ok(attached);
    }
    ledger.record(&LedgerEntry::Loop { file: file.clone() })?;
    // Left by an attachment that was cut off; or by a forced detachment, and then in use until it is unmounted.
    for stale in teardown::loop_devices(&file)? {
        tool::run_tool(ledger.locked_command("losetup")?.arg("--detach").arg(stale))?;
    }
    let mut losetup = ledger.locked_command("losetup")?;
    losetup.args(["--find", "--show"]).arg(&file);
    let loop_device = PathBuf::from(tool::run(&mut losetup)?.trim());
    let (major, minor) = device_number(&loop_device)?;
    let mut free = NUMBERS;
    let number = free
        .find(|number| volumes.iter().all(|other| other.number != *number))
        .context("the host has as many volumes as EC2 attaches to one instance")?;
    let device = spec.device.clone();
    let attached = HostVolume {
        volume: spec.id.clone(),
        device,
        number,
        loop_device,
        major,
        minor,
    };
    volumes.push(attached.clone());
    json_file::write_json(
        &HostPaths::for_host(place, instance).volumes_file(),
        &volumes,
    )?;
    show_device(place, &host, &attached)?;
    Ok(attached)
}

/// Ids and device names become paths.
fn check_name(name: &str, prefix: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.len() <= prefix.len() || !name.starts_with(prefix) || !name.bytes().all(plain) {
        bail!("{name:?} is no name of a volume or device: as vol-0123456789abcdef0, /dev/xvdf");
    }
    Ok(())
}

/// Neither the volume nor the device name may be taken.
fn check_free(place: &LabPaths, spec: &VolumeSpec, volumes: &[HostVolume]) -> Result<()> {
    if let Some(other) = volumes.iter().find(|other| other.device == spec.device) {
        bail!("{} is taken by {}", spec.device, other.volume);
    }
    for host in super::list_hosts(place)? {
        if host
            .read_volumes(place)?
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
fn ensure_volume_file(place: &LabPaths, ledger: &Ledger, spec: &VolumeSpec) -> Result<PathBuf> {
    let folder = place.data_folder().join("volumes");
    ledger.record(&LedgerEntry::Directory {
        path: folder.clone(),
    })?;
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let path = volume_file(place, &spec.id);
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
pub(super) fn write_devices(place: &LabPaths, instance: &str) -> Result<()> {
    let paths = HostPaths::for_host(place, instance);
    let volumes = paths.read_volumes()?;
    let mut script = String::from(
        "# The volumes attached to this machine.\nmkdir -p /dev/disk/by-id /dev/disk/by-uuid\n",
    );
    for attached in &volumes {
        let (node, major, minor) = (attached.device_node(), attached.major, attached.minor);
        writeln!(
            script,
            "[ -b /dev/{node} ] || mknod -m 660 /dev/{node} b {major} {minor}"
        )?;
        for (link, target) in attached.device_links() {
            writeln!(script, "ln -sfn {target} /dev/{link}")?;
        }
        // As udev does; nodeup mounts volumes by it from the second boot on.
        writeln!(
            script,
            "uuid=$(/sbin/blkid -p -o value -s UUID /dev/{node}) && ln -sfn ../../{node} \"/dev/disk/by-uuid/$uuid\" || :"
        )?;
    }
    write_file(&paths.root_folder().join(DEVICES), 0o644, &script)
}

/// Shows a volume to its host. Into a virtual machine that is on it is plugged; any other host has a script that makes its devices at
/// boot, and that runs again if it is on.
fn show_device(place: &LabPaths, host: &Host, attached: &HostVolume) -> Result<()> {
    if host.machine.is_none() {
        write_devices(place, &host.spec.instance)?;
    }
    if host.end_state(place)?.is_some() {
        return Ok(());
    }
    if host.machine.is_some() {
        return machine::plug_volume(place, &host.spec.instance, attached);
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
pub(super) fn lock_attachments(place: &LabPaths) -> Result<File> {
    let path = place.run().join("volumes.lock");
    let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
    file.lock()
        .with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}
