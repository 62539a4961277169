//! The control plane's components: kube-apiserver, the controller managers, kube-scheduler.

use super::assets::{component_image, registry_image, remapped_image};
use super::fill::{fill, fill_list};
use super::pod_identity::published_issuer;
use super::{Context, Findings, profile};
use crate::api::cluster::ClusterSpec;
use crate::api::kube_controller_manager::LeaderElectionConfiguration;
use crate::validate::components::parse_port_range;

/// Admission plugins of kube-apiserver, as in kOps.
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

/// The range of node ports if the spec sets none: Kubernetes' default.
const NODE_PORTS: (u16, u16) = (30_000, 32_767);

/// The AWS cloud controller manager that goes with a minor of Kubernetes 1. Its version 1.N is for Kubernetes 1.N; minors before 1.37 keep
/// that of 1.36, as in kOps of August 2026.
fn cloud_controller_manager(minor: u32) -> &'static str {
    match minor {
        ..=36 => "v1.36.1",
        37.. => "v1.37.0",
    }
}

/// Fills in the settings of all control-plane components, with kOps' defaults.
pub(super) fn complete_control_plane(
    spec: &mut ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    complete_api_server(spec, context, findings);
    fill_admission_plugins(spec);
    fill_service_accounts(spec, context);
    complete_controller_manager(spec, context);
    complete_cloud_controller_manager(spec, context);
    complete_scheduler(spec, context);
}

fn complete_api_server(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    let image = component_image("kube-apiserver", spec, &context.control_plane_version);
    let main = spec.etcd_clusters.iter().find(|etcd| etcd.name == "main");
    let servers = main.map_or(1, |etcd| etcd.etcd_members.len());
    let services = spec.service_cluster_ip_range.clone().unwrap_or_default();
    let ipv6 = spec.is_ipv6();
    let always_allow = spec
        .authorization
        .as_ref()
        .is_some_and(|authorization| authorization.always_allow.is_some());
    let metrics_server = spec.metrics_server.as_ref();
    let has_metrics_server = metrics_server.is_some_and(|server| server.enabled == Some(true));
    let api = spec.kube_api_server.get_or_insert_default();
    fill(&mut api.image, image);
    if has_metrics_server {
        // Else the API server asks the same one of its pods as long as the connection lives.
        fill(&mut api.enable_aggregator_routing, true);
    }
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
    fill(&mut api.bind_address, if ipv6 { "::" } else { "0.0.0.0" });
    if context.control_plane_version.minor < 33 {
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
    if let Some(other) = api
        .service_cluster_ip_range
        .as_ref()
        .filter(|own| **own != services)
    {
        findings.add_error(
            "spec.kubeAPIServer.serviceClusterIPRange",
            format!("{other} is not the range of the cluster's services, {services}"),
            "set spec.serviceClusterIPRange, and remove this: certificates and the DNS server follow it",
        );
    }
    fill(&mut api.service_cluster_ip_range, services);
    fill(&mut api.storage_backend, "etcd3");
}

/// Fills in the admission plugins: the user's, or the defaults without `disableAdmissionPlugins`; then
/// `appendAdmissionPlugins`, for which kube-apiserver has no flag.
fn fill_admission_plugins(spec: &mut ClusterSpec) {
    let of_profile = profile::admission_plugins(spec);
    let api = spec.kube_api_server.get_or_insert_default();
    if !api.admission_control.is_empty() {
        return;
    }
    if api.enable_admission_plugins.is_empty() {
        let defaults = ADMISSION_PLUGINS.iter().chain(&of_profile);
        let defaults = defaults.map(|plugin| (*plugin).to_owned());
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

/// Fills in the issuer of service account tokens: where it is published, else the internal name of the API.
fn fill_service_accounts(spec: &mut ClusterSpec, context: &Context) {
    let name = spec.master_internal_name.clone().unwrap_or_default();
    let published = published_issuer(spec, context);
    let api = spec.kube_api_server.get_or_insert_default();
    fill(
        &mut api.service_account_issuer,
        published.unwrap_or_else(|| format!("https://{name}")),
    );
    let issuer = api.service_account_issuer.clone().unwrap_or_default();
    fill(
        &mut api.service_account_jwksuri,
        format!("{}/openid/v1/jwks", issuer.trim_end_matches('/')),
    );
    fill_list(&mut api.api_audiences, &["kubernetes.svc.default"]);
}

/// The range of which controllers give each Node a part. In an IPv6 cluster, protokube gives it a part of its subnet.
fn pod_range_of_controllers(spec: &ClusterSpec) -> Option<String> {
    spec.pod_cidr.clone().filter(|_| !spec.is_ipv6())
}

fn complete_controller_manager(spec: &mut ClusterSpec, context: &Context) {
    let version = &context.control_plane_version;
    let image = component_image("kube-controller-manager", spec, version);
    let ipv6 = spec.is_ipv6();
    let pods = pod_range_of_controllers(spec);
    let manager = spec.kube_controller_manager.get_or_insert_default();
    fill(&mut manager.image, image);
    fill(&mut manager.allocate_node_cidrs, !ipv6);
    if ipv6 {
        fill_list(&mut manager.controllers, &["*", "-nodeipam"]);
    }
    if manager.disable_attach_detach_reconcile_sync != Some(true) {
        fill(&mut manager.attach_detach_reconcile_sync_period, "1m0s");
    }
    fill(&mut manager.cloud_provider, "external");
    manager.cluster_cidr = manager.cluster_cidr.take().or(pods);
    fill(&mut manager.cluster_name, context.name.as_str());
    // The cloud controller manager configures routes.
    fill(&mut manager.configure_cloud_routes, false);
    enable_leader_election(&mut manager.leader_election);
    fill(&mut manager.log_level, 2);
    fill(&mut manager.use_service_account_credentials, true);
}

fn complete_cloud_controller_manager(spec: &mut ClusterSpec, context: &Context) {
    let assets = spec.assets.clone().unwrap_or_default();
    let ipv6 = spec.is_ipv6();
    let pods = pod_range_of_controllers(spec);
    let networking = spec.networking.as_ref();
    let kubenet = networking.is_some_and(|networking| networking.kubenet.is_some());
    let manager = spec.cloud_controller_manager.get_or_insert_default();
    let default = registry_image(
        "provider-aws/cloud-controller-manager",
        cloud_controller_manager(context.version.minor),
    );
    fill(&mut manager.image, remapped_image(&default, &assets));
    fill(&mut manager.allocate_node_cidrs, !ipv6);
    fill(&mut manager.cloud_provider, "aws");
    manager.cluster_cidr = manager.cluster_cidr.take().or(pods);
    fill(&mut manager.cluster_name, context.name.as_str());
    fill(&mut manager.configure_cloud_routes, kubenet);
    fill(&mut manager.cpu_request, "200m");
    enable_leader_election(&mut manager.leader_election);
    fill(&mut manager.log_level, 2);
    fill(&mut manager.use_service_account_credentials, true);
}

fn complete_scheduler(spec: &mut ClusterSpec, context: &Context) {
    let image = component_image("kube-scheduler", spec, &context.control_plane_version);
    let scheduler = spec.kube_scheduler.get_or_insert_default();
    fill(&mut scheduler.image, image);
    enable_leader_election(&mut scheduler.leader_election);
    fill(&mut scheduler.log_level, 2);
}

fn enable_leader_election(election: &mut Option<LeaderElectionConfiguration>) {
    fill(&mut election.get_or_insert_default().leader_elect, true);
}

/// First and last node port of a completed spec.
pub(super) fn node_port_range(spec: &ClusterSpec, findings: &mut Findings) -> Option<(u16, u16)> {
    let api = spec.kube_api_server.as_ref();
    let Some(text) = api.and_then(|api| api.service_node_port_range.as_deref()) else {
        return Some(NODE_PORTS);
    };
    let range = parse_port_range(text);
    if range.is_none() {
        findings.add_error(
            "spec.kubeAPIServer.serviceNodePortRange",
            format!("{text:?} is not a range of ports"),
            "write it as 30000-32767",
        );
    }
    range
}
