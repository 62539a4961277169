//! The ports that instances of one role need to reach on those of another.

use crate::objects::rules::{ALL, ESP, IP_IN_IP, tcp_ports, udp_ports};
use crate::{Calico, Cilium, Encapsulated, Encapsulation, FullSpec};
use cloud::reach::Traffic;
use node::config::Networking;
use node::ports;

/// TCP ports of control planes that nodes may reach where pods may send to any port: all but etcd's (2380 and 2381 peers,
/// 4001 and 4002 clients). As in kOps.
const CONTROL_PLANE_TCP: [(u16, u16); 3] = [(1, 2379), (2382, 4000), (4003, 65535)];

/// What must pass, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub traffic: Traffic,
    pub why: &'static str,
}

const fn need(traffic: Traffic, why: &'static str) -> Need {
    Need { traffic, why }
}

/// What kubelets are asked by other instances: also by monitoring on nodes.
pub(super) const KUBELETS: Need = need(
    tcp_ports(ports::KUBELET, ports::KUBELET),
    "kubelets, for logs, exec and metrics",
);

const PACKETS: &str = "packets of pods";

/// What the network plugin sends between instances.
enum PluginTraffic {
    /// Packets of pods are inside of these only, and security groups cannot look into them.
    Encapsulated(Vec<Need>),
    /// That is not known, or packets of pods arrive with their own addresses, for any port. These are neither TCP nor UDP.
    Any(Vec<Need>),
}

/// The traffic that nodes may send to control planes. With a plugin that encapsulates all packets of pods: what is needed. Nodes reach
/// neither SSH nor etcd nor other services at a control plane's own address.
pub(super) fn node_to_control_plane_traffic(full: &FullSpec) -> Vec<Traffic> {
    match plugin_traffic(full) {
        PluginTraffic::Any(more) => {
            let more = more.into_iter().map(|need| need.traffic);
            open_traffic().into_iter().chain(more).collect()
        }
        PluginTraffic::Encapsulated(_) => {
            let needs = node_to_control_plane_needs(full).into_iter();
            needs.map(|need| need.traffic).collect()
        }
    }
}

/// All that nodes may send to control planes where packets of pods are for any port.
fn open_traffic() -> Vec<Traffic> {
    let ranges = CONTROL_PLANE_TCP.map(|(low, high)| tcp_ports(low, high));
    [udp_ports(1, 65535)].into_iter().chain(ranges).collect()
}

/// What nodes need of control planes: the API, the bootstrap endpoint, kubelets, node ports and what the plugin itself sends.
pub(super) fn node_to_control_plane_needs(full: &FullSpec) -> Vec<Need> {
    let (first, last) = full.node_port_range;
    let node_ports = [tcp_ports(first, last), udp_ports(first, last)]
        .map(|traffic| need(traffic, "node ports of Services"));
    let mut all = vec![
        need(tcp_ports(ports::API, ports::API), "the API"),
        need(
            tcp_ports(ports::BOOTSTRAP, ports::BOOTSTRAP),
            "certificates of new instances",
        ),
        KUBELETS,
    ];
    match plugin_traffic(full) {
        PluginTraffic::Encapsulated(of_plugin) => {
            all.extend(node_ports);
            all.extend(of_plugin);
        }
        PluginTraffic::Any(more) => {
            // A range that has ports of etcd is not open as a whole.
            let open = open_traffic();
            let is_open = |need: &Need| open.iter().any(|open| is_within(need.traffic, *open));
            all.extend(node_ports.into_iter().filter(is_open));
            all.extend(more);
        }
    }
    all
}

fn is_within(one: Traffic, other: Traffic) -> bool {
    one.protocol == other.protocol && other.from <= one.from && one.to <= other.to
}

/// What the network plugin needs between any two instances but from nodes to control planes.
pub(super) fn plugin_needs(full: &FullSpec) -> Vec<Need> {
    match plugin_traffic(full) {
        PluginTraffic::Encapsulated(needs) => needs,
        PluginTraffic::Any(mut needs) => {
            needs.push(need(
                ALL,
                "packets of pods, which have addresses of their own",
            ));
            needs
        }
    }
}

fn plugin_traffic(full: &FullSpec) -> PluginTraffic {
    if full.is_ipv6() {
        return PluginTraffic::Any(Vec::new());
    }
    let of_plugin = match &full.pods.networking {
        Networking::Flannel(backend) if backend == "udp" => {
            vec![udp(ports::FLANNEL_UDP, PACKETS)]
        }
        Networking::Flannel(_) => vec![udp(ports::FLANNEL_VXLAN, PACKETS)],
        Networking::Cilium { in_vpc, .. } => {
            let cilium = full.addons.cilium.as_ref();
            let encrypted = cilium.is_some_and(|cilium| cilium.ipsec).then_some(ESP);
            let encrypted = encrypted.map(|traffic| need(traffic, PACKETS));
            // Packets of pods have the addresses of pods then.
            if *in_vpc {
                return PluginTraffic::Any(encrypted.into_iter().collect());
            }
            let open = cilium.map_or(Vec::new(), cilium_traffic);
            open.into_iter().chain(encrypted).collect()
        }
        Networking::Calico => {
            let calico = full.addons.calico.as_ref();
            return calico.map_or(PluginTraffic::Any(Vec::new()), calico_traffic);
        }
        // Between subnets.
        Networking::KubeRouter => return PluginTraffic::Any(vec![need(IP_IN_IP, PACKETS)]),
        Networking::AmazonVpc
        | Networking::Kindnet
        | Networking::Kubenet
        | Networking::Cni
        | Networking::External => {
            return PluginTraffic::Any(Vec::new());
        }
    };
    PluginTraffic::Encapsulated(of_plugin)
}

fn cilium_traffic(cilium: &Cilium) -> Vec<Need> {
    let packets = cilium.udp_ports.iter().map(|port| udp(*port, PACKETS));
    let agents = cilium.tcp_ports.iter();
    let agents = agents.map(|port| tcp(*port, "probes and metrics of cilium"));
    packets.chain(agents).collect()
}

/// By default packets are encapsulated between subnets only.
fn calico_traffic(calico: &Calico) -> PluginTraffic {
    let (ip_in_ip, which) = match calico.encapsulation {
        Encapsulation::Ipip(which) => (true, which),
        Encapsulation::Vxlan(which) => (false, which),
        Encapsulation::None => return PluginTraffic::Any(Vec::new()),
    };
    let some = ip_in_ip && which != Encapsulated::Never;
    let some = some.then_some(need(IP_IN_IP, PACKETS));
    let mut all: Vec<Need> = some.into_iter().collect();
    if which != Encapsulated::Always {
        return PluginTraffic::Any(all);
    }
    let typha = calico.typha.is_some();
    // Without kube-proxy a node also passes on what came to a node port in VXLAN.
    let vxlan = !ip_in_ip || calico.bpf;
    all.extend(ip_in_ip.then_some(tcp(ports::CALICO_BGP, "BGP of calico")));
    all.extend(vxlan.then_some(udp(ports::CALICO_VXLAN, PACKETS)));
    let wireguard = udp(ports::CALICO_WIREGUARD, PACKETS);
    all.extend(calico.wireguard.then_some(wireguard));
    all.extend(typha.then_some(tcp(ports::TYPHA, "typha of calico")));
    all.extend(calico_metrics(calico));
    PluginTraffic::Encapsulated(all)
}

/// Metrics of agents and of typha, which are on the network of their node, where they are served.
fn calico_metrics(calico: &Calico) -> impl Iterator<Item = Need> {
    let typha = calico.typha.as_ref().filter(|typha| typha.metrics);
    let typha = typha.map(|typha| typha.metrics_port);
    let all = calico.metrics_port.into_iter().chain(typha);
    all.filter_map(|port| u16::try_from(port).ok())
        .map(|port| tcp(port, "metrics of calico"))
}

fn tcp(port: u16, why: &'static str) -> Need {
    need(tcp_ports(port, port), why)
}

fn udp(port: u16, why: &'static str) -> Need {
    need(udp_ports(port, port), why)
}
