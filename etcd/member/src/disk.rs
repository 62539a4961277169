//! A member's volume as a disk of this instance: device, content, mkfs, mount and marker.

use super::log_files::{read_log_in, read_position_in, sync_log};
use anyhow::{Context, bail};
use etcd_rules::{
    EtcdLog, FileSystemContent, FirstLook, LastSeen, MARKER, Marker, VolumeContent, data_folder,
};
use host::{DeviceContent, Error, Formattable, Host, NewFileSystem, is_staged_name};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Mode of the data folder, which etcd requires.
const DATA_MODE: u32 = 0o700;

/// Mode of the marker.
const MARKER_MODE: u32 = 0o644;

/// A volume contains only data and a manifest, so programs and devices are not allowed. After an error the file system becomes
/// read-only; the kernel would continue otherwise (ext4: `errors=continue`). The reserved blocks are for processes with
/// `CAP_SYS_RESOURCE`, which containers lack, and not for root in containers (ext4: `resuid`, 65534 is nobody).
const MOUNT_OPTIONS: &str = "nodev,nosuid,noexec,noatime,errors=remount-ro,resuid=65534";

/// Reserves one percent for root outside of containers, so that files that a member needs to start can be written even when etcd
/// has filled the volume.
const MKFS_OPTIONS: [&str; 3] = ["-q", "-F", "-m1"];

/// A volume that is attached to this instance.
#[derive(Clone, Copy, Debug)]
pub struct EtcdDisk<'a> {
    /// Volume id, `vol-...`.
    pub volume: &'a str,
    /// Device name in the attach request: `/dev/xvdu`; empty if unknown.
    pub requested_device: &'a str,
    /// Prefix of the member's names: `etcd`, `etcd-events`.
    pub prefix: &'a str,
}

impl EtcdDisk<'_> {
    /// Mount point, the same as in kOps.
    pub fn mount_point(&self) -> String {
        format!("/mnt/master-{}", self.volume)
    }

    /// What the mounted disk lacks if `what` needs so many bytes of it; `None`: it has room.
    pub(super) fn find_lack_of_room(
        &self,
        host: &Host,
        needed: u64,
        what: &str,
    ) -> Result<Option<String>, Error> {
        let free = host.free_bytes(&self.mount_point())?;
        Ok((free < needed).then(|| {
            format!(
                "{} has {} MiB of free space, and {what} needs {} MiB: set a larger spec.etcdClusters[].etcdMembers[].volumeSize and run \
                 `kctl update cluster --yes`",
                self.volume,
                free >> 20,
                (needed >> 20) + 1
            )
        }))
    }

    /// Checks that the mounted disk has so many bytes for `what`.
    pub(super) fn require_room(&self, host: &Host, needed: u64, what: &str) -> anyhow::Result<()> {
        match self.find_lack_of_room(host, needed, what)? {
            Some(lack) => bail!(lack),
            None => Ok(()),
        }
    }

    /// Path of etcd's data folder on the mounted disk.
    pub fn data_path(&self) -> String {
        self.data_below(&self.mount_point())
    }

    fn data_below(&self, mount_point: &str) -> String {
        format!("{mount_point}/{}", data_folder(self.prefix))
    }

    /// Path of the data that was restored for a cluster with this token.
    pub(super) fn restored_path(&self, token: &str) -> String {
        format!("{}.restored-{token}", self.data_path())
    }

    /// Path of a folder for copies that nobody keeps.
    pub(super) fn scratch_path(&self) -> String {
        format!("{}.scratch", self.data_path())
    }

    /// Path of the data as it was before this version of etcd first ran with it.
    pub(super) fn before_path(&self, version: &str) -> String {
        format!("{}.before-{version}", self.data_path())
    }

    /// True if an etcd runs with the data: it locks its database (bbolt, `flock`).
    pub(super) fn is_in_use(&self, host: &Host) -> Result<bool, Error> {
        host.is_locked(&format!("{}/member/snap/db", self.data_path()))
    }

    /// The device; `None` until the kernel shows it. Found by volume id if disks are NVMe, otherwise by the device name in the attach
    /// request, current or recorded.
    pub fn find_device(&self, host: &Host) -> Result<Option<PathBuf>, Error> {
        if let Some(device) = host.device_of_volume(self.volume)? {
            return Ok(Some(device));
        }
        let requested = match self.requested_device {
            "" => host.link_target(&device_name_path(self.volume))?,
            requested => Some(requested.into()),
        };
        match requested {
            Some(requested) => host.resolve_device(&requested.to_string_lossy()),
            None => Ok(None),
        }
    }

    /// Determines what the disk holds, without changing a byte of it. Nothing else may use it.
    pub fn look_first(&self, host: &Host, device: &Path) -> anyhow::Result<FirstLook> {
        let looked = self.try_look_first(host, device);
        looked.with_context(|| format!("could not look at {} ({})", self.volume, device.display()))
    }

    fn try_look_first(&self, host: &Host, device: &Path) -> anyhow::Result<FirstLook> {
        let certain = |content| FirstLook {
            content,
            is_certain: true,
        };
        if let Some(content) = read_signature(host, device)? {
            return Ok(certain(content));
        }
        let at = format!("/mnt/look-{}", self.volume);
        let looked = host.look_at_ext4(self.volume, device, &at, |mounted| {
            (mounted.is_outdated, self.read_content(host, &at))
        });
        let unreadable = |why: String| FirstLook {
            content: VolumeContent::Damaged(why),
            is_certain: false,
        };
        match looked {
            Ok((outdated, Ok(content))) => Ok(FirstLook {
                content: VolumeContent::FileSystem(content),
                is_certain: !outdated,
            }),
            // A marker that can be read in part is no sign of damage.
            Ok((_, Err(error))) if is_newer_format(&error) => Err(error),
            Ok((_, Err(error))) => Ok(unreadable(format!("{error:#}"))),
            Err(host::Error::File {
                doing: "mount",
                source,
                ..
            }) if is_damage(&source) => Ok(unreadable(format!(
                "it cannot be mounted without changing it: {source}; `fsck.ext4 -n {}` lists the errors",
                device.display()
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Determines what the disk holds. A file system is checked and mounted for that.
    pub fn inspect(&self, host: &Host, device: &Path) -> anyhow::Result<VolumeContent> {
        self.try_inspect(host, device)
            .with_context(|| format!("could not inspect {} ({})", self.volume, device.display()))
    }

    fn try_inspect(&self, host: &Host, device: &Path) -> anyhow::Result<VolumeContent> {
        if !self.is_mounted(host, device)? {
            if let Some(content) = read_signature(host, device)? {
                return Ok(content);
            }
            if let Some(why) = host.repair_ext4(device)? {
                return Ok(VolumeContent::Damaged(why));
            }
            self.mount_disk(host, device)?;
        }
        let mounted = host.mounted_at(&self.mount_point())?;
        if mounted.is_some_and(|mounted| mounted.read_only) {
            return Ok(VolumeContent::Damaged(
                "the kernel found them during use and made the file system read-only. Restart this instance: the file system is checked \
                 and repaired before it is mounted"
                    .to_owned(),
            ));
        }
        Ok(VolumeContent::FileSystem(
            self.read_content(host, &self.mount_point())?,
        ))
    }

    /// Makes a file system on the disk, whose content was `seen`.
    pub fn make_file_system(
        &self,
        host: &Host,
        device: &Path,
        seen: &VolumeContent,
    ) -> anyhow::Result<()> {
        if self.is_mounted(host, device)? {
            bail!("no file system is made on {}: it is mounted", self.volume);
        }
        let on = match seen {
            VolumeContent::Blank => Formattable::Blank,
            // The formation record says that it was blank.
            VolumeContent::Unrecognized => Formattable::HalfMade,
            seen => bail!("no file system is made on {}: it is {seen:?}", self.volume),
        };
        let new = NewFileSystem {
            disk: self.volume,
            kind: "ext4",
            options: &MKFS_OPTIONS,
            on,
            record: None,
        };
        Ok(host.make_file_system(device, || self.find_device(host), &new)?)
    }

    /// Grows the file system to the size of the disk.
    pub fn grow_file_system(&self, host: &Host, device: &Path) -> anyhow::Result<()> {
        let mounted = self.is_mounted(host, device)?;
        Ok(host.grow_ext4(self.volume, device, mounted)?)
    }

    /// True if the disk is mounted at its mount point; another disk there is an error. A mount whose device no longer exists counts as
    /// not mounted: a volume that was detached by force and attached again gets another device while the kernel keeps the old one.
    pub fn is_mounted(&self, host: &Host, device: &Path) -> anyhow::Result<bool> {
        match host.mounted_at(&self.mount_point())? {
            None => Ok(false),
            Some(there) if there.source == device => Ok(true),
            Some(there) if !there.source.exists() => Ok(false),
            Some(there) => bail!(
                "{} is mounted at {}, which is for {}: unmount it",
                there.source.display(),
                self.mount_point(),
                device.display()
            ),
        }
    }

    fn mount_disk(&self, host: &Host, device: &Path) -> anyhow::Result<()> {
        self.unmount_disk(host)?;
        host.mount_device(device, &self.mount_point(), "ext4", MOUNT_OPTIONS)?;
        if !self.requested_device.is_empty() && host.device_of_volume(self.volume)?.is_none() {
            host.make_link(&device_name_path(self.volume), self.requested_device)?;
        }
        Ok(())
    }

    /// Detaches the mount, if there is one. Processes that use it keep it until they end.
    pub fn unmount_disk(&self, host: &Host) -> anyhow::Result<()> {
        if host.mounted_at(&self.mount_point())?.is_some() {
            host.unmount_folder(&self.mount_point())?;
        }
        Ok(())
    }

    /// Writes the marker to the mounted disk.
    pub fn write_marker(&self, host: &Host, marker: &Marker) -> anyhow::Result<()> {
        let place = format!("{}/{MARKER}", self.mount_point());
        host.write_changed(&place, &marker.to_json(), MARKER_MODE)?;
        Ok(())
    }

    /// Creates the data folder, which the pod requires.
    pub(super) fn make_data_folder(&self, host: &Host) -> anyhow::Result<()> {
        Ok(host.make_folder(&self.data_path(), DATA_MODE)?)
    }

    /// Removes what was restored and never used.
    pub(super) fn remove_restored(&self, host: &Host) -> anyhow::Result<()> {
        let data = self.data_path();
        let (parent, name) = data.rsplit_once('/').context("the data has a folder")?;
        let items = match fs::read_dir(host.path_below_root(parent)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            items => items.with_context(|| format!("could not read {parent}"))?,
        };
        let begin = format!("{name}.restored-");
        for item in items {
            let left = item?.file_name().to_string_lossy().into_owned();
            let path = format!("{parent}/{left}");
            if left.starts_with(&begin) && left.ends_with(".source") {
                host.remove_file(&path)?;
            } else if left.starts_with(&begin) {
                host.remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// Moves the data folder aside, if there is something in it, and returns its new path. Nothing deletes it.
    pub(super) fn set_data_aside(&self, host: &Host) -> anyhow::Result<Option<String>> {
        let data = host.path_below_root(&self.data_path());
        let items = match fs::read_dir(&data) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            items => items.with_context(|| format!("could not read {}", data.display()))?,
        };
        if items.count() == 0 {
            return Ok(None);
        }
        let free = (1..).map(|count: u32| format!("{}.lost-{count}", self.data_path()));
        let mut free = free.filter(|path| !host.path_below_root(path).exists());
        let aside = free.next().context("there is always a free name")?;
        host.rename_folder(&self.data_path(), &aside)?;
        Ok(Some(aside))
    }

    /// Determines what the file system holds that is mounted at a folder. Folders alone count as nothing, because the instance may have died before it
    /// wrote the marker.
    fn read_content(&self, host: &Host, at: &str) -> anyhow::Result<FileSystemContent> {
        if let Some(marker) = read_marker(host, at)? {
            let log = compare_log(host, &self.data_below(at), &marker)?;
            return Ok(FileSystemContent::Marked { marker, log });
        }
        let names = file_names(&host.path_below_root(at), 3)?;
        Ok(if names.is_empty() {
            FileSystemContent::Nothing
        } else {
            FileSystemContent::Unmarked(names)
        })
    }

    /// Reads the identity in etcd's log on the mounted disk.
    pub fn read_log(&self, host: &Host) -> anyhow::Result<EtcdLog> {
        read_log_in(host, &self.data_path())
    }

    /// Writes into the marker how far the member's log reaches, if it has grown. What was read is flushed before, because a log that a
    /// power cut took back must not look like one that lost its end: etcd's last records may be in the page cache only. What etcd says
    /// it has applied is no better: it applies committed entries while it still writes them (`server/etcdserver/raft.go`, `start`).
    pub(super) fn keep_last_seen(&self, host: &Host) -> anyhow::Result<()> {
        let marker = read_marker(host, &self.mount_point())?;
        let log = self.read_log(host)?;
        let (Some(marker), EtcdLog::Of(log)) = (marker, log) else {
            return Ok(());
        };
        let position = read_position_in(host, &self.data_path())?;
        let seen = marker.least_position(&log).unwrap_or_default();
        let is_own = marker.member_id.as_ref() == Some(&log.member_id);
        if !is_own || position == seen || position.is_behind(seen) {
            return Ok(());
        }
        sync_log(host, &self.data_path())?;
        let last_seen = LastSeen {
            member_id: log.member_id,
            position,
        };
        let marker = Marker {
            last_seen: Some(last_seen),
            ..marker
        };
        self.write_marker(host, &marker)
    }
}

/// True if the kernel could not mount a file system because of what is in it: `EINVAL`, `EIO`, `EBADMSG` (a wrong checksum), `EUCLEAN`.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(22 | 5 | 74 | 117))
}

/// What a device holds, if it is not an ext4 file system.
fn read_signature(host: &Host, device: &Path) -> anyhow::Result<Option<VolumeContent>> {
    Ok(match host.inspect_device(device)? {
        DeviceContent::Blank => Some(VolumeContent::Blank),
        DeviceContent::Unrecognized => Some(VolumeContent::Unrecognized),
        DeviceContent::FileSystem { kind } if kind == "ext4" => None,
        DeviceContent::FileSystem { kind: what } | DeviceContent::Other(what) => {
            Some(VolumeContent::Other(what))
        }
    })
}

/// Reads the marker of a mounted disk.
pub(super) fn read_marker(host: &Host, mount_point: &str) -> anyhow::Result<Option<Marker>> {
    let place = format!("{mount_point}/{MARKER}");
    let text = host.read_text(&place)?;
    let marker = text.map(|text| Marker::parse(MARKER, text.as_bytes()));
    Ok(marker.transpose()?)
}

fn is_newer_format(error: &anyhow::Error) -> bool {
    let of_marker = error.downcast_ref::<node::formatted::Error>();
    matches!(of_marker, Some(node::formatted::Error::Format { .. }))
}

/// Reads etcd's log in a data folder, and whether it reaches as far as the marker says.
fn compare_log(host: &Host, data: &str, marker: &Marker) -> anyhow::Result<EtcdLog> {
    let log = match read_log_in(host, data)? {
        EtcdLog::Of(log) => log,
        other => return Ok(other),
    };
    let Some(seen) = marker.least_position(&log) else {
        return Ok(EtcdLog::Of(log));
    };
    let found = read_position_in(host, data)?;
    Ok(if found.is_behind(seen) {
        EtcdLog::Shorter { log, seen, found }
    } else {
        EtcdLog::Of(log)
    })
}

/// Path of the link that records the device name of a volume, for reboots of instances whose disks have no serial numbers.
fn device_name_path(volume: &str) -> String {
    format!("/var/lib/kctl/volumes/{volume}")
}

/// At most `most` names of files below a folder, without temporary files of unfinished writes.
fn file_names(folder: &Path, most: usize) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let items = match fs::read_dir(&folder) {
            Ok(items) => items,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("could not read {}", folder.display()));
            }
        };
        for item in items {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            if item.file_type()?.is_dir() {
                folders.push(item.path());
            } else if !is_staged_name(&name) {
                names.push(name);
            }
            if names.len() >= most {
                return Ok(names);
            }
        }
    }
    Ok(names)
}
