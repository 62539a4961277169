//! `spec.networking.calico`.

use super::Findings;
use super::fill::fill;
use super::pods::several_subnets;
use crate::api::calico::CalicoNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use full::{Calico, Encapsulated, Encapsulation, FullSpec, Group, SourceDestinationCheck, Typha};
use node::config::Role;

/// The release that kOps installs.
const RELEASE: &str = "v3.31.6";

const REGISTRY: &str = "docker.io";

/// Ports of the metrics of agents and of typha.
const METRICS: i32 = 9091;
const TYPHA_METRICS: i32 = 9093;

/// Keys of the taints of groups that typha's pods tolerate, as their manifest says.
const TYPHA_TOLERATES: [&str; 3] = [
    "CriticalAddonsOnly",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

const VXLAN: &str = "vxlan";

/// The VPC routes packets of pods: in IPv6 clusters.
const NO_ENCAPSULATION: &str = "none";

/// Fills in the default of kOps.
pub(super) fn complete_calico(spec: &mut ClusterSpec) {
    let ipv6 = spec.is_ipv6();
    let networking = spec.networking.as_mut();
    if let Some(calico) = networking.and_then(|networking| networking.calico.as_mut()) {
        let mode = if ipv6 { NO_ENCAPSULATION } else { "ipip" };
        fill(&mut calico.encapsulation_mode, mode);
    }
}

/// calico, if it is the network plugin.
fn chosen_calico(spec: &ClusterSpec) -> Option<&CalicoNetworkingSpec> {
    spec.networking.as_ref()?.calico.as_deref()
}

/// calico of a completed spec; `None` where another network plugin is chosen.
pub(super) fn full_calico(spec: &ClusterSpec) -> Option<Calico> {
    let calico = chosen_calico(spec)?;
    let registry = calico.registry.as_deref().unwrap_or(REGISTRY);
    let version = calico.version.as_deref().unwrap_or(RELEASE);
    let image = |name: &str| format!("{registry}/calico/{name}:{version}");
    let manager = spec.kube_controller_manager.as_ref();
    let pods = manager.and_then(|manager| manager.cluster_cidr.clone());
    let metrics = calico.prometheus_metrics_enabled == Some(true);
    let (ipv4, ipv6) = detection_of_families(spec);
    let check = source_destination_check(calico, spec);
    Some(Calico {
        image: image("node"),
        plugin_image: image("cni"),
        controllers_image: image("kube-controllers"),
        typha_image: image("typha"),
        encapsulation: encapsulation(calico),
        ipv6_vxlan: ipv6_vxlan(calico),
        mtu: calico.mtu.unwrap_or_default(),
        allow_ip_forwarding: calico.allow_ip_forwarding == Some(true),
        pool: pods.or_else(|| spec.pod_cidr.clone()).unwrap_or_default(),
        ipv4_detection: text(calico.ipv4_auto_detection_method.as_ref(), ipv4),
        ipv6_detection: text(calico.ipv6_auto_detection_method.as_ref(), ipv6),
        settings: settings(calico, check),
        source_destination_check: check,
        bpf: calico.bpf_enabled == Some(true),
        wireguard: calico.wireguard_enabled == Some(true),
        cpu_request: text(calico.cpu_request.as_ref(), "250m"),
        metrics_port: metrics.then(|| port(calico.prometheus_metrics_port, METRICS)),
        typha: typha(calico),
    })
}

fn text(value: Option<&String>, default: &str) -> String {
    value.map_or(default, String::as_str).to_owned()
}

/// How agents find the address of their node in each family; nodes have one of the cluster's.
fn detection_of_families(spec: &ClusterSpec) -> (&'static str, &'static str) {
    let (found, none) = ("first-found", "none");
    if spec.is_ipv6() {
        (none, found)
    } else {
        (found, none)
    }
}

fn switch(value: Option<bool>) -> String {
    (value == Some(true)).to_string()
}

/// The port; 0 is none, and so the default.
fn port(value: Option<i32>, default: i32) -> i32 {
    value.filter(|port| *port != 0).unwrap_or(default)
}

fn encapsulation(calico: &CalicoNetworkingSpec) -> Encapsulation {
    let which = |mode: &Option<String>| {
        let mode = mode.as_deref().and_then(encapsulated);
        mode.unwrap_or(Encapsulated::CrossSubnet)
    };
    match calico.encapsulation_mode.as_deref() {
        Some(NO_ENCAPSULATION) => Encapsulation::None,
        Some(VXLAN) => Encapsulation::Vxlan(which(&calico.vxlan_mode)),
        _ => Encapsulation::Ipip(which(&calico.ipip_mode)),
    }
}

/// As in kOps, which has no default of its own for these.
fn ipv6_vxlan(calico: &CalicoNetworkingSpec) -> Encapsulated {
    let mode = calico.vxlan_mode.as_deref().and_then(encapsulated);
    mode.filter(|_| is_vxlan(calico))
        .unwrap_or(Encapsulated::Never)
}

fn is_vxlan(calico: &CalicoNetworkingSpec) -> bool {
    calico.encapsulation_mode.as_deref() == Some(VXLAN)
}

fn encapsulated(mode: &str) -> Option<Encapsulated> {
    let all = [
        Encapsulated::CrossSubnet,
        Encapsulated::Always,
        Encapsulated::Never,
    ];
    all.into_iter().find(|one| one.as_str() == mode)
}

/// Without encapsulation EC2 would drop packets of pods: their addresses are none of the instance. On IPv6 they are.
fn source_destination_check(
    calico: &CalicoNetworkingSpec,
    spec: &ClusterSpec,
) -> SourceDestinationCheck {
    if spec.is_ipv6() {
        return SourceDestinationCheck::DoNothing;
    }
    let all = [
        SourceDestinationCheck::Disable,
        SourceDestinationCheck::Enable,
        SourceDestinationCheck::DoNothing,
    ];
    let said = calico.aws_src_dst_check.as_deref();
    let found = all.into_iter().find(|one| said == Some(one.as_str()));
    found.unwrap_or(SourceDestinationCheck::Disable)
}

fn typha(calico: &CalicoNetworkingSpec) -> Option<Typha> {
    let replicas = calico.typha_replicas.filter(|replicas| *replicas > 0)?;
    Some(Typha {
        replicas,
        metrics: calico.typha_prometheus_metrics_enabled == Some(true),
        metrics_port: port(calico.typha_prometheus_metrics_port, TYPHA_METRICS),
    })
}

/// What fields of the spec say, as settings of the agent.
fn settings(calico: &CalicoNetworkingSpec, check: SourceDestinationCheck) -> Vec<(String, String)> {
    let metrics_port = port(calico.prometheus_metrics_port, METRICS);
    let all = [
        ("AWSSRCDSTCHECK", Some(check.as_str().to_owned())),
        ("BPFENABLED", Some(switch(calico.bpf_enabled))),
        (
            "BPFEXTERNALSERVICEMODE",
            Some(text(calico.bpf_external_service_mode.as_ref(), "Tunnel")),
        ),
        (
            "BPFKUBEPROXYIPTABLESCLEANUPENABLED",
            Some(switch(calico.bpf_kube_proxy_iptables_cleanup_enabled)),
        ),
        (
            "BPFLOGLEVEL",
            Some(text(calico.bpf_log_level.as_ref(), "Off")),
        ),
        (
            "CHAININSERTMODE",
            Some(text(calico.chain_insert_mode.as_ref(), "insert")),
        ),
        (
            "IPTABLESBACKEND",
            Some(text(calico.iptables_backend.as_ref(), "Auto")),
        ),
        (
            "LOGSEVERITYSCREEN",
            Some(text(calico.log_severity_screen.as_ref(), "info")),
        ),
        ("NFTABLESMODE", calico.nftables_mode.clone()),
        (
            "PROMETHEUSMETRICSENABLED",
            Some(switch(calico.prometheus_metrics_enabled)),
        ),
        ("PROMETHEUSMETRICSPORT", Some(metrics_port.to_string())),
        (
            "PROMETHEUSGOMETRICSENABLED",
            Some(switch(calico.prometheus_go_metrics_enabled)),
        ),
        (
            "PROMETHEUSPROCESSMETRICSENABLED",
            Some(switch(calico.prometheus_process_metrics_enabled)),
        ),
        ("WIREGUARDENABLED", Some(switch(calico.wireguard_enabled))),
    ];
    let given = all.into_iter();
    let given = given.filter_map(|(name, value)| Some((format!("FELIX_{name}"), value?)));
    given.collect()
}

/// What instances of several groups together cannot do.
pub(super) fn check_calico(full: &FullSpec, findings: &mut Findings) {
    let Some(calico) = &full.addons.calico else {
        return;
    };
    let groups = full.groups.iter();
    let groups: Vec<&Group> = groups.filter(|one| one.role != Role::Bastion).collect();
    check_subnets(calico, &groups, findings);
    if let Some(typha) = &calico.typha {
        check_replicas(typha, &groups, findings);
    }
}

/// The VPC's router knows no addresses of pods: only within a subnet packets reach a pod as they are.
fn check_subnets(calico: &Calico, groups: &[&Group], findings: &mut Findings) {
    if calico.encapsulation != Encapsulation::Ipip(Encapsulated::Never) {
        return;
    }
    if let Some(message) = several_subnets(groups.iter().copied()) {
        let hint = "use CrossSubnet or Always, or put all groups into one subnet";
        findings.add_error("spec.networking.calico.ipipMode", message, hint);
    }
}

/// typha has a port of its node. A warning, because more instances may come.
fn check_replicas(typha: &Typha, groups: &[&Group], findings: &mut Findings) {
    let fitting = groups.iter().filter(|one| has_room_for_typha(one));
    let places: i32 = fitting.map(|one| one.min_size).sum();
    if typha.replicas > places {
        let message = format!(
            "of {} pods each needs a node of its own, and the groups that typha can run on have {places} at their least sizes",
            typha.replicas
        );
        let hint = "lower it, or raise minSize of groups without taints of their own";
        findings.add_warning("spec.networking.calico.typhaReplicas", message, hint);
    }
}

/// True if no taint of the group keeps typha away.
fn has_room_for_typha(group: &Group) -> bool {
    group.taints.iter().all(|taint| {
        let key = taint.split([':', '=']).next().unwrap_or_default();
        taint.ends_with(":PreferNoSchedule") || TYPHA_TOLERATES.contains(&key)
    })
}
