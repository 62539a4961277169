//! The ports that instances of one role may reach on those of another.

use crate::objects::rules::{IP_IN_IP, Traffic, tcp_ports, udp_ports};
use crate::{Cilium, FullSpec};
use node::config::Networking;
use node::ports;

/// TCP ports of control planes that nodes may reach where the user brings the network, and where pods have their own addresses between
/// instances: all but etcd's (2380 and 2381 peers, 4001 and 4002 clients). As in kOps.
const CONTROL_PLANE_TCP: [(u16, u16); 3] = [(1, 2379), (2382, 4000), (4003, 65535)];

/// The traffic that nodes may send to control planes. With flannel and cilium: the API, the bootstrap endpoint, kubelets, node ports
/// and encapsulated pod traffic, which security groups cannot look into. Nodes reach neither SSH nor etcd nor other services at a
/// control plane's own address.
pub(super) fn node_to_control_plane_traffic(full: &FullSpec) -> Vec<Traffic> {
    let Some(of_plugin) = plugin_traffic(full) else {
        let ranges = CONTROL_PLANE_TCP.map(|(low, high)| tcp_ports(low, high));
        let all = [udp_ports(1, 65535)].into_iter().chain(ranges);
        return all.chain(between_subnets(&full.pods.networking)).collect();
    };
    let (first, last) = full.node_port_range;
    let mut all = vec![
        tcp_ports(ports::API, ports::API),
        tcp_ports(ports::BOOTSTRAP, ports::BOOTSTRAP),
        // Monitoring on nodes also queries the kubelets of control planes.
        tcp_ports(ports::KUBELET, ports::KUBELET),
        tcp_ports(first, last),
        udp_ports(first, last),
    ];
    all.extend(of_plugin);
    all
}

/// What the network plugin itself sends; `None`: not known, or the packets of pods with their own addresses.
fn plugin_traffic(full: &FullSpec) -> Option<Vec<Traffic>> {
    let udp = |port| udp_ports(port, port);
    Some(match &full.pods.networking {
        Networking::Flannel(backend) if backend == "udp" => vec![udp(ports::FLANNEL_UDP)],
        Networking::Flannel(_) => vec![udp(ports::FLANNEL_VXLAN)],
        Networking::Cilium { .. } => {
            let cilium = full.addons.cilium.iter();
            let tcp = |cilium: &Cilium| cilium.tcp_ports.clone();
            let tcp = cilium.clone().flat_map(tcp);
            let tcp = tcp.map(|port| tcp_ports(port, port));
            let all = cilium.flat_map(|cilium| cilium.udp_ports.clone());
            all.map(udp).chain(tcp).collect()
        }
        _ => return None,
    })
}

/// Packets of pods between instances of different subnets.
fn between_subnets(networking: &Networking) -> Option<Traffic> {
    (*networking == Networking::KubeRouter).then_some(IP_IN_IP)
}
