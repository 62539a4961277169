//! Files and units that are the same on every instance of a group.

use super::apt_source;
use crate::images::first_images;
use crate::{FullSpec, Group, NodeSettings};
use node::config::{
    API_PROXY_UNIT, Agents, DIRECTORY, Error, File, IMAGE_PULLS, Networking, RENEWAL_SERVICE,
    RENEWAL_TIMER, Role, UnitFile, VPC_INTERFACES, find_agent,
};
use node::yaml::to_yaml;

/// A restart of systemd-networkd removes routes and rules that it has not made, unless it is told not to.
const FOREIGN_ROUTES: (&str, &str) = (
    "/etc/systemd/networkd.conf.d/50-cilium.conf",
    "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
);

/// Interfaces that calico makes, whose routes NetworkManager would change where an image has it
/// (<https://docs.tigera.io/calico/latest/operations/troubleshoot/troubleshooting#configure-networkmanager>).
const CALICO_INTERFACES: &str = "[keyfile]\n\
    unmanaged-devices=interface-name:cali*;interface-name:tunl*;interface-name:vxlan.calico;\
    interface-name:vxlan-v6.calico;interface-name:wireguard.cali;interface-name:wg-v6.cali\n";

/// The files, sorted by path.
pub(super) fn group_files(
    full: &FullSpec,
    group: &Group,
    node: &NodeSettings,
) -> Result<Vec<File>, Error> {
    let mut files = node.files.clone();
    if group.role == Role::ControlPlane {
        let config = to_yaml(&full.control_plane.scheduler_config)?;
        files.push(File::new("/var/lib/kube-scheduler/config.yaml", config));
    }
    if node.containerd.gvisor.is_some() {
        files.extend(apt_source::GVISOR.files(group.arch));
    }
    if node.containerd.nvidia {
        files.extend(apt_source::NVIDIA.files(group.arch));
    }
    if matches!(full.pods.networking, Networking::Cilium { .. }) {
        let (path, content) = FOREIGN_ROUTES;
        files.push(File::new(path, content));
    }
    if full.pods.networking == Networking::Calico {
        files.push(File::new(
            "/etc/NetworkManager/conf.d/calico.conf",
            CALICO_INTERFACES,
        ));
    }
    let logs: &[&str] = match group.role {
        Role::ControlPlane => &[
            "kube-apiserver",
            "kube-controller-manager",
            "kube-proxy",
            "kube-scheduler",
        ],
        _ => &["kube-proxy"],
    };
    let template = |source| Error::Template {
        group: group.name.clone(),
        source,
    };
    for log in logs {
        let path = format!("/var/log/{log}.log");
        let content = templates::render(&templates::Logrotate { path }).map_err(template)?;
        files.push(File::new(format!("/etc/logrotate.d/{log}"), content));
    }
    let renewal = templates::CertificatesService {
        directory: DIRECTORY.to_owned(),
    };
    files.push(File::new(
        RENEWAL_SERVICE,
        templates::render(&renewal).map_err(template)?,
    ));
    files.sort();
    Ok(files)
}

/// The units, sorted by name.
pub(super) fn group_units(
    full: &FullSpec,
    group: &Group,
    node: &NodeSettings,
    agents: &Agents,
) -> Result<Vec<UnitFile>, Error> {
    let template = |source| Error::Template {
        group: group.name.clone(),
        source,
    };
    let kubelet = templates::KubeletService {
        binary: "/usr/local/bin/kubelet".to_owned(),
    };
    let mut units = node.units.clone();
    units.push(UnitFile::new(
        "kubelet.service",
        templates::render(&kubelet).map_err(template)?,
    ));
    units.push(UnitFile::new(
        RENEWAL_TIMER,
        templates::render(&templates::CertificatesTimer {}).map_err(template)?,
    ));
    if !node.containerd.skip_install {
        let containerd = templates::ContainerdService {
            binary: "/usr/bin/containerd".to_owned(),
            config: "/etc/containerd/config.toml".to_owned(),
        };
        units.push(UnitFile::new(
            "containerd.service",
            templates::render(&containerd).map_err(template)?,
        ));
    }
    if group.role == Role::ControlPlane {
        find_agent(&agents.protokube, "protokube", &group.name, group.arch)?;
        let protokube = templates::ProtokubeService {
            directory: DIRECTORY.to_owned(),
        };
        units.push(UnitFile::new(
            "protokube.service",
            templates::render(&protokube).map_err(template)?,
        ));
    }
    if full.api.node_proxy {
        let proxy = templates::ApiProxyService {
            directory: DIRECTORY.to_owned(),
        };
        units.push(UnitFile::new(
            API_PROXY_UNIT,
            templates::render(&proxy).map_err(template)?,
        ));
    }
    units.extend(image_pulls_unit(full, group, node)?);
    if full.pods.networking == Networking::Kubenet {
        units.push(masquerade_unit(full, group)?);
    }
    if full.pods.networking.attaches_interfaces() {
        units.push(UnitFile::new(
            VPC_INTERFACES,
            templates::render(&templates::VpcInterfacesService {}).map_err(template)?,
        ));
    }
    units.sort();
    Ok(units)
}

/// Pulls the images that pods need first; `None`: there is none to pull.
fn image_pulls_unit(
    full: &FullSpec,
    group: &Group,
    node: &NodeSettings,
) -> Result<Option<UnitFile>, Error> {
    let images = first_images(full, group, node);
    if images.is_empty() {
        return Ok(None);
    }
    let words = images
        .iter()
        .map(|image| templates::quote_systemd_word(image));
    let unit = templates::ImagePulls {
        images: words.collect(),
    };
    let content = templates::render(&unit);
    let content = content.map_err(|source| Error::Template {
        group: group.name.clone(),
        source,
    })?;
    Ok(Some(UnitFile::new(IMAGE_PULLS, content)))
}

/// For kubenet: masquerades traffic that leaves the cluster's ranges.
fn masquerade_unit(full: &FullSpec, group: &Group) -> Result<UnitFile, Error> {
    let unit = templates::MasqueradeService {
        non_masquerade_cidr: full.pods.non_masquerade_cidr.to_string(),
    };
    let content = templates::render(&unit);
    let content = content.map_err(|source| Error::Template {
        group: group.name.clone(),
        source,
    })?;
    Ok(UnitFile::new("cni-iptables-setup.service", content))
}
