//! Desired downloads with their target paths, the folder of tools, and the images that are imported.

use crate::config::{Asset, DIRECTORY, ImageArchive, NodeConfig};
use crate::digest::sha256_hex;
use crate::host::{Download, Error, HostObject, Image, InstallTarget, Link, Tools};
use crate::values::containerd_image;
use std::collections::BTreeMap;

/// Where containerd keeps images, unless NodeConfig says another folder.
const CONTAINERD_ROOT: &str = "/var/lib/containerd";

/// The programs that are installed from containerd's archive.
const CONTAINERD: [&str; 3] = ["containerd", "containerd-shim-runc-v2", "ctr"];

/// Programs in the folder of tools, with their paths on the instance.
const TOOLS: [(&str, &str); 3] = [
    ("crictl", "/usr/local/bin/crictl"),
    ("ctr", "/usr/bin/ctr"),
    ("kubectl", "/usr/local/bin/kubectl"),
];

pub(super) fn download_objects(config: &NodeConfig) -> Result<Vec<HostObject>, Error> {
    let mut downloads = Vec::new();
    for asset in installed_assets(config) {
        downloads.push(Download {
            name: asset.name.clone(),
            sha256: asset
                .sha256
                .clone()
                .ok_or_else(|| Error::NoHash(asset.name.clone()))?,
            place: install_target(asset)?,
        });
    }
    if config.control_plane.is_some() {
        let protokube = config.agents.protokube.first().ok_or(Error::NoProtokube)?;
        downloads.push(Download {
            name: "protokube".to_owned(),
            sha256: protokube.sha256.clone(),
            place: InstallTarget::Program(format!("{DIRECTORY}/protokube")),
        });
    }
    let tools = tool_objects(config, &downloads);
    let downloads = downloads.into_iter().map(HostObject::Download);
    Ok(downloads.chain(tools).collect())
}

/// The images that kubelet finds in containerd.
pub(super) fn image_objects(config: &NodeConfig) -> Vec<HostObject> {
    let root = config.containerd.root.as_deref();
    let root = root.unwrap_or(CONTAINERD_ROOT).trim_end_matches('/');
    let object = |of: &ImageArchive| Image {
        name: containerd_image(&of.image),
        arch: of.arch,
        digest: of.digest.clone(),
        archive: of.sha256.clone(),
        pinned: true,
        record: format!("{root}/kctl-images/{}", of.sha256),
    };
    config
        .images
        .iter()
        .map(object)
        .map(HostObject::Image)
        .collect()
}

/// All but containerd and runc where the image has them.
pub(super) fn installed_assets(config: &NodeConfig) -> impl Iterator<Item = &Asset> {
    let own = config.containerd.skip_install;
    let all = config.assets.iter();
    all.filter(move |asset| !(own && matches!(asset.name.as_str(), "containerd" | "runc")))
}

pub(super) fn install_target(asset: &Asset) -> Result<InstallTarget, Error> {
    let program = |folder: &str| InstallTarget::Program(format!("{folder}/{}", asset.name));
    Ok(match asset.name.as_str() {
        "containerd" => {
            let member = |name: &str| (format!("bin/{name}"), format!("/usr/bin/{name}"));
            InstallTarget::Members(CONTAINERD.map(member).into())
        }
        "runc" => program("/usr/sbin"),
        "cni-plugins" => InstallTarget::Programs("/opt/cni/bin".to_owned()),
        name @ ("crictl" | "nerdctl") => {
            InstallTarget::Members([(name.to_owned(), format!("/usr/local/bin/{name}"))].into())
        }
        "kubelet" | "kubectl" | "ecr-credential-provider" => program("/usr/local/bin"),
        other => return Err(Error::UnknownAsset(other.to_owned())),
    })
}

/// A folder with the tools of this release, and a link `current` to it. The folder's name contains a digest of its content, so
/// another release gets another folder and this one stays for its users.
fn tool_objects(config: &NodeConfig, downloads: &[Download]) -> Vec<HostObject> {
    let placed = |path: &str| {
        downloads
            .iter()
            .any(|download| download.place.provides_file(path))
    };
    let mut programs: BTreeMap<String, String> = TOOLS
        .iter()
        .filter(|(_, path)| placed(path))
        .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
        .collect();
    programs.insert("socat".to_owned(), "/usr/bin/socat".to_owned());
    let contents: String = downloads
        .iter()
        .map(|download| format!("{} {}\n", download.name, download.sha256))
        .collect();
    let digest: String = sha256_hex(&contents).chars().take(12).collect();
    let release = format!("{}-{digest}", config.kubernetes_version);
    vec![
        HostObject::Tools(Tools {
            path: format!("{DIRECTORY}/tools/{release}"),
            programs,
        }),
        HostObject::Link(Link {
            path: format!("{DIRECTORY}/tools/current"),
            target: release,
        }),
    ]
}
