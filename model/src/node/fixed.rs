//! Files and units that are the same on every machine of a group.

use super::agents::find;
use super::{Agents, DIRECTORY, Error, File, Unit, containerd, users};
use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::write::to_yaml;
use crate::components;
use crate::full::{Group, Role};

/// What renews certificates, and the timer that starts it: no unit that runs, so a file.
pub(crate) const RENEWAL_SERVICE: &str = "/etc/systemd/system/nodeup-certificates.service";
pub(crate) const RENEWAL_TIMER: &str = "nodeup-certificates.timer";

/// Those files, sorted by path.
pub(super) fn files(
    cluster: &ClusterSpec,
    said: &InstanceGroupSpec,
    group: &Group,
    role: InstanceGroupRole,
) -> Result<Vec<File>, Error> {
    let mut files = users::file_assets(&cluster.file_assets, &said.file_assets, role)?;
    if group.role == Role::ControlPlane {
        let scheduler = cluster.kube_scheduler.clone().unwrap_or_default();
        let config = to_yaml(&components::scheduler_config(&scheduler))?;
        files.push(File::new("/var/lib/kube-scheduler/config.yaml", config));
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

/// Those units, sorted by name.
pub(super) fn units(
    cluster: &ClusterSpec,
    said: &InstanceGroupSpec,
    group: &Group,
    role: InstanceGroupRole,
    agents: &Agents,
) -> Result<Vec<Unit>, Error> {
    let template = |source| Error::Template {
        group: group.name.clone(),
        source,
    };
    let kubelet = templates::KubeletService {
        binary: "/usr/local/bin/kubelet".to_owned(),
    };
    let mut units = users::hooks(&cluster.hooks, &said.hooks, role, &group.name)?;
    units.push(Unit::new(
        "kubelet.service",
        templates::render(&kubelet).map_err(template)?,
    ));
    units.push(Unit::new(
        RENEWAL_TIMER,
        templates::render(&templates::CertificatesTimer {}).map_err(template)?,
    ));
    if containerd::settings(cluster, said).skip_install != Some(true) {
        let containerd = templates::ContainerdService {
            binary: "/usr/bin/containerd".to_owned(),
            config: "/etc/containerd/config.toml".to_owned(),
        };
        units.push(Unit::new(
            "containerd.service",
            templates::render(&containerd).map_err(template)?,
        ));
    }
    if group.role == Role::ControlPlane {
        find(&agents.protokube, "protokube", group)?;
        let protokube = templates::ProtokubeService {
            directory: DIRECTORY.to_owned(),
        };
        units.push(Unit::new(
            "protokube.service",
            templates::render(&protokube).map_err(template)?,
        ));
    }
    if cluster
        .networking
        .as_ref()
        .is_some_and(|networking| networking.kubenet.is_some())
    {
        units.push(masquerade(cluster, group)?);
    }
    units.sort();
    Ok(units)
}

/// kubenet: what leaves the cluster's own ranges gets the machine's address.
fn masquerade(cluster: &ClusterSpec, group: &Group) -> Result<Unit, Error> {
    let unit = templates::MasqueradeService {
        non_masquerade_cidr: cluster.non_masquerade_cidr.clone().unwrap_or_default(),
    };
    let content = templates::render(&unit);
    let content = content.map_err(|source| Error::Template {
        group: group.name.clone(),
        source,
    })?;
    Ok(Unit::new("cni-iptables-setup.service", content))
}
