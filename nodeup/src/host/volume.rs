//! Formats and mounts additional volumes. A volume is formatted only if it is blank.

use super::failure::{call_failure, file_failure, permanent_failure};
use engine::{Class, Failure};
use host::{DeviceContent, Formattable, Host, NewFileSystem, is_same_device};
use node::host::Mount;
use std::path::Path;

/// Folder with records of volumes whose formatting began in this boot, with the identity of each disk. They were blank, so an
/// interrupted mkfs may be repeated.
const FORMATTING: &str = "/run/kctl/formatting";

/// File name of nodeup's drop-in for a mount unit.
const DROP_IN: &str = "device.conf";

pub(super) fn observe_mount(host: &Host, want: &Mount) -> Result<Option<Mount>, Failure> {
    let mount_failure = call_failure(format!("looking at what is mounted at {}", want.path));
    let Some(mounted) = host.mounted_at(&want.path).map_err(&mount_failure)? else {
        return Ok(None);
    };
    let path = drop_in_path(want);
    let kept = host
        .read_bytes(&path)
        .map_err(file_failure("reading", &path))?;
    let uuid = host
        .file_system_uuid(&mounted.source)
        .map_err(&mount_failure)?;
    let by_uuid = uuid.is_some_and(|uuid| kept.as_deref() == Some(drop_in_text(&uuid).as_bytes()));
    let mut have = Mount {
        by_uuid,
        ..want.clone()
    };
    // The device may have another name after a boot, but the file system's UUID stays.
    if !by_uuid {
        let wanted = host
            .device_attached_as(&want.device)
            .map_err(&mount_failure)?;
        let same = match wanted {
            Some(wanted) => is_same_device(&mounted.source, &wanted).map_err(&mount_failure)?,
            None => false,
        };
        if !same {
            have.device = mounted.source.display().to_string();
        }
    }
    Ok(Some(have))
}

pub(super) fn put_mount(host: &Host, want: &Mount, have: Option<&Mount>) -> Result<(), Failure> {
    let call = format!("mounting {} at {}", want.device, want.path);
    if let Some(have) = have.filter(|have| have.device != want.device) {
        let message = format!(
            "{} is mounted there: unmount it, or change volumeMounts in the spec",
            have.device
        );
        return Err(permanent_failure(&call, &message));
    }
    let failed = call_failure(&call);
    let Some(device) = host.device_attached_as(&want.device).map_err(&failed)? else {
        return Err(Failure {
            class: Class::NotYet,
            hint: Some(
                "check that the volume is attached with the device name in spec.volumes; lsblk shows attached disks".to_owned(),
            ),
            ..permanent_failure(&call, "the device does not exist")
        });
    };
    if have.is_none() {
        format_if_blank(host, want, &device)?;
        let options = want.mount_options.join(",");
        host.mount_device(&device, &want.path, &want.filesystem, &options)
            .map_err(&failed)?;
        host.remove_file(&format_record_path(want))
            .map_err(&failed)?;
    }
    let Some(uuid) = host.file_system_uuid(&device).map_err(&failed)? else {
        return Err(permanent_failure(&call, "the file system has no UUID"));
    };
    let text = drop_in_text(&uuid);
    host.write_file(
        &drop_in_path(want),
        text.as_bytes(),
        0o644,
        Some("root:root"),
    )
    .map_err(failed)
}

/// Path of the drop-in that tells the mount unit the UUID of its file system (systemd.unit(5), "drop-in").
fn drop_in_path(want: &Mount) -> String {
    format!("/etc/systemd/system/{}.d/{DROP_IN}", want.unit)
}

fn drop_in_text(uuid: &str) -> String {
    format!("[Mount]\nWhat=/dev/disk/by-uuid/{uuid}\n")
}

/// Makes the file system on a volume that is blank or has an interrupted mkfs. A volume that has it already is not changed. Any
/// other content is an error, because it may be needed.
fn format_if_blank(host: &Host, want: &Mount, device: &Path) -> Result<(), Failure> {
    let inspect_failure = call_failure(format!("looking at {}", want.device));
    let record = format_record_path(want);
    let content = host.inspect_device(device).map_err(&inspect_failure)?;
    let on = match &content {
        DeviceContent::FileSystem { kind } if *kind == want.filesystem => return Ok(()),
        DeviceContent::Blank => Formattable::Blank,
        DeviceContent::Unrecognized
            if host
                .has_begun_format(&record, device)
                .map_err(&inspect_failure)? =>
        {
            Formattable::HalfMade
        }
        _ => return Err(not_blank(want, &content)),
    };
    let options: Vec<&str> = want.format_options.iter().map(String::as_str).collect();
    let new = NewFileSystem {
        disk: &want.device,
        kind: &want.filesystem,
        options: &options,
        on,
        record: Some(&record),
    };
    host.make_file_system(device, || host.device_attached_as(&want.device), &new)
        .map_err(call_failure(format!("formatting {}", want.device)))
}

fn not_blank(want: &Mount, content: &DeviceContent) -> Failure {
    let what = match content {
        DeviceContent::FileSystem { kind } => kind,
        DeviceContent::Other(what) => what,
        DeviceContent::Blank | DeviceContent::Unrecognized => "data",
    };
    Failure {
        hint: Some(
            "only a blank volume is formatted: if nothing on it is needed, wipe it with wipefs and blkdiscard"
                .to_owned(),
        ),
        ..permanent_failure(
            &format!("looking at {}", want.device),
            &format!("the volume is neither blank nor {}: it has {what}", want.filesystem),
        )
    }
}

fn format_record_path(want: &Mount) -> String {
    format!(
        "{FORMATTING}/{}",
        want.device.trim_start_matches('/').replace('/', "-")
    )
}
