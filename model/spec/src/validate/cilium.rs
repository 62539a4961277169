//! Rules of cilium. Where a rule is of cilium itself, its agent would not start with what breaks it.

use super::addons::needs_cert_manager;
use crate::api::cilium::{CiliumNetworkingSpec, ISTIO_PROXY};
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// The minor version whose settings kctl writes.
const MINOR: &str = "v1.20.";

/// Packets between nodes leave as they are.
const NO_TUNNEL: &str = "disabled";

/// Most clusters of a mesh.
const MAX_ID: i64 = 255;

/// Longest name in a mesh, and its form (cilium's `pkg/clustermesh/types`).
const MAX_NAME: usize = 32;

/// Entries of cilium's ConfigMap from which other things follow, and the field to use.
const DERIVED: &[(&str, &str)] = &[
    ("cluster-health-port", "there is none: the port is 4240"),
    ("cluster-id", "use spec.networking.cilium.clusterID"),
    ("cluster-name", "use spec.networking.cilium.clusterName"),
    (
        "cni-chaining-mode",
        "use spec.networking.cilium.chainingMode",
    ),
    ("enable-hubble", "use spec.networking.cilium.hubble"),
    ("enable-ipsec", "there is none"),
    ("enable-ipv4", "there is none"),
    ("enable-ipv6", "there is none"),
    (
        "enable-wireguard",
        "use spec.networking.cilium.encryptionType",
    ),
    ("hubble-listen-address", "there is none: the port is 4244"),
    ("ipam", "use spec.networking.cilium.ipam"),
    (
        "kube-proxy-replacement",
        "use spec.networking.cilium.enableNodePort",
    ),
    (
        "node-port-range",
        "use spec.kubeAPIServer.serviceNodePortRange",
    ),
    ("routing-mode", "use spec.networking.cilium.tunnel"),
    (
        "tunnel-port",
        "there is none: it is that of the tunnel's protocol",
    ),
    ("tunnel-protocol", "use spec.networking.cilium.tunnel"),
];

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let Some(cilium) = networking.and_then(|networking| networking.cilium.as_ref()) else {
        return;
    };
    check_version(cilium, problems);
    check_proxy(cilium, spec, problems);
    warn_of_gone_settings(cilium, problems);
    check_encryption(cilium, spec, problems);
    check_mesh(cilium, problems);
    check_ways(cilium, spec, problems);
    check_tables(cilium, spec, problems);
    for (entry, next) in DERIVED {
        if cilium.extra_config.contains_key(*entry) {
            let path = format!("spec.networking.cilium.extraConfig.{entry}");
            let problem = Problem::error(path, "other parts of the cluster follow from this entry");
            problems.push(problem.hint(*next));
        }
    }
    let hubble = cilium.hubble.as_ref();
    if hubble.is_some_and(|hubble| hubble.enabled == Some(true)) {
        let path = "spec.networking.cilium.hubble.enabled";
        needs_cert_manager(path, "hubble", spec, problems);
    }
}

fn refuse(problems: &mut Vec<Problem>, field: &str, message: &str, hint: &str) {
    let path = format!("spec.networking.cilium.{field}");
    problems.push(Problem::error(path, message).hint(hint));
}

fn check_mesh(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let id = cilium.cluster_id.unwrap_or_default();
    let name = cilium.cluster_name.as_deref().unwrap_or("default");
    if id > MAX_ID {
        let message = format!("{id} is no number of a cluster");
        refuse(
            problems,
            "clusterID",
            &message,
            "use 1 to 255, or 0 for none",
        );
    }
    if id != 0 && name == "default" {
        let message = "a cluster of a mesh needs a name other than default";
        let hint = "set spec.networking.cilium.clusterName";
        refuse(problems, "clusterID", message, hint);
    }
    if name.len() > MAX_NAME || name.contains('.') {
        let message = format!("{name} is no name of a cluster for cilium");
        let hint = "use at most 32 lower-case letters, digits and hyphens";
        refuse(problems, "clusterName", &message, hint);
    }
}

/// The ways of packets between pods.
fn check_ways(cilium: &CiliumNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if spec.is_ipv6() {
        check_native_ways(cilium, problems);
    } else {
        check_tunnel(cilium, problems);
    }
}

/// The VPC knows where pods of an IPv6 cluster are: their packets leave as they are, with their own addresses.
fn check_native_ways(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let tunnel = cilium.tunnel.as_deref().unwrap_or(NO_TUNNEL);
    let masked = "addresses of pods of an IPv6 cluster are not masqueraded";
    let refused = [
        (
            "tunnel",
            tunnel != NO_TUNNEL,
            "pods of an IPv6 cluster need no tunnel: the VPC knows where they are",
        ),
        (
            "disableMasquerade",
            cilium.disable_masquerade == Some(false),
            masked,
        ),
        (
            "enableBPFMasquerade",
            cilium.enable_bpf_masquerade == Some(true),
            masked,
        ),
        (
            "autoDirectNodeRoutes",
            cilium.auto_direct_node_routes == Some(true),
            "the VPC routes between pods of an IPv6 cluster",
        ),
    ];
    for (field, _, message) in refused.into_iter().filter(|(_, refused, _)| *refused) {
        refuse(problems, field, message, "leave it out");
    }
}

/// Pods of an IPv4 cluster have addresses that AWS does not know, so there is a tunnel, which routes to nodes of the own subnet contradict.
fn check_tunnel(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    if cilium.tunnel.as_deref() == Some(NO_TUNNEL) {
        let message = "without a tunnel nothing brings packets to pods of other nodes: only in an IPv6 cluster AWS knows where these are";
        refuse(problems, "tunnel", message, "use vxlan or geneve");
    }
    if cilium.auto_direct_node_routes == Some(true) {
        let message = "cilium makes no routes to other nodes beside a tunnel";
        refuse(problems, "autoDirectNodeRoutes", message, "remove it");
    }
    if cilium.disable_masquerade == Some(true) && cilium.enable_bpf_masquerade == Some(true) {
        let message = "addresses that keep what they are cannot be masqueraded in BPF";
        let hint = "remove it, or disableMasquerade";
        refuse(problems, "enableBPFMasquerade", message, hint);
    }
}

fn check_tables(cilium: &CiliumNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let needs_rules = cilium.enable_l7_proxy != Some(false) || replaces_proxy(spec);
    if cilium.iptables_rules_noinstall == Some(true) && needs_rules {
        let message =
            "cilium needs rules of iptables for its proxy, and where it replaces kube-proxy";
        let hint = "remove it, or set enableL7Proxy: false and leave Services to kube-proxy";
        refuse(problems, "IPTablesRulesNoinstall", message, hint);
    }
    // The agents keep the objects because policies need them, and the operator deletes all of them at each start.
    let policies = cilium.enable_policy.as_deref() != Some("never");
    if cilium.disable_endpoint_crd == Some(true) && policies {
        let message = "policies need CiliumEndpoints";
        let hint = "remove it, or set enablePolicy: never";
        refuse(problems, "disableEndpointCRD", message, hint);
    }
}

/// kOps takes IPsec where the spec names no type, and no encryption on IPv6.
fn check_encryption(
    cilium: &CiliumNetworkingSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    if cilium.enable_encryption == Some(true) && spec.is_ipv6() {
        let message = "cilium encrypts packets of IPv4 clusters only, as in kOps";
        refuse(problems, "enableEncryption", message, "remove it");
    } else if cilium.enable_encryption == Some(true) && cilium.encryption_type.is_none() {
        let message = "kctl cannot do encryption by IPsec, which is the default";
        let hint = "set spec.networking.cilium.encryptionType: wireguard";
        refuse(problems, "enableEncryption", message, hint);
    }
}

/// What kOps fills in the same way for everybody, and no cilium of this minor version reads.
fn warn_of_gone_settings(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let proxy = cilium.sidecar_istio_proxy_image.as_deref();
    let updates = cilium.disable_cnp_status_updates == Some(false);
    let identity = cilium.enable_remote_node_identity == Some(false);
    let gone = [
        ("disableCNPStatusUpdates", updates),
        ("enableRemoteNodeIdentity", identity),
        (
            "sidecarIstioProxyImage",
            proxy.is_some_and(|image| image != ISTIO_PROXY),
        ),
    ];
    for (name, _) in gone.into_iter().filter(|(_, set)| *set) {
        let path = format!("spec.networking.cilium.{name}");
        let message = format!("it has no effect: cilium {MINOR}x no longer has it");
        problems.push(Problem::warning(path, message).hint("remove it"));
    }
}

/// As in kOps: one minor version, whose objects and settings are known.
fn check_version(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let version = cilium.version.as_deref();
    if let Some(version) = version.filter(|version| !version.starts_with(MINOR)) {
        let message = format!("kctl installs cilium {MINOR}x, not {version}");
        let hint = "remove it to get the version that kctl has been tried with";
        refuse(problems, "version", &message, hint);
    }
}

/// Whether kube-proxy is off.
fn replaces_proxy(spec: &ClusterSpec) -> bool {
    spec.kube_proxy.as_ref().and_then(|proxy| proxy.enabled) == Some(false)
}

/// Two programs must not answer for the same Services, nor none.
fn check_proxy(cilium: &CiliumNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let replaced = cilium.enable_node_port == Some(true);
    if replaced && !replaces_proxy(spec) {
        let message = "cilium replaces kube-proxy, which is enabled";
        let hint = "set spec.kubeProxy.enabled: false";
        refuse(problems, "enableNodePort", message, hint);
    }
    if !replaced && replaces_proxy(spec) {
        let problem = Problem::error(
            "spec.kubeProxy.enabled",
            "nothing would answer for Services: cilium replaces kube-proxy only if it is told to",
        );
        problems.push(problem.hint("set spec.networking.cilium.enableNodePort: true"));
    }
}
