//! Rules of calico: those of kOps, and what would leave pods or Services without a way.

use crate::api::calico::CalicoNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;
use crate::validate::values::{ValueType, parse_text};
use std::net::{Ipv4Addr, Ipv6Addr};

const PATH: &str = "spec.networking.calico";

/// The minor version whose objects and settings kctl writes.
const MINOR: &str = "v3.31.";

/// Bytes of the largest packet that instances send.
const LARGEST_PACKET: i32 = 9001;

/// Levels of an agent's log, which it reads in any case.
const LEVELS: [&str; 6] = ["trace", "debug", "info", "warning", "error", "fatal"];

const METHODS: &str = "write first-found, can-reach=ADDRESS, interface=REGEX or skip-interface=REGEX, as interface=ens.*,eth0";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let Some(calico) = networking.and_then(|networking| networking.calico.as_deref()) else {
        return;
    };
    check_version(calico, problems);
    if spec.is_ipv6() {
        check_ipv6(calico, problems);
    } else {
        check_encapsulation(calico, problems);
    }
    check_proxy(calico, spec, problems);
    check_rules(calico, spec, problems);
    let v4 = |address: &str| address.parse::<Ipv4Addr>().is_ok();
    let v6 = |address: &str| address.parse::<Ipv6Addr>().is_ok();
    let method = calico.ipv4_auto_detection_method.as_deref();
    check_detection("ipv4AutoDetectionMethod", method, v4, problems);
    let method = calico.ipv6_auto_detection_method.as_deref();
    check_detection("ipv6AutoDetectionMethod", method, v6, problems);
    let level = calico.log_severity_screen.as_deref();
    if let Some(level) = level.filter(|level| !LEVELS.contains(&&*level.to_lowercase())) {
        let problem = Problem::error(
            format!("{PATH}.logSeverityScreen"),
            format!("{level:?} is no level of a log"),
        );
        problems.push(problem.hint(format!("use one of {}", LEVELS.join(", "))));
    }
    if let Some(mtu) = calico.mtu.filter(|mtu| *mtu > LARGEST_PACKET) {
        let problem = Problem::error(
            format!("{PATH}.mtu"),
            format!("no instance sends packets of {mtu} bytes"),
        );
        problems.push(problem.hint("use 8981 with IP in IP, 8951 with VXLAN, 8941 with WireGuard, or leave it out: agents find it out"));
    }
}

/// As in kOps any version is taken, with the objects of one.
fn check_version(calico: &CalicoNetworkingSpec, problems: &mut Vec<Problem>) {
    let version = calico.version.as_deref();
    // Of what is no version at all, its type tells.
    let other =
        |version: &&str| !version.starts_with(MINOR) && parse_text(ValueType::Tag, version).is_ok();
    if let Some(version) = version.filter(other) {
        let problem = Problem::warning(
            format!("{PATH}.version"),
            format!("kctl has the definitions and rights of calico {MINOR}x, not of {version}"),
        );
        problems.push(problem.hint("remove it to get the version that belongs to them"));
    }
}

fn check_encapsulation(calico: &CalicoNetworkingSpec, problems: &mut Vec<Problem>) {
    // What the field is if it is not set.
    let encapsulation = calico.encapsulation_mode.as_deref().unwrap_or("ipip");
    if encapsulation == "none" {
        let problem = Problem::error(
            format!("{PATH}.encapsulationMode"),
            "only clusters with IPv6 do without encapsulation",
        );
        problems.push(problem.hint("use ipip or vxlan"));
        return;
    }
    let (own, other, of_other) = if encapsulation == "vxlan" {
        (&calico.vxlan_mode, "ipip", &calico.ipip_mode)
    } else {
        (&calico.ipip_mode, "vxlan", &calico.vxlan_mode)
    };
    if of_other.as_ref().is_some_and(|mode| mode != "Never") {
        let problem = Problem::error(
            format!("{PATH}.{other}Mode"),
            format!("packets are encapsulated by {encapsulation}"),
        );
        problems.push(problem.hint(format!("remove it, or set encapsulationMode: {other}")));
    }
    if encapsulation == "vxlan" && own.as_deref() == Some("Never") {
        let problem = Problem::error(
            format!("{PATH}.vxlanMode"),
            "nodes would have no routes to pods of others: calico makes those of VXLAN only",
        );
        problems.push(problem.hint("use CrossSubnet or Always, or set encapsulationMode: ipip"));
    }
    warn_of_dropped_packets(calico, own.as_deref() == Some("Always"), problems);
}

/// EC2 drops packets with an address that is not the instance's, as long as it checks that.
fn warn_of_dropped_packets(
    calico: &CalicoNetworkingSpec,
    all_encapsulated: bool,
    problems: &mut Vec<Problem>,
) {
    let unless = match calico.aws_src_dst_check.as_deref() {
        Some("Enable") => "",
        Some("DoNothing") => ", unless something else turns its check off",
        _ => return,
    };
    if !all_encapsulated {
        let problem = Problem::warning(
            format!("{PATH}.awsSrcDstCheck"),
            format!(
                "EC2 drops packets of pods that are not encapsulated, which are those within a subnet{unless}"
            ),
        );
        problems.push(problem.hint("use Disable, or let all packets be encapsulated: Always"));
    }
    let direct = calico.bpf_external_service_mode.as_deref() == Some("DSR");
    if direct && calico.bpf_enabled == Some(true) {
        let problem = Problem::warning(
            format!("{PATH}.bpfExternalServiceMode"),
            format!("EC2 drops answers, which have the address of another node{unless}"),
        );
        problems.push(problem.hint("use Tunnel, or awsSrcDstCheck: Disable"));
    }
}

/// As in kOps: the VPC knows where pods of an IPv6 cluster are, and agents have nothing to add.
fn check_ipv6(calico: &CalicoNetworkingSpec, problems: &mut Vec<Problem>) {
    let is_other =
        |value: &Option<String>, own: &str| value.as_ref().is_some_and(|value| value != own);
    let plain = "packets of pods of an IPv6 cluster leave as they are";
    let checked = "EC2 knows the addresses of pods of an IPv6 cluster";
    let encrypted = "calico does not encrypt packets of an IPv6 cluster";
    let refused = [
        (
            "encapsulationMode",
            is_other(&calico.encapsulation_mode, "none"),
            plain,
        ),
        ("ipipMode", is_other(&calico.ipip_mode, "Never"), plain),
        ("vxlanMode", is_other(&calico.vxlan_mode, "Never"), plain),
        (
            "awsSrcDstCheck",
            is_other(&calico.aws_src_dst_check, "DoNothing"),
            checked,
        ),
        (
            "wireguardEnabled",
            calico.wireguard_enabled == Some(true),
            encrypted,
        ),
    ];
    for (field, _, message) in refused.into_iter().filter(|(_, refused, _)| *refused) {
        let problem = Problem::error(format!("{PATH}.{field}"), message);
        problems.push(problem.hint("remove it"));
    }
}

/// Two programs should not answer for the same Services; one has to.
fn check_proxy(calico: &CalicoNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let proxy = spec.kube_proxy.as_ref().and_then(|proxy| proxy.enabled) != Some(false);
    let replaced = calico.bpf_enabled == Some(true);
    if !proxy && !replaced {
        let problem = Problem::error(
            "spec.kubeProxy.enabled",
            "nothing would answer for Services: calico replaces kube-proxy only if it is told to",
        );
        problems.push(problem.hint("set spec.networking.calico.bpfEnabled: true"));
    }
    if !proxy || !replaced {
        return;
    }
    if calico.bpf_kube_proxy_iptables_cleanup_enabled == Some(true) {
        let problem = Problem::error(
            format!("{PATH}.bpfKubeProxyIptablesCleanupEnabled"),
            "agents would remove the rules that kube-proxy writes",
        );
        problems.push(problem.hint("set spec.kubeProxy.enabled: false, or remove it"));
    } else {
        let problem = Problem::warning(
            format!("{PATH}.bpfEnabled"),
            "calico answers for Services, and kube-proxy writes rules that nothing needs",
        );
        problems.push(problem.hint("set spec.kubeProxy.enabled: false"));
    }
}

/// Both make rules that packets pass, and calico needs those of kube-proxy to be of its own kind
/// (<https://docs.tigera.io/calico/latest/getting-started/kubernetes/nftables>). `Auto` follows kube-proxy.
fn check_rules(calico: &CalicoNetworkingSpec, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let proxy = spec.kube_proxy.as_ref();
    if proxy.and_then(|proxy| proxy.enabled) == Some(false) {
        return;
    }
    let mode = proxy.and_then(|proxy| proxy.proxy_mode.as_deref());
    let nftables = mode == Some("nftables");
    let own = calico.nftables_mode.as_deref();
    if nftables && matches!(own, None | Some("Disabled")) {
        let problem = Problem::error(
            "spec.kubeProxy.proxyMode",
            "calico makes its rules with iptables, which do not fit those of kube-proxy",
        );
        problems.push(problem.hint("set spec.networking.calico.nftablesMode: Enabled"));
    }
    if !nftables && own == Some("Enabled") {
        let problem = Problem::error(
            format!("{PATH}.nftablesMode"),
            "calico makes rules with nftables only where kube-proxy does",
        );
        problems.push(problem.hint("set spec.kubeProxy.proxyMode: nftables, or remove it"));
    }
}

/// As in kOps: four of calico's methods.
fn check_detection(
    field: &str,
    method: Option<&str>,
    is_address: impl Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) {
    let Some(method) = method else {
        return;
    };
    let fits = match method.split_once('=') {
        None => method == "first-found",
        Some(("can-reach", address)) => is_address(address),
        Some(("interface" | "skip-interface", names)) => {
            !names.contains('=') && names.split(',').all(|name| is_interface(name.trim()))
        }
        Some(_) => false,
    };
    if !fits {
        let problem = Problem::error(
            format!("{PATH}.{field}"),
            format!("{method:?} is no way to find the address of a node"),
        );
        problems.push(problem.hint(METHODS));
    }
}

/// A regular expression for names of network interfaces.
fn is_interface(name: &str) -> bool {
    !name.is_empty() && regex_lite::Regex::new(name).is_ok()
}
