//! From the expanded spec to the NodeConfig of one group.

use super::agents::find;
use super::config::{ControlPlane, Kubelet, NODE_FORMAT, NodeConfig};
use super::sysctls::sysctls;
use super::{Agents, Error, containerd, fixed};
use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::api::etcd::{EtcdClusterSpec, EtcdManagerSpec, EtcdMemberSpec};
use crate::api::instance_group::InstanceGroupSpec;
use crate::components;
use crate::expand::Expanded;
use crate::full::{FullSpec, Group, Role};
use crate::manifests;
use std::net::IpAddr;

/// The NodeConfig of a group; `None` for a bastion, which is no node. `trust_bundle` is that of `kubernetes-ca`.
pub fn node_config(
    expanded: &Expanded,
    group: &str,
    trust_bundle: &str,
    agents: &Agents,
) -> Result<Option<NodeConfig>, Error> {
    let no_group = || Error::NoGroup(group.to_owned());
    let full = &expanded.full;
    let of = full
        .groups
        .iter()
        .find(|other| other.name == group)
        .ok_or_else(no_group)?;
    let said = expanded
        .groups
        .iter()
        .find(|other| other.name() == group)
        .ok_or_else(no_group)?;
    let role = match of.role {
        Role::ControlPlane => InstanceGroupRole::ControlPlane,
        Role::Node => InstanceGroupRole::Node,
        Role::Bastion => return Ok(None),
    };
    find(&agents.nodeup, "nodeup", of)?;
    let (cluster, said) = (&expanded.cluster.spec, &said.spec);
    let ntp = cluster.ntp.as_ref().and_then(|ntp| ntp.managed);
    let updates = said
        .update_policy
        .as_ref()
        .or(cluster.update_policy.as_ref());
    Ok(Some(NodeConfig {
        format: NODE_FORMAT,
        cluster: full.name.clone(),
        group: group.to_owned(),
        role: of.role,
        iam_role: of.iam_role.clone(),
        kubernetes_version: full.kubernetes_version.clone(),
        assets: full
            .assets
            .iter()
            .filter(|asset| asset.arch == of.arch)
            .cloned()
            .collect(),
        agents: own_agents(agents, of),
        api_server: api_server(full, of.role),
        ca_certificates: trust_bundle.to_owned(),
        kubelet: kubelet(said, of)?,
        kube_proxy: kube_proxy(cluster, of)?,
        containerd: containerd::settings(cluster, said),
        networking: full.pods.networking.clone(),
        control_plane: control_plane(cluster, full, of)?,
        files: fixed::files(cluster, said, of, role)?,
        units: fixed::units(cluster, said, of, role, agents)?,
        sysctls: sysctls(full, &cluster.sysctl_parameters, &said.sysctl_parameters),
        packages: cluster
            .packages
            .iter()
            .chain(&said.packages)
            .cloned()
            .collect(),
        volume_mounts: said.volume_mounts.clone(),
        ntp: ntp != Some(false),
        automatic_updates: updates.is_none_or(|policy| policy != "external"),
        docker_config: false,
    }))
}

/// The binaries of the group's architecture; protokube on control planes only.
fn own_agents(agents: &Agents, group: &Group) -> Agents {
    let own = |all: &[super::Agent]| {
        all.iter()
            .filter(|agent| agent.arch == group.arch)
            .cloned()
            .collect()
    };
    let control_plane = group.role == Role::ControlPlane;
    Agents {
        nodeup: own(&agents.nodeup),
        protokube: if control_plane {
            own(&agents.protokube)
        } else {
            Vec::new()
        },
    }
}

/// Where DNS does not have the name, machines have it in their own list of hosts.
fn api_server(full: &FullSpec, role: Role) -> String {
    match role {
        Role::ControlPlane => "https://127.0.0.1".to_owned(),
        _ => format!("https://{}", full.dns.api_internal_name),
    }
}

fn kubelet(said: &InstanceGroupSpec, group: &Group) -> Result<Kubelet, Error> {
    let flags = |source| Error::Flags {
        group: group.name.clone(),
        source,
    };
    let kubelet = said.kubelet.clone().unwrap_or_default();
    Ok(Kubelet {
        flags: components::kubelet(&kubelet).map_err(flags)?,
        config: components::kubelet_config(&kubelet, &group.taints).map_err(flags)?,
    })
}

fn kube_proxy(cluster: &ClusterSpec, group: &Group) -> Result<Option<manifests::Proxy>, Error> {
    let Some(config) = cluster
        .kube_proxy
        .as_ref()
        .filter(|proxy| proxy.enabled != Some(false))
    else {
        return Ok(None);
    };
    let flags = components::proxy(config);
    let flags = flags.map_err(|source| Error::Flags {
        group: group.name.clone(),
        source,
    })?;
    Ok(Some(manifests::Proxy::new(config, flags)))
}

fn control_plane(
    cluster: &ClusterSpec,
    full: &FullSpec,
    group: &Group,
) -> Result<Option<ControlPlane>, Error> {
    if group.role != Role::ControlPlane {
        return Ok(None);
    }
    let flags = |source| Error::Flags {
        group: group.name.clone(),
        source,
    };
    let pods = [
        manifests::api_server(cluster).map_err(flags)?,
        manifests::controller_manager(cluster).map_err(flags)?,
        manifests::scheduler(cluster).map_err(flags)?,
    ];
    let assets = cluster.assets.clone().unwrap_or_default();
    let clusters = cluster.etcd_clusters.iter();
    Ok(Some(ControlPlane {
        static_pods: pods
            .into_iter()
            .map(|pod| (pod.metadata.name.clone(), pod))
            .collect(),
        etcd: cluster.etcd_clusters.iter().map(etcd).collect(),
        etcd_images: clusters
            .map(|etcd| (etcd.name.clone(), manifests::etcd_image(etcd, &assets)))
            .collect(),
        api_names: api_names(cluster, full),
    }))
}

/// What a member runs as. Its volume is left out, and when it is backed up: a larger volume must not mean another
/// machine.
fn etcd(etcd: &EtcdClusterSpec) -> EtcdClusterSpec {
    let member = |member: &EtcdMemberSpec| EtcdMemberSpec {
        name: member.name.clone(),
        instance_group: member.instance_group.clone(),
        ..EtcdMemberSpec::default()
    };
    let manager = etcd.manager.clone().map(|manager| EtcdManagerSpec {
        backup_interval: None,
        backup_retention_days: None,
        discovery_poll_interval: None,
        ..manager
    });
    EtcdClusterSpec {
        etcd_members: etcd.etcd_members.iter().map(member).collect(),
        backups: None,
        manager: manager.filter(|manager| *manager != EtcdManagerSpec::default()),
        ..etcd.clone()
    }
}

/// kOps' names of the API server, and its addresses inside the cluster and the machine.
fn api_names(cluster: &ClusterSpec, full: &FullSpec) -> Vec<String> {
    let domain = &full.pods.dns_domain;
    let mut names = vec![
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        format!("kubernetes.default.svc.{domain}"),
        full.dns.api_public_name.clone(),
        full.dns.api_internal_name.clone(),
        "127.0.0.1".to_owned(),
    ];
    names.extend(first_address(full.pods.service_cidr).map(|address| address.to_string()));
    names.extend(cluster.additional_sans.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// The first address of the range of services: the API server's own service.
fn first_address(range: ipnet::IpNet) -> Option<IpAddr> {
    match range.network() {
        IpAddr::V4(network) => network
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(network) => network
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V6(bits.into())),
    }
}
