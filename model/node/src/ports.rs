//! The TCP and UDP ports of a cluster, as kOps gives them: what control planes listen on, what load balancers forward to, what security
//! groups allow. etcd's are [`crate::components::etcd_ports`].

/// The API server, on control planes and on load balancers.
pub const API: u16 = 443;

/// The API server's port on a load balancer whose port 443 ends TLS with a certificate of ACM: only here client certificates work.
pub const API_BESIDE_ACM_CERTIFICATE: u16 = 8443;

/// The proxy of the API on every node, on loopback, in clusters that have it.
pub const API_PROXY: u16 = 6443;

/// protokube's bootstrap endpoint for workers, kops-controller's port.
pub const BOOTSTRAP: u16 = 3988;

/// protokube's health endpoint for the API server of its instance, on loopback.
pub const API_HEALTH: u16 = 3990;

pub const KUBELET: u16 = 10250;

/// kube-controller-manager's health and metrics.
pub const CONTROLLER_MANAGER: u16 = 10257;

/// kube-scheduler's health and metrics.
pub const SCHEDULER: u16 = 10259;

/// flannel's VXLAN packets on Linux, over UDP (<https://github.com/flannel-io/flannel/blob/master/Documentation/backends.md>).
pub const FLANNEL_VXLAN: u16 = 8472;

/// cilium's VXLAN, Geneve and WireGuard packets, over UDP, its probes of other nodes, and its servers of flows
/// (<https://docs.cilium.io/en/stable/operations/system_requirements/#firewall-rules>).
pub const CILIUM_VXLAN: u16 = 8472;
pub const CILIUM_GENEVE: u16 = 6081;
pub const CILIUM_WIREGUARD: u16 = 51871;
pub const CILIUM_HEALTH: u16 = 4240;
pub const CILIUM_OPERATOR_METRICS: u16 = 6942;
pub const HUBBLE: u16 = 4244;
pub const HUBBLE_METRICS: u16 = 9091;

/// kube-router's health and metrics on each node.
pub const KUBE_ROUTER_HEALTH: u16 = 20244;
pub const KUBE_ROUTER_METRICS: u16 = 12013;

/// BGP between calico's agents, over TCP, its VXLAN and WireGuard packets, over UDP, and what typha serves agents with
/// (<https://docs.tigera.io/calico/latest/getting-started/kubernetes/requirements#network-requirements>).
pub const CALICO_BGP: u16 = 179;
pub const CALICO_VXLAN: u16 = 4789;
pub const CALICO_WIREGUARD: u16 = 51820;
pub const TYPHA: u16 = 5473;

/// flannel's packets with `backend: udp`.
pub const FLANNEL_UDP: u16 = 8285;
