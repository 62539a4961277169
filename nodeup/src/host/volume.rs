//! File systems on further volumes: formatted only if provably blank, then mounted.

use super::failure::{failed, file_failure, invalid};
use engine::{Class, Failure};
use host::{DeviceContent, Formattable, Host, NewFileSystem, is_same_device};
use node::host::Mount;
use std::path::Path;

/// Volumes whose formatting began in this boot, with what tells each from others: they were blank, and one that was
/// interrupted is neither blank nor whole.
const FORMATTING: &str = "/run/kctl/formatting";

/// What a mount unit's drop-in folder has of ours.
const DROP_IN: &str = "device.conf";

pub(super) fn observe(host: &Host, want: &Mount) -> Result<Option<Mount>, Failure> {
    let looked = failed(format!("looking at what is mounted at {}", want.path));
    let Some(mounted) = host.mounted_at(&want.path).map_err(&looked)? else {
        return Ok(None);
    };
    let path = drop_in(want);
    let kept = host.read(&path).map_err(file_failure("reading", &path))?;
    let uuid = host.file_system_uuid(&mounted.source).map_err(&looked)?;
    let by_uuid = uuid.is_some_and(|uuid| kept.as_deref() == Some(drop_in_text(&uuid).as_bytes()));
    let mut have = Mount {
        by_uuid,
        ..want.clone()
    };
    // At each boot the device may have another name; the file system is still the same one.
    if !by_uuid {
        let wanted = host.device_attached_as(&want.device).map_err(&looked)?;
        let same = match wanted {
            Some(wanted) => is_same_device(&mounted.source, &wanted).map_err(&looked)?,
            None => false,
        };
        if !same {
            have.device = mounted.source.display().to_string();
        }
    }
    Ok(Some(have))
}

pub(super) fn put(host: &Host, want: &Mount, have: Option<&Mount>) -> Result<(), Failure> {
    let call = format!("mounting {} at {}", want.device, want.path);
    if let Some(have) = have.filter(|have| have.device != want.device) {
        let message = format!(
            "{} is mounted there: unmount it, or change volumeMounts",
            have.device
        );
        return Err(invalid(&call, &message));
    }
    let failed = failed(&call);
    let Some(device) = host.device_attached_as(&want.device).map_err(&failed)? else {
        return Err(Failure {
            class: Class::NotYet,
            hint: Some(
                "volumes of spec.volumes are found by their device there: is it attached? lsblk shows what is".to_owned(),
            ),
            ..invalid(&call, "there is no such device")
        });
    };
    if have.is_none() {
        format_if_blank(host, want, &device)?;
        let options = want.mount_options.join(",");
        host.mount(&device, &want.path, &want.filesystem, &options)
            .map_err(&failed)?;
        host.remove(&record(want)).map_err(&failed)?;
    }
    let Some(uuid) = host.file_system_uuid(&device).map_err(&failed)? else {
        return Err(invalid(&call, "its file system has no UUID"));
    };
    let text = drop_in_text(&uuid);
    host.write(&drop_in(want), text.as_bytes(), 0o644, Some("root:root"))
        .map_err(failed)
}

/// Where the unit learns which file system it mounts (systemd.unit(5), "drop-in").
fn drop_in(want: &Mount) -> String {
    format!("/etc/systemd/system/{}.d/{DROP_IN}", want.unit)
}

fn drop_in_text(uuid: &str) -> String {
    format!("[Mount]\nWhat=/dev/disk/by-uuid/{uuid}\n")
}

/// Makes the file system on a volume that is blank, or on which that was interrupted; one that has it is left alone. Everything
/// else is an error: it is somebody's.
fn format_if_blank(host: &Host, want: &Mount, device: &Path) -> Result<(), Failure> {
    let looked = failed(format!("looking at {}", want.device));
    let record = record(want);
    let content = host.inspect_device(device).map_err(&looked)?;
    let on = match &content {
        DeviceContent::FileSystem { kind } if *kind == want.filesystem => return Ok(()),
        DeviceContent::Blank => Formattable::Blank,
        DeviceContent::Unrecognized
            if host.has_begun_format(&record, device).map_err(&looked)? =>
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
        .map_err(failed(format!("formatting {}", want.device)))
}

fn not_blank(want: &Mount, content: &DeviceContent) -> Failure {
    let what = match content {
        DeviceContent::FileSystem { kind } => kind,
        DeviceContent::Other(what) => what,
        DeviceContent::Blank | DeviceContent::Unrecognized => "data",
    };
    Failure {
        hint: Some(
            "a volume is formatted only if it is blank: wipe it by hand if nobody needs what is on it"
                .to_owned(),
        ),
        ..invalid(
            &format!("looking at {}", want.device),
            &format!("it is not blank and not {}: it has {what}", want.filesystem),
        )
    }
}

fn record(want: &Mount) -> String {
    format!(
        "{FORMATTING}/{}",
        want.device.trim_start_matches('/').replace('/', "-")
    )
}
