//! Builds the NodeConfig of an instance group from the full spec.

use crate::images::control_plane_images;
use crate::nodes::{group_files, warm_pool};
use crate::{FullSpec, Group, NodeTermination, manifests};
use node::config::{
    Agents, ApiProxy, ControlPlane, Distribution, Error, EtcdCluster, EtcdMember, ImageArchive,
    InstanceFacts, NODE_FORMAT, NodeConfig, Role, Termination, find_agent, kernel_parameters,
};
use node::host::check_paths;
use node::{names, ports};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The NodeConfig of a group; `None` for bastions, which are not nodes. `trust_bundle`: the certificates of `kubernetes-ca`, PEM.
pub fn node_config(
    full: &FullSpec,
    group: &str,
    trust_bundle: &str,
    agents: &Agents,
) -> Result<Option<NodeConfig>, Error> {
    let of = full.groups.iter().find(|other| other.name == group);
    let of = of.ok_or_else(|| Error::NoGroup(group.to_owned()))?;
    let Some(node) = &of.node else {
        return Ok(None);
    };
    find_agent(&agents.nodeup, "nodeup", group, of.arch)?;
    let config = NodeConfig {
        format: NODE_FORMAT,
        cluster: full.name.clone(),
        group: group.to_owned(),
        role: of.role,
        iam_role: of.iam_role.clone(),
        kubernetes_version: full.kubernetes_version.clone(),
        assets: full
            .assets
            .iter()
            .filter(|asset| asset.arch == of.arch && (node.nerdctl || asset.name != "nerdctl"))
            .cloned()
            .collect(),
        images: image_archives(full, of),
        agents: own_agents(agents, of),
        api_server: api_server(full, of.role),
        api_proxy: full.api.node_proxy.then(|| api_proxy(full, of.role)),
        ca_certificates: trust_bundle.to_owned(),
        keysets: BTreeMap::new(),
        kubelet: node.kubelet.clone(),
        kube_proxy: full.kube_proxy.clone(),
        containerd: node.containerd.clone(),
        networking: full.pods.networking.clone(),
        ipv6: full.is_ipv6(),
        control_plane: (of.role == Role::ControlPlane).then(|| control_plane(full)),
        files: group_files::group_files(full, of, node)?,
        units: group_files::group_units(full, of, node, agents)?,
        sysctls: kernel_parameters(
            full.node_port_range,
            &full.pods.networking,
            full.is_ipv6(),
            &node.sysctls,
        ),
        packages: node.packages.clone(),
        volume_mounts: node.volume_mounts.clone(),
        ntp: node.ntp,
        automatic_updates: node.automatic_updates,
        docker_config: false,
        warm_pool: warm_pool::warm_pool(full, of, node)?,
    };
    check_node_config(&config)?;
    Ok(Some(config))
}

/// An error if nodeup could not make an instance of it, of whatever distribution.
pub fn check_node_config(config: &NodeConfig) -> Result<(), Error> {
    for distribution in [Distribution::Debian, Distribution::AmazonLinux] {
        let host = InstanceFacts {
            distribution,
            ..InstanceFacts::placeholder()
        };
        // What else it says, of downloads and keysets, is told where they are known.
        if let Err(node::host::Error::Node(error)) = check_paths(config, &host) {
            return Err(error);
        }
    }
    Ok(())
}

/// The archives of the group's architecture; workers need none of the control plane's components.
fn image_archives(full: &FullSpec, group: &Group) -> Vec<ImageArchive> {
    let not_needed = match group.role {
        Role::ControlPlane => Vec::new(),
        Role::Node | Role::Bastion => control_plane_images(full),
    };
    let all = full.image_archives.iter();
    all.filter(|archive| archive.arch == group.arch && !not_needed.contains(&archive.image))
        .cloned()
        .collect()
}

/// The agents of the group's architecture; protokube only on control planes.
fn own_agents(agents: &Agents, group: &Group) -> Agents {
    let own = |all: &[node::config::Agent]| {
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

/// URL of the API server for instances of this role. Without DNS, the name is in `/etc/hosts`. Control planes use no proxy: in an
/// upgrade a new kubelet or controller must not meet an older API server.
fn api_server(full: &FullSpec, role: Role) -> String {
    match role {
        Role::ControlPlane => "https://127.0.0.1".to_owned(),
        _ if full.api.node_proxy => format!("https://127.0.0.1:{}", ports::API_PROXY),
        _ => format!("https://{}", full.dns.api_internal_name),
    }
}

/// The proxy for what runs on the host's network of every node alike.
fn api_proxy(full: &FullSpec, role: Role) -> ApiProxy {
    let server = match role {
        Role::ControlPlane => "127.0.0.1".to_owned(),
        _ => full.dns.api_internal_name.clone(),
    };
    ApiProxy { server }
}

fn control_plane(full: &FullSpec) -> ControlPlane {
    let pods = [
        manifests::api_server_pod(full),
        manifests::controller_manager_pod(full),
        manifests::scheduler_pod(full),
    ];
    ControlPlane {
        static_pods: pods
            .into_iter()
            .map(|pod| (pod.metadata.name.clone(), pod))
            .collect(),
        etcd: full.etcd.iter().map(etcd_cluster).collect(),
        api_names: api_names(full),
        termination: full
            .node_termination
            .as_ref()
            .map(|settings| termination(full, settings)),
        aws_iam_authenticator: full.addons.aws_iam_authenticator.is_some(),
    }
}

fn termination(full: &FullSpec, settings: &NodeTermination) -> Termination {
    Termination {
        account: full.placement.account.clone(),
        queue: names::queue_name(&full.name),
        spot_interruption: settings.spot_interruption,
        scheduled_events: settings.scheduled_events,
        rebalance: settings.rebalance,
        exclude_from_load_balancers: settings.exclude_from_load_balancers,
        taint: settings.taint,
        pod_grace_seconds: settings.pod_grace_seconds,
    }
}

/// The etcd cluster without its volumes: a larger volume must not require new instances.
fn etcd_cluster(etcd: &crate::EtcdCluster) -> EtcdCluster {
    let member = |member: &crate::EtcdMember| EtcdMember {
        name: member.name.clone(),
        group: member.group.clone(),
    };
    EtcdCluster {
        name: etcd.name.clone(),
        version: etcd.version.clone(),
        image: etcd.image.clone(),
        members: etcd.members.iter().map(member).collect(),
        cpu_request: etcd.cpu_request.clone(),
        memory_request: etcd.memory_request.clone(),
        environment: etcd.environment.clone(),
    }
}

/// Names and addresses in the API server's certificate, as in kOps.
fn api_names(full: &FullSpec) -> Vec<String> {
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
    names.extend(full.api.additional_names.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// The first address of the service range, which is that of the service `kubernetes`.
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
