//! What is downloaded, and where it goes; the folder of tools.

use crate::config::{Asset, DIRECTORY, NodeConfig, sha256};
use crate::host::{Download, Error, Link, Place, Thing, Tools};
use std::collections::BTreeMap;

/// Of containerd's archive; the rest of it is for its developers.
const CONTAINERD: [&str; 3] = ["containerd", "containerd-shim-runc-v2", "ctr"];

/// Programs for people and pods, where machines have them.
const TOOLS: [(&str, &str); 3] = [
    ("crictl", "/usr/local/bin/crictl"),
    ("ctr", "/usr/bin/ctr"),
    ("kubectl", "/usr/local/bin/kubectl"),
];

pub(super) fn things(config: &NodeConfig) -> Result<Vec<Thing>, Error> {
    let mut downloads = Vec::new();
    for asset in &config.assets {
        let own = config.containerd.skip_install;
        if !(own && matches!(asset.name.as_str(), "containerd" | "runc")) {
            downloads.push(Download {
                name: asset.name.clone(),
                sha256: asset
                    .sha256
                    .clone()
                    .ok_or_else(|| Error::NoHash(asset.name.clone()))?,
                place: place(asset)?,
            });
        }
    }
    if config.control_plane.is_some() {
        let protokube = config.agents.protokube.first().ok_or(Error::NoProtokube)?;
        downloads.push(Download {
            name: "protokube".to_owned(),
            sha256: protokube.sha256.clone(),
            place: Place::Program(format!("{DIRECTORY}/protokube")),
        });
    }
    let tools = tools(config, &downloads);
    let downloads = downloads.into_iter().map(Thing::Download);
    Ok(downloads.chain(tools).collect())
}

fn place(asset: &Asset) -> Result<Place, Error> {
    let program = |folder: &str| Place::Program(format!("{folder}/{}", asset.name));
    Ok(match asset.name.as_str() {
        "containerd" => {
            let member = |name: &str| (format!("bin/{name}"), format!("/usr/bin/{name}"));
            Place::Members(CONTAINERD.map(member).into())
        }
        "runc" => program("/usr/sbin"),
        "cni-plugins" => Place::Programs("/opt/cni/bin".to_owned()),
        "crictl" => {
            Place::Members([("crictl".to_owned(), "/usr/local/bin/crictl".to_owned())].into())
        }
        "kubelet" | "kubectl" | "ecr-credential-provider" => program("/usr/local/bin"),
        other => return Err(Error::UnknownAsset(other.to_owned())),
    })
}

/// The tools of this machine's release in a folder of their own, and a link to it. The folder is named after what is in
/// it: another release gets another one beside it, for whoever still uses this one.
fn tools(config: &NodeConfig, downloads: &[Download]) -> Vec<Thing> {
    let placed = |path: &str| downloads.iter().any(|download| download.place.has(path));
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
    let digest: String = sha256(&contents).chars().take(12).collect();
    let release = format!("{}-{digest}", config.kubernetes_version);
    vec![
        Thing::Tools(Tools {
            path: format!("{DIRECTORY}/tools/{release}"),
            programs,
        }),
        Thing::Link(Link {
            path: format!("{DIRECTORY}/tools/current"),
            target: release,
        }),
    ]
}
