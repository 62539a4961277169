//! calico: `spec.networking.calico`. Two fields more are of kOps' past (see `unsupported`).

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// calico, which connects pods by routes of the kernel and enforces NetworkPolicies.
    pub struct CalicoNetworkingSpec {
        /// Registry of its images. Default `docker.io`.
        pub registry: Option<String>,
        /// Version of its images. Default that of the release; its objects and permissions are always those of the default's
        /// minor version.
        pub version: Option<String>,
        /// Lets pods forward packets between their interfaces. Default false.
        #[serde(rename = "allowIPForwarding")]
        pub allow_ip_forwarding: Option<bool>,
        /// What an agent does to EC2's check of addresses on its instance: `Disable`, `Enable` or `DoNothing`. Default
        /// `Disable`, on IPv6 `DoNothing`.
        pub aws_src_dst_check: Option<String>,
        /// Programs in the kernel (eBPF) forward packets and answer for Services, in the place of iptables and kube-proxy.
        /// Default false.
        pub bpf_enabled: Option<bool>,
        /// With `bpfEnabled`: how answers leave for clients outside the cluster. `Tunnel`: back the way the request came;
        /// `DSR`: directly from the pod's node. Default `Tunnel`.
        pub bpf_external_service_mode: Option<String>,
        /// With `bpfEnabled`: agents remove the rules that a former kube-proxy left. Default false.
        pub bpf_kube_proxy_iptables_cleanup_enabled: Option<bool>,
        /// With `bpfEnabled`: how much the programs in the kernel log: `Off`, `Info` or `Debug`. Default `Off`.
        pub bpf_log_level: Option<String>,
        /// Where calico's rules stand among the others: `insert` (first) or `append` (last). Default `insert`.
        pub chain_insert_mode: Option<String>,
        /// CPU that the agent asks for on each node. Default 250m.
        pub cpu_request: Option<Quantity>,
        /// How packets reach other subnets: `ipip`, `vxlan`, or on IPv6 `none`. Default `ipip`, on IPv6 `none`. A running
        /// cluster keeps its mode.
        pub encapsulation_mode: Option<String>,
        /// With `ipip`: which packets are put into IP in IP: `CrossSubnet`, `Always` or `Never`. Default `CrossSubnet`. Read
        /// only when the first agent starts.
        pub ipip_mode: Option<String>,
        /// How an agent finds the IPv4 address of its node: `first-found`, `can-reach=ADDRESS`, `interface=REGEX` or
        /// `skip-interface=REGEX`. Default `first-found`.
        pub ipv4_auto_detection_method: Option<String>,
        /// How an agent finds the IPv6 address of its node, as `ipv4AutoDetectionMethod`. Default `none`, on IPv6
        /// `first-found`.
        pub ipv6_auto_detection_method: Option<String>,
        /// Which iptables an agent runs: `Auto`, `Legacy` or `NFT`. Default `Auto`.
        pub iptables_backend: Option<String>,
        /// Lowest level of what an agent logs: `trace`, `debug`, `info`, `warning`, `error` or `fatal`. Default `info`.
        pub log_severity_screen: Option<String>,
        /// Bytes of the largest packet between pods. Default 0: agents find it out.
        pub mtu: Option<i32>,
        /// Whether rules are made with nftables: `Disabled`, `Enabled` or `Auto`. It has to fit `kubeProxy.proxyMode`. Default
        /// calico's own.
        pub nftables_mode: Option<String>,
        /// Agents serve metrics. Default false.
        pub prometheus_metrics_enabled: Option<bool>,
        /// TCP port of the metrics of agents. Default 9091.
        pub prometheus_metrics_port: Option<i32>,
        /// The metrics have those of Go's runtime. Default false.
        pub prometheus_go_metrics_enabled: Option<bool>,
        /// The metrics have those of the process. Default false.
        pub prometheus_process_metrics_enabled: Option<bool>,
        /// Typha serves metrics. Default false.
        pub typha_prometheus_metrics_enabled: Option<bool>,
        /// TCP port of the metrics of typha. Default 9093.
        pub typha_prometheus_metrics_port: Option<i32>,
        /// Number of pods of typha, which asks the API for all agents, in clusters of more than 50 nodes. Each needs a node of
        /// its own. Default 0.
        pub typha_replicas: Option<i32>,
        /// With `vxlan`: which packets are put into VXLAN: `CrossSubnet` or `Always`. Default `CrossSubnet`. Read only when the
        /// first agent starts.
        pub vxlan_mode: Option<String>,
        /// Encrypts packets between pods of different nodes with WireGuard. Default false.
        pub wireguard_enabled: Option<bool>,
    }
}
