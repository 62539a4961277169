//! Desired file systems of `volumeMounts`, mounted now and at later boots.

use crate::config::{self, File, NodeConfig, VolumeMount};
use crate::host::{Error, HostObject, Link, Mount};

pub(super) fn volume_objects(config: &NodeConfig) -> Result<Vec<HostObject>, Error> {
    let things = config
        .volume_mounts
        .iter()
        .map(|volume| objects_of_volume(volume, config));
    Ok(things.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The mount, and a unit with which systemd mounts it at later boots, before nodeup runs.
fn objects_of_volume(volume: &VolumeMount, config: &NodeConfig) -> Result<Vec<HostObject>, Error> {
    let plain = |text: &str| text.replace('%', "%%");
    let options = match volume.mount_options.join(",") {
        none if none.is_empty() => "defaults".to_owned(),
        options => plain(&options),
    };
    let content = templates::render(&templates::MountUnit {
        device: plain(&volume.device),
        path: plain(&volume.path),
        filesystem: volume.filesystem.clone(),
        options,
    });
    let content = content.map_err(|source| config::Error::Template {
        group: config.group.clone(),
        source,
    })?;
    let unit = format!("{}.mount", escape_unit_path(&volume.path));
    let path = HostObject::unit_path(&unit);
    Ok(vec![
        HostObject::Mount(Mount {
            device: volume.device.clone(),
            path: volume.path.trim_end_matches('/').to_owned(),
            filesystem: volume.filesystem.clone(),
            format_options: volume.format_options.clone(),
            mount_options: volume.mount_options.clone(),
            unit: unit.clone(),
            by_uuid: true,
        }),
        HostObject::File(File::new(&path, content)),
        HostObject::Link(Link {
            path: HostObject::unit_path(&format!("local-fs.target.wants/{unit}")),
            target: path,
        }),
    ])
}

/// Escapes a path for a unit name (systemd.unit(5), "String escaping for inclusion in unit names").
fn escape_unit_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut name = String::new();
    for (index, byte) in parts.join("/").bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'.');
        match byte {
            b'/' => name.push('-'),
            b'.' if index == 0 => name.push_str("\\x2e"),
            _ if plain => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if name.is_empty() {
        "-".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::escape_unit_path;

    #[test]
    fn units_are_named_as_systemd_escape_names_them() {
        for (path, unit) in [
            ("/var/lib/containerd", "var-lib-containerd"),
            ("//data//", "data"),
            ("/a-b/c d", "a\\x2db-c\\x20d"),
            ("/.x", "\\x2ex"),
            ("/", "-"),
        ] {
            assert_eq!(escape_unit_path(path), unit, "{path}");
        }
    }
}
