//! Every path of an instance belongs to one object: two that write one path would undo each other at every run.

use super::{base, certificates, downloads, keysets, units, volumes};
use crate::config::{self, DIRECTORY, InstanceFacts, NodeConfig};
use crate::host::{CertificateStorage, Error, HostObject, InstallTarget};
use crate::manifests::manifest_path;
use crate::values::{Refusal, is_inside};

/// Folders in which no file of the spec may be.
const RESERVED: [&str; 2] = [DIRECTORY, "/var/lib/kctl"];

/// The file of `containerd.configOverride`.
const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";

/// The folder of containerd with a folder for each registry.
const REGISTRIES: &str = "/etc/containerd/certs.d";

/// Folders that all supported distributions have as links.
const LINKS: [(&str, &str); 5] = [
    ("/bin", "/usr/bin"),
    ("/lib", "/usr/lib"),
    ("/lib64", "/usr/lib64"),
    ("/sbin", "/usr/sbin"),
    ("/var/run", "/run"),
];

/// The path behind the distribution's links: two spellings of one file are one file.
fn without_links(path: &str) -> String {
    let link = LINKS.iter().find(|(link, _)| is_inside(path, link));
    let place = link.and_then(|(link, place)| Some(format!("{place}{}", path.strip_prefix(link)?)));
    place.unwrap_or_else(|| path.to_owned())
}

/// A path and whose it is.
struct Owned {
    path: String,
    owner: String,
    /// True if others may be below it, and share it.
    folder: bool,
}

/// An error if two objects of an instance have one path, or one is a file where another needs a folder.
pub fn check_paths(config: &NodeConfig, host: &InstanceFacts) -> Result<(), Error> {
    let refused = |source| config::Error::Paths {
        group: config.group.clone(),
        source,
    };
    let reserved = |path: &str| RESERVED.iter().any(|folder| is_inside(path, folder));
    if let Some(file) = config.files.iter().find(|file| reserved(&file.path)) {
        let message = format!("{} is in a folder of kctl's own", file.path);
        return Err(refused(Refusal::new(message, "put the file elsewhere")).into());
    }
    let mut all = owned_paths(config, host)?;
    for one in &mut all {
        one.path = without_links(&one.path);
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    for (index, one) in all.iter().enumerate() {
        let behind = all.iter().skip(index + 1);
        // Below a folder come only paths that begin as it does.
        let mut behind = behind.take_while(|other| other.path.starts_with(&one.path));
        let clash = behind.find(|other| {
            let same = other.path == one.path && !(one.folder && other.folder);
            same || (!one.folder && is_inside(&other.path, &one.path))
        });
        if let Some(other) = clash {
            let place = if other.path == one.path {
                one.path.clone()
            } else {
                format!("{} and below it", one.path)
            };
            let message = format!("{place}: {} and {}", one.owner, other.owner);
            return Err(refused(Refusal::new(message, field_of(&one.path))).into());
        }
    }
    Ok(())
}

/// The fields that put something at a path.
fn field_of(path: &str) -> &'static str {
    if path == CONTAINERD_CONFIG {
        "use spec.containerd.configOverride or configAdditions"
    } else if is_inside(path, REGISTRIES) {
        "two keys of spec.containerd.registryMirrors name one registry, or a file of spec.fileAssets is there: keep one"
    } else if is_inside(path, "/etc/systemd/system") {
        "give the hook in spec.hooks another name: kctl makes a unit of this one"
    } else {
        "look at spec.fileAssets and spec.volumeMounts of the cluster and of the group: give each its own path"
    }
}

fn owned_paths(config: &NodeConfig, host: &InstanceFacts) -> Result<Vec<Owned>, Error> {
    let mut things = base::base_objects(config, host)?;
    things.extend(volumes::volume_objects(config)?);
    things.extend(certificates::certificate_objects(config, host));
    things.extend(keysets::keyset_objects(config));
    things.extend(units::unit_objects(config, host));
    let mut owned: Vec<Owned> = things.iter().flat_map(paths_of).collect();
    for asset in downloads::installed_assets(config) {
        owned.extend(places_of(&downloads::install_target(asset)?, &asset.name));
    }
    let pods = config
        .control_plane
        .iter()
        .flat_map(|of| of.static_pods.keys().cloned());
    let etcd = config::etcd_pods(config, "/")
        .into_iter()
        .map(|(name, _)| name);
    owned.extend(
        pods.chain(etcd)
            .map(|name| owned_file(manifest_path(&name), "a manifest of the control plane")),
    );
    owned.push(owned_file(
        "/etc/hosts".to_owned(),
        "the names of the API and of etcd's members",
    ));
    owned.push(owned_file(
        HostObject::unit_path("nodeup.service"),
        "the unit of nodeup",
    ));
    Ok(owned)
}

fn owned_file(path: String, owner: impl Into<String>) -> Owned {
    Owned {
        path,
        owner: owner.into(),
        folder: false,
    }
}

fn paths_of(thing: &HostObject) -> Vec<Owned> {
    let folder = |path: &str, owner: &str| Owned {
        path: path.to_owned(),
        owner: owner.to_owned(),
        folder: true,
    };
    match thing {
        HostObject::Certificate(certificate) => match &certificate.storage {
            CertificateStorage::Pair {
                certificate, key, ..
            } => vec![
                owned_file(certificate.clone(), "a certificate"),
                owned_file(key.clone(), "the key of a certificate"),
            ],
            CertificateStorage::Rotating { link } => {
                vec![owned_file(link.clone(), "a certificate")]
            }
        },
        HostObject::Directory(directory) => vec![folder(&directory.path, "a folder")],
        HostObject::File(file) => vec![owned_file(file.path.clone(), "a file")],
        HostObject::KeysetFile(file) => vec![owned_file(file.path.clone(), "a part of a keyset")],
        HostObject::Link(link) => vec![owned_file(link.path.clone(), "a link")],
        HostObject::Mount(mount) => vec![folder(&mount.path, "a volume")],
        HostObject::Tools(tools) => vec![folder(&tools.path, "a folder of tools")],
        HostObject::Unit(unit) => vec![owned_file(
            HostObject::unit_path(&unit.name),
            format!("the unit {}", unit.name),
        )],
        HostObject::Download(_)
        | HostObject::HostsBlock(_)
        | HostObject::Image(_)
        | HostObject::KernelModule(_)
        | HostObject::Packages(_)
        | HostObject::Propagation(_)
        | HostObject::Sysctl(_) => Vec::new(),
    }
}

fn places_of(target: &InstallTarget, name: &str) -> Vec<Owned> {
    let owner = format!("the program {name}");
    match target {
        InstallTarget::Programs(path) => vec![Owned {
            path: path.clone(),
            owner,
            folder: true,
        }],
        InstallTarget::Program(_) | InstallTarget::Members(_) => {
            let paths = target.paths().into_iter();
            paths
                .map(|path| owned_file(path.to_owned(), owner.clone()))
                .collect()
        }
    }
}
