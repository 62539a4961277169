//! calico: `spec.networking.calico`. Two fields more are of kOps' past (see `unsupported`).

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// The network plugin calico.
    pub struct CalicoNetworkingSpec {
        /// Where its images come from, instead of `docker.io`.
        pub registry: Option<String>,
        /// Its version, `v3.31.6`.
        pub version: Option<String>,
        /// True: pods may forward packets between interfaces.
        #[serde(rename = "allowIPForwarding")]
        pub allow_ip_forwarding: Option<bool>,
        /// What an agent does to EC2's check of addresses on its instance: `Disable`, `Enable` or `DoNothing`.
        pub aws_src_dst_check: Option<String>,
        /// True: programs in the kernel forward packets, instead of iptables and kube-proxy.
        pub bpf_enabled: Option<bool>,
        /// How answers leave for clients outside of the cluster: `Tunnel` (back the way the request came) or `DSR` (directly).
        pub bpf_external_service_mode: Option<String>,
        /// True: agents remove kube-proxy's rules.
        pub bpf_kube_proxy_iptables_cleanup_enabled: Option<bool>,
        /// How much those programs log: `Off`, `Info` or `Debug`.
        pub bpf_log_level: Option<String>,
        /// Where calico's rules stand among others: `insert` (before) or `append` (behind).
        pub chain_insert_mode: Option<String>,
        /// CPU that the agent asks for.
        pub cpu_request: Option<Quantity>,
        /// How packets reach other nodes: `ipip`, `vxlan` or, with IPv6, `none`.
        pub encapsulation_mode: Option<String>,
        /// Which of them are put into IP in IP: `CrossSubnet`, `Always` or `Never`.
        pub ipip_mode: Option<String>,
        /// How an agent finds the address of its node: `first-found`, `can-reach=`, `interface=` or `skip-interface=`.
        pub ipv4_auto_detection_method: Option<String>,
        /// The same for IPv6.
        pub ipv6_auto_detection_method: Option<String>,
        /// Which iptables an agent runs: `Auto`, `Legacy` or `NFT`.
        pub iptables_backend: Option<String>,
        /// The lowest level of what an agent logs.
        pub log_severity_screen: Option<String>,
        /// Size of packets between pods; 0: found out by the agent.
        pub mtu: Option<i32>,
        /// Whether rules are made with nftables: `Disabled`, `Enabled` or `Auto`.
        pub nftables_mode: Option<String>,
        /// True: agents serve metrics.
        pub prometheus_metrics_enabled: Option<bool>,
        /// The port of these metrics.
        pub prometheus_metrics_port: Option<i32>,
        /// True: with those of Go's runtime.
        pub prometheus_go_metrics_enabled: Option<bool>,
        /// True: with those of the process.
        pub prometheus_process_metrics_enabled: Option<bool>,
        /// True: typha serves metrics.
        pub typha_prometheus_metrics_enabled: Option<bool>,
        /// The port of these metrics.
        pub typha_prometheus_metrics_port: Option<i32>,
        /// Pods of typha, which stands between agents and the API; 0: none.
        pub typha_replicas: Option<i32>,
        /// Which packets are put into VXLAN: `CrossSubnet`, `Always` or `Never`.
        pub vxlan_mode: Option<String>,
        /// True: traffic between pods of different nodes is encrypted.
        pub wireguard_enabled: Option<bool>,
    }
}
