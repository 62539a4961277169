//! Rules of cilium. Where a rule is of cilium itself, its agent would not start with what breaks it.

use super::addons::needs_cert_manager;
use crate::api::cilium::{
    CiliumNetworkingSpec, ISTIO_PROXY, OTHER_CONNECTIONS, TCP_CONNECTIONS, TRANSLATIONS,
};
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// The minor version whose settings kctl writes.
const MINOR: &str = "v1.20.";

/// Packets between nodes leave as they are.
const NO_TUNNEL: &str = "disabled";

/// Most clusters of a mesh.
const MAX_ID: i64 = 255;

/// Beside addresses of network interfaces (<https://github.com/cilium/cilium/issues/21330>).
const MAX_ID_IN_VPC: i64 = 127;

/// Longest name in a mesh, and its form (cilium's `pkg/clustermesh/types`).
const MAX_NAME: usize = 32;

/// Least and most entries of the tables of connections and translations (`LimitTableMin` and `LimitTableMax` in cilium's `pkg/option`).
const ENTRIES: std::ops::RangeInclusive<i64> = 1024..=16_777_216;

/// Entries of cilium's ConfigMap from which other things follow, and the field to use.
const DERIVED: &[(&str, &str)] = &[
    ("annotate-k8s-node", NO_RIGHTS),
    ("cluster-health-port", "there is none: the port is 4240"),
    ("cluster-id", "use spec.networking.cilium.clusterID"),
    ("cluster-name", "use spec.networking.cilium.clusterName"),
    (
        "cni-chaining-mode",
        "use spec.networking.cilium.chainingMode",
    ),
    ("enable-bgp-control-plane", NO_RIGHTS),
    (
        "enable-gateway-api",
        "use spec.networking.cilium.gatewayAPI",
    ),
    ("enable-hubble", "use spec.networking.cilium.hubble"),
    (
        "enable-ingress-controller",
        "use spec.networking.cilium.ingress",
    ),
    ("eni-gc-tags", "there is none"),
    ("eni-security-group-tags", INTERFACES),
    ("eni-security-groups", INTERFACES),
    ("eni-subnet-ids", INTERFACES),
    ("eni-subnet-tags", INTERFACES),
    ("eni-tags", "use spec.cloudLabels"),
    ("enable-ipsec", "use spec.networking.cilium.encryptionType"),
    ("enable-ipv4", "there is none"),
    ("enable-ipv6", "there is none"),
    ("enable-l2-announcements", NO_RIGHTS),
    (
        "enable-wireguard",
        "use spec.networking.cilium.encryptionType",
    ),
    (
        "external-envoy-proxy",
        "there is none: the proxy is in the agents",
    ),
    ("gateway-api-secrets-namespace", "there is none"),
    ("hubble-listen-address", "there is none: the port is 4244"),
    ("identity-management-mode", NO_RIGHTS),
    ("ingress-secrets-namespace", "there is none"),
    (
        "ingress-shared-lb-service-name",
        "use spec.networking.cilium.ingress.sharedLoadBalancerServiceName",
    ),
    ("ipam", "use spec.networking.cilium.ipam"),
    ("ipsec-key-file", "use kctl create secret ciliumpassword"),
    ("ipam-static-ip-tags", "there is none"),
    (
        "kube-proxy-replacement",
        "use spec.networking.cilium.enableNodePort",
    ),
    (
        "node-port-range",
        "use spec.kubeAPIServer.serviceNodePortRange",
    ),
    ("policy-secrets-only-from-secrets-namespace", NO_RIGHTS),
    ("routing-mode", "use spec.networking.cilium.tunnel"),
    ("subnet-ids-filter", INTERFACES),
    ("subnet-tags-filter", INTERFACES),
    (
        "tunnel-port",
        "there is none: it is that of the tunnel's protocol",
    ),
    ("tunnel-protocol", "use spec.networking.cilium.tunnel"),
];

/// With them an agent asks for interfaces, which no agent may, or the operator does not find those of instances.
const INTERFACES: &str =
    "there is none: interfaces have the security groups and the subnet of their instance";

/// What agents or the operator would need rights for which their accounts do not have.
const NO_RIGHTS: &str = "there is none: the service accounts have no rights for it";

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
    if spec.is_ipv6() {
        check_native_packets(cilium, problems);
    } else {
        check_packets(cilium, problems);
    }
    check_tables(cilium, spec, problems);
    check_sizes(cilium, problems);
    warn_of_further_ranges(cilium, spec, problems);
    for (entry, next) in DERIVED {
        if cilium.extra_config.contains_key(*entry) {
            let path = format!("spec.networking.cilium.extraConfig.{entry}");
            let problem = Problem::error(path, "other parts of the cluster follow from this entry");
            problems.push(problem.hint(*next));
        }
    }
    check_ingress(cilium, problems);
    if cilium.has_hubble() {
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
    if cilium.uses_interfaces() && id > MAX_ID_IN_VPC {
        let message = format!(
            "cilium would drop packets that policies allow, with {id} and interfaces of the VPC"
        );
        let hint = "use 1 to 127, or 0 for none";
        refuse(problems, "clusterID", &message, hint);
    } else if id > MAX_ID {
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

/// The VPC knows where pods of an IPv6 cluster are: their packets leave as they are, with their own addresses.
fn check_native_packets(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let disabled = |tunnel: &String| tunnel == NO_TUNNEL;
    let masked = "addresses of pods of an IPv6 cluster are not masqueraded";
    let refused = [
        (
            "ipam",
            cilium.uses_interfaces(),
            "cilium gives pods addresses of interfaces in IPv4 clusters only, as in kOps",
        ),
        (
            "tunnel",
            !cilium.tunnel.as_ref().is_none_or(disabled),
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

/// How packets reach pods of other nodes. Routes between nodes contradict a tunnel, and in the VPC they are there.
fn check_packets(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let in_vpc = cilium.uses_interfaces();
    let disabled = cilium.tunnel.as_deref() == Some(NO_TUNNEL);
    if in_vpc && cilium.tunnel.is_some() && !disabled {
        let message = "pods with addresses of the VPC need no tunnel, and cilium makes none";
        refuse(problems, "tunnel", message, "remove it");
    }
    if !in_vpc && disabled {
        let message = "EC2 drops packets of pods whose addresses are none of the VPC";
        let hint = "remove it, or set spec.networking.cilium.ipam: eni";
        refuse(problems, "tunnel", message, hint);
    }
    if in_vpc && cilium.disable_masquerade == Some(true) {
        let message = "EC2 has no public address for the address of a pod";
        refuse(problems, "disableMasquerade", message, "remove it");
    }
    if cilium.auto_direct_node_routes == Some(true) {
        let message = "cilium makes no routes to other nodes: a tunnel or the VPC leads there";
        refuse(problems, "autoDirectNodeRoutes", message, "remove it");
    }
    if cilium.disable_masquerade == Some(true) && cilium.enable_bpf_masquerade == Some(true) {
        let message = "addresses that keep what they are cannot be masqueraded in BPF";
        let hint = "remove it, or disableMasquerade";
        refuse(problems, "enableBPFMasquerade", message, hint);
    }
}

fn check_tables(cilium: &CiliumNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let masquerades = cilium.enable_bpf_masquerade;
    let needs_rules = cilium.enable_l7_proxy != Some(false)
        || replaces_proxy(spec)
        || masquerades.unwrap_or_else(|| cilium.uses_interfaces());
    if cilium.iptables_rules_noinstall == Some(true) && needs_rules {
        let message = "cilium needs rules of iptables for its proxy, to masquerade in BPF, and where it replaces kube-proxy";
        let hint = "remove it, or set enableL7Proxy and enableBPFMasquerade to false and leave Services to kube-proxy";
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

/// An agent does not start with other sizes (`checkMapSizeLimits` in cilium's `pkg/option`).
fn check_sizes(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let tcp = cilium.bpf_ct_global_tcp_max.unwrap_or(TCP_CONNECTIONS);
    let other = cilium.bpf_ct_global_any_max.unwrap_or(OTHER_CONNECTIONS);
    let translations = cilium.bpf_nat_global_max.unwrap_or(TRANSLATIONS);
    for (field, size) in [
        ("bpfCTGlobalTCPMax", tcp),
        ("bpfCTGlobalAnyMax", other),
        ("bpfNATGlobalMax", translations),
    ] {
        if !ENTRIES.contains(&size) {
            let message = format!("cilium has no table of {size} entries");
            refuse(problems, field, &message, "use 1024 to 16777216");
        }
    }
    let all = tcp.saturating_add(other);
    if translations != TRANSLATIONS && translations > all {
        let message =
            format!("there are more translations than the {all} connections of the other tables");
        let hint = "use at most bpfCTGlobalTCPMax and bpfCTGlobalAnyMax together";
        refuse(problems, "bpfNATGlobalMax", &message, hint);
    }
}

/// Agents take the first range of the VPC for all of it (`pkg/ipam/eni.go` of cilium).
fn warn_of_further_ranges(
    cilium: &CiliumNetworkingSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let said = cilium.extra_config.contains_key("ipv4-native-routing-cidr");
    if cilium.uses_interfaces() && !said && !spec.additional_network_cidrs.is_empty() {
        let message = "pods reach these ranges with the addresses of their nodes, which policies take for strangers";
        let hint = "set spec.networking.cilium.extraConfig.ipv4-native-routing-cidr to a range that holds all ranges of the VPC";
        problems.push(Problem::warning("spec.additionalNetworkCIDRs", message).hint(hint));
    }
}

/// Its proxy serves Ingresses and Gateways, on node ports of its own.
fn check_ingress(cilium: &CiliumNetworkingSpec, problems: &mut Vec<Problem>) {
    let parts = [
        ("ingress", "Ingresses", cilium.ingress().is_some()),
        ("gatewayAPI", "Gateways", cilium.gateways().is_some()),
    ];
    for (field, what, _) in parts.into_iter().filter(|(_, _, on)| *on) {
        if cilium.enable_node_port != Some(true) {
            let message = format!("cilium serves {what} only where it replaces kube-proxy");
            let hint =
                "set spec.networking.cilium.enableNodePort: true and spec.kubeProxy.enabled: false";
            refuse(problems, field, &message, hint);
        }
        if cilium.enable_l7_proxy == Some(false) {
            let message = format!("cilium serves {what} with its proxy, which is off");
            let hint = "remove spec.networking.cilium.enableL7Proxy";
            refuse(problems, field, &message, hint);
        }
    }
}

fn check_encryption(
    cilium: &CiliumNetworkingSpec,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    if cilium.enable_encryption == Some(true) && spec.is_ipv6() {
        let message = "cilium encrypts packets of IPv4 clusters only, as in kOps";
        refuse(problems, "enableEncryption", message, "remove it");
    }
    if cilium.encryption_type.is_some() && cilium.enable_encryption != Some(true) {
        let message = "nothing is encrypted";
        let hint = "set spec.networking.cilium.enableEncryption: true";
        refuse(problems, "encryptionType", message, hint);
    }
    if !cilium.uses_ipsec() {
        return;
    }
    const HINT: &str = "remove it, or set spec.networking.cilium.encryptionType: wireguard";
    if cilium.node_encryption == Some(true) {
        let message = "IPsec encrypts only what pods send";
        refuse(problems, "nodeEncryption", message, HINT);
    }
    if cilium.enable_host_firewall == Some(true) {
        let message = "cilium does not start with IPsec and policies for nodes";
        refuse(problems, "enableHostFirewall", message, HINT);
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
