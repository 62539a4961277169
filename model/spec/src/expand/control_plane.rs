//! The control plane's components: kube-apiserver, the controller managers, kube-scheduler.

use super::assets::{component_image, image, remapped_image};
use super::fill::{fill, fill_list};
use super::{Found, Known};
use crate::api::cluster::ClusterSpec;
use crate::api::kube_controller_manager::LeaderElectionConfiguration;

/// Admission plugins of kube-apiserver, as kOps.
const ADMISSION_PLUGINS: [&str; 11] = [
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeRestriction",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// The AWS cloud controller manager that goes with every Kubernetes version kctl reads.
const CLOUD_CONTROLLER_MANAGER: &str = "v1.36.1";

/// Node ports of clusters that name no range: Kubernetes' own.
const NODE_PORTS: (u16, u16) = (30_000, 32_767);

/// Flags as kOps has them.
pub(super) fn complete(spec: &mut ClusterSpec, known: &Known) {
    api_server(spec, known);
    admission(spec);
    service_accounts(spec);
    controller_manager(spec, known);
    cloud_controller_manager(spec, known);
    scheduler(spec, known);
}

fn api_server(spec: &mut ClusterSpec, known: &Known) {
    let image = component_image("kube-apiserver", spec, known);
    let main = spec.etcd_clusters.iter().find(|etcd| etcd.name == "main");
    let servers = main.map_or(1, |etcd| etcd.etcd_members.len());
    let services = spec.service_cluster_ip_range.clone().unwrap_or_default();
    let always_allow = spec
        .authorization
        .as_ref()
        .is_some_and(|authorization| authorization.always_allow.is_some());
    let api = spec.kube_api_server.get_or_insert_default();
    fill(&mut api.image, image);
    fill(&mut api.allow_privileged, true);
    fill(&mut api.anonymous_auth, false);
    fill(
        &mut api.api_server_count,
        i32::try_from(servers).unwrap_or(1),
    );
    let mode = if always_allow {
        "AlwaysAllow"
    } else {
        "Node,RBAC"
    };
    fill(&mut api.authorization_mode, mode);
    fill(&mut api.bind_address, "0.0.0.0");
    if known.version.minor < 33 {
        fill(&mut api.cloud_provider, "external");
    }
    fill_list(&mut api.etcd_servers, &["https://127.0.0.1:4001"]);
    fill_list(
        &mut api.etcd_servers_overrides,
        &["/events#https://127.0.0.1:4002"],
    );
    fill_list(
        &mut api.kubelet_preferred_address_types,
        &["InternalIP", "Hostname", "ExternalIP"],
    );
    fill(&mut api.log_level, 2);
    fill_list(&mut api.requestheader_allowed_names, &["aggregator"]);
    fill_list(
        &mut api.requestheader_extra_header_prefixes,
        &["X-Remote-Extra-"],
    );
    fill_list(&mut api.requestheader_group_headers, &["X-Remote-Group"]);
    fill_list(&mut api.requestheader_username_headers, &["X-Remote-User"]);
    fill(&mut api.secure_port, i32::from(node::ports::API));
    fill(&mut api.service_cluster_ip_range, services);
    fill(&mut api.storage_backend, "etcd3");
}

/// Admission plugins: the user's, or the default ones without those he disables; then those he
/// appends, for which kube-apiserver has no flag.
fn admission(spec: &mut ClusterSpec) {
    let api = spec.kube_api_server.get_or_insert_default();
    if !api.admission_control.is_empty() {
        return;
    }
    if api.enable_admission_plugins.is_empty() {
        let defaults = ADMISSION_PLUGINS.iter().map(|plugin| (*plugin).to_owned());
        api.enable_admission_plugins = defaults
            .filter(|plugin| !api.disable_admission_plugins.contains(plugin))
            .collect();
    }
    for plugin in &api.append_admission_plugins {
        if !api.enable_admission_plugins.contains(plugin) {
            api.enable_admission_plugins.push(plugin.clone());
        }
    }
}

/// Who issues service account tokens: the API's name inside the cluster.
fn service_accounts(spec: &mut ClusterSpec) {
    let name = spec.master_internal_name.clone().unwrap_or_default();
    let api = spec.kube_api_server.get_or_insert_default();
    fill(&mut api.service_account_issuer, format!("https://{name}"));
    let issuer = api.service_account_issuer.clone().unwrap_or_default();
    fill(
        &mut api.service_account_jwksuri,
        format!("{}/openid/v1/jwks", issuer.trim_end_matches('/')),
    );
    fill_list(&mut api.api_audiences, &["kubernetes.svc.default"]);
}

fn controller_manager(spec: &mut ClusterSpec, known: &Known) {
    let image = component_image("kube-controller-manager", spec, known);
    let pods = spec.pod_cidr.clone().unwrap_or_default();
    let manager = spec.kube_controller_manager.get_or_insert_default();
    fill(&mut manager.image, image);
    fill(&mut manager.allocate_node_cidrs, true);
    if manager.disable_attach_detach_reconcile_sync != Some(true) {
        fill(&mut manager.attach_detach_reconcile_sync_period, "1m0s");
    }
    fill(&mut manager.cloud_provider, "external");
    fill(&mut manager.cluster_cidr, pods);
    fill(&mut manager.cluster_name, known.name.as_str());
    // Routes are the cloud controller manager's.
    fill(&mut manager.configure_cloud_routes, false);
    elect(&mut manager.leader_election);
    fill(&mut manager.log_level, 2);
    fill(&mut manager.use_service_account_credentials, true);
}

fn cloud_controller_manager(spec: &mut ClusterSpec, known: &Known) {
    let assets = spec.assets.clone().unwrap_or_default();
    let pods = spec.pod_cidr.clone().unwrap_or_default();
    let networking = spec.networking.as_ref();
    let kubenet = networking.is_some_and(|networking| networking.kubenet.is_some());
    let manager = spec.cloud_controller_manager.get_or_insert_default();
    let default = image(
        "provider-aws/cloud-controller-manager",
        CLOUD_CONTROLLER_MANAGER,
    );
    fill(&mut manager.image, remapped_image(&default, &assets));
    fill(&mut manager.allocate_node_cidrs, true);
    fill(&mut manager.cloud_provider, "aws");
    fill(&mut manager.cluster_cidr, pods);
    fill(&mut manager.cluster_name, known.name.as_str());
    fill(&mut manager.configure_cloud_routes, kubenet);
    fill(&mut manager.cpu_request, "200m");
    elect(&mut manager.leader_election);
    fill(&mut manager.log_level, 2);
    fill(&mut manager.use_service_account_credentials, true);
}

fn scheduler(spec: &mut ClusterSpec, known: &Known) {
    let image = component_image("kube-scheduler", spec, known);
    let scheduler = spec.kube_scheduler.get_or_insert_default();
    fill(&mut scheduler.image, image);
    elect(&mut scheduler.leader_election);
    fill(&mut scheduler.log_level, 2);
}

fn elect(election: &mut Option<LeaderElectionConfiguration>) {
    fill(&mut election.get_or_insert_default().leader_elect, true);
}

/// The node ports of a completed spec.
pub(super) fn node_port_range(spec: &ClusterSpec, found: &mut Found) -> Option<(u16, u16)> {
    let api = spec.kube_api_server.as_ref();
    let Some(text) = api.and_then(|api| api.service_node_port_range.as_deref()) else {
        return Some(NODE_PORTS);
    };
    let range = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)))
        .filter(|(first, last): &(u16, u16)| first <= last);
    if range.is_none() {
        found.error(
            "spec.kubeAPIServer.serviceNodePortRange",
            format!("{text:?} is not a range of ports"),
            "write it as 30000-32767",
        );
    }
    range
}
