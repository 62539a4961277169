//! The ports that instances of one role may reach on those of another.

use crate::objects::rules::{ESP, IP_IN_IP, Traffic, tcp_ports, udp_ports};
use crate::{Calico, Cilium, Encapsulated, Encapsulation, FullSpec};
use node::config::Networking;
use node::ports;

/// TCP ports of control planes that nodes may reach where pods may send to any port: all but etcd's (2380 and 2381 peers,
/// 4001 and 4002 clients). As in kOps.
const CONTROL_PLANE_TCP: [(u16, u16); 3] = [(1, 2379), (2382, 4000), (4003, 65535)];

/// What the network plugin sends to control planes.
enum PluginTraffic {
    /// Packets of pods are inside of these only, and security groups cannot look into them.
    Encapsulated(Vec<Traffic>),
    /// That is not known, or packets of pods arrive with their own addresses, for any port. These are neither TCP nor UDP.
    Any(Vec<Traffic>),
}

/// The traffic that nodes may send to control planes. With a plugin that encapsulates all packets of pods: the API, the bootstrap
/// endpoint, kubelets, node ports and what the plugin itself sends. Nodes reach neither SSH nor etcd nor other services at a control
/// plane's own address.
pub(super) fn node_to_control_plane_traffic(full: &FullSpec) -> Vec<Traffic> {
    let (mut all, of_plugin) = match plugin_traffic(full) {
        PluginTraffic::Any(more) => {
            let ranges = CONTROL_PLANE_TCP.map(|(low, high)| tcp_ports(low, high));
            let open = [udp_ports(1, 65535)].into_iter().chain(ranges);
            (open.collect::<Vec<_>>(), more)
        }
        PluginTraffic::Encapsulated(of_plugin) => {
            let (first, last) = full.node_port_range;
            let needed = vec![
                tcp_ports(ports::API, ports::API),
                tcp_ports(ports::BOOTSTRAP, ports::BOOTSTRAP),
                // Monitoring on nodes also queries the kubelets of control planes.
                tcp_ports(ports::KUBELET, ports::KUBELET),
                tcp_ports(first, last),
                udp_ports(first, last),
            ];
            (needed, of_plugin)
        }
    };
    all.extend(of_plugin);
    all
}

fn plugin_traffic(full: &FullSpec) -> PluginTraffic {
    if full.is_ipv6() {
        return PluginTraffic::Any(Vec::new());
    }
    let of_plugin = match &full.pods.networking {
        Networking::Flannel(backend) if backend == "udp" => vec![udp(ports::FLANNEL_UDP)],
        Networking::Flannel(_) => vec![udp(ports::FLANNEL_VXLAN)],
        Networking::Cilium { in_vpc, .. } => {
            let cilium = full.addons.cilium.as_ref();
            let encrypted = cilium.is_some_and(|cilium| cilium.ipsec).then_some(ESP);
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
        Networking::KubeRouter => return PluginTraffic::Any(vec![IP_IN_IP]),
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

fn cilium_traffic(cilium: &Cilium) -> Vec<Traffic> {
    let all = cilium.udp_ports.iter().map(|port| udp(*port));
    all.chain(cilium.tcp_ports.iter().map(|port| tcp(*port)))
        .collect()
}

/// By default packets are encapsulated between subnets only.
fn calico_traffic(calico: &Calico) -> PluginTraffic {
    let (ip_in_ip, which) = match calico.encapsulation {
        Encapsulation::Ipip(which) => (true, which),
        Encapsulation::Vxlan(which) => (false, which),
        Encapsulation::None => return PluginTraffic::Any(Vec::new()),
    };
    let some = ip_in_ip && which != Encapsulated::Never;
    let mut all: Vec<Traffic> = some.then_some(IP_IN_IP).into_iter().collect();
    if which != Encapsulated::Always {
        return PluginTraffic::Any(all);
    }
    let typha = calico.typha.is_some();
    // Without kube-proxy a node also passes on what came to a node port in VXLAN.
    let vxlan = !ip_in_ip || calico.bpf;
    all.extend(ip_in_ip.then_some(tcp(ports::CALICO_BGP)));
    all.extend(vxlan.then_some(udp(ports::CALICO_VXLAN)));
    all.extend(calico.wireguard.then_some(udp(ports::CALICO_WIREGUARD)));
    all.extend(typha.then_some(tcp(ports::TYPHA)));
    all.extend(calico_metrics(calico));
    PluginTraffic::Encapsulated(all)
}

/// Metrics of agents and of typha, which are on the network of their node, where they are served.
fn calico_metrics(calico: &Calico) -> impl Iterator<Item = Traffic> {
    let typha = calico.typha.as_ref().filter(|typha| typha.metrics);
    let typha = typha.map(|typha| typha.metrics_port);
    let all = calico.metrics_port.into_iter().chain(typha);
    all.filter_map(|port| u16::try_from(port).ok()).map(tcp)
}

fn tcp(port: u16) -> Traffic {
    tcp_ports(port, port)
}

fn udp(port: u16) -> Traffic {
    udp_ports(port, port)
}
