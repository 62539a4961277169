//! cilium: `spec.networking.cilium`. kOps has 53 fields more that nothing uses any more (see `unsupported`).

use super::fields::spec;
use super::scalars::{Duration, Quantity};
use std::collections::BTreeMap;

/// Sizes of tables that kOps writes into the completed spec. cilium gets them only where the spec says otherwise: by itself it sizes
/// these tables by the memory of the instance.
pub const TCP_CONNECTIONS: i64 = 524_288;
pub const OTHER_CONNECTIONS: i64 = 262_144;
pub const TRANSLATIONS: i64 = 524_288;

/// What kOps fills in for a proxy that cilium no longer has.
pub const ISTIO_PROXY: &str = "cilium/istio_proxy";

spec! {
    /// The network plugin cilium.
    pub struct CiliumNetworkingSpec {
        /// Where its images come from, instead of `quay.io`.
        pub registry: Option<String>,
        /// Its version, `v1.20.2`.
        pub version: Option<String>,
        /// Memory that the agent and the operator ask for.
        pub memory_request: Option<Quantity>,
        /// CPU that the agent and the operator ask for.
        pub cpu_request: Option<Quantity>,
        /// The port of the agent's metrics.
        pub agent_prometheus_port: Option<i64>,
        /// Metrics added to those of the agent (`+NAME`) or removed from them (`-NAME`).
        pub metrics: Vec<String>,
        /// The CNI plugin beside cilium's: `none`, or `portmap` for host ports.
        pub chaining_mode: Option<String>,
        /// True: the agent and the operator write more logs.
        pub debug: Option<bool>,
        /// True: no CiliumEndpoint objects.
        #[serde(rename = "disableEndpointCRD")]
        pub disable_endpoint_crd: Option<bool>,
        /// When policies are enforced: `default`, `always` or `never`.
        pub enable_policy: Option<String>,
        /// False: no rules for HTTP, Kafka and DNS.
        pub enable_l7_proxy: Option<bool>,
        /// True: traffic to a Service may be redirected to pods of the node.
        pub enable_local_redirect_policy: Option<bool>,
        /// True: addresses are masqueraded in BPF instead of iptables.
        #[serde(rename = "enableBPFMasquerade")]
        pub enable_bpf_masquerade: Option<bool>,
        /// False: agents do not probe a pod of each node.
        pub enable_endpoint_health_checking: Option<bool>,
        /// True: policies apply to nodes too.
        pub enable_host_firewall: Option<bool>,
        /// True: the agent and the operator serve metrics.
        pub enable_prometheus_metrics: Option<bool>,
        /// True: traffic between pods of different nodes is encrypted.
        pub enable_encryption: Option<bool>,
        /// `ipsec` or `wireguard`.
        pub encryption_type: Option<String>,
        /// True: traffic between nodes is encrypted too.
        pub node_encryption: Option<bool>,
        /// Where identities are stored: `crd` or `kvstore`.
        pub identity_allocation_mode: Option<String>,
        /// How long an identity waits before it is used.
        pub identity_change_grace_period: Option<Duration>,
        /// True: pods keep their addresses towards the world.
        pub disable_masquerade: Option<bool>,
        /// Annotations of the agents' pods.
        pub agent_pod_annotations: BTreeMap<String, String>,
        /// Annotations of the operator's pods.
        pub operator_pod_annotations: BTreeMap<String, String>,
        /// How packets reach other nodes: `vxlan`, `geneve` or `disabled`.
        pub tunnel: Option<String>,
        /// How much events are summed up: `none`, `low`, `medium` or `maximum`.
        pub monitor_aggregation: Option<String>,
        /// Most TCP connections of a node.
        #[serde(rename = "bpfCTGlobalTCPMax")]
        pub bpf_ct_global_tcp_max: Option<i64>,
        /// Most other connections of a node.
        #[serde(rename = "bpfCTGlobalAnyMax")]
        pub bpf_ct_global_any_max: Option<i64>,
        /// How backends are chosen: `random` or `maglev`.
        #[serde(rename = "bpfLBAlgorithm")]
        pub bpf_lb_algorithm: Option<String>,
        /// Backends in maglev's table of a Service; a prime number of cilium's list.
        #[serde(rename = "bpfLBMaglevTableSize")]
        pub bpf_lb_maglev_table_size: Option<String>,
        /// Most translated addresses of a node.
        #[serde(rename = "bpfNATGlobalMax")]
        pub bpf_nat_global_max: Option<i64>,
        /// Most neighbours of a node.
        pub bpf_neigh_global_max: Option<i64>,
        /// Most rules of a pod.
        pub bpf_policy_map_max: Option<i64>,
        /// Most Services and backends of a node.
        #[serde(rename = "bpfLBMapMax")]
        pub bpf_lb_map_max: Option<i64>,
        /// True: Services are resolved when a socket connects.
        #[serde(rename = "bpfLBSock")]
        pub bpf_lb_sock: Option<bool>,
        /// True: for sockets of the host only.
        #[serde(rename = "bpfLBSockHostNSOnly")]
        pub bpf_lb_sock_host_ns_only: Option<bool>,
        /// True: maps take their memory when they are made.
        #[serde(rename = "preallocateBPFMaps")]
        pub preallocate_bpf_maps: Option<bool>,
        /// A proxy that cilium no longer has; kOps' completed spec names it.
        pub sidecar_istio_proxy_image: Option<String>,
        /// The name in a mesh of clusters.
        pub cluster_name: Option<String>,
        /// The number in a mesh of clusters; 0: none.
        #[serde(rename = "clusterID")]
        pub cluster_id: Option<i64>,
        /// What refused names are answered: `nameError` or `refused`.
        pub to_fqdns_dns_reject_response_code: Option<String>,
        /// Who gives addresses to pods: `kubernetes`, `crd`, `hostscope` or `eni`.
        pub ipam: Option<String>,
        /// True: no rules of iptables.
        #[serde(rename = "IPTablesRulesNoinstall")]
        pub iptables_rules_noinstall: Option<bool>,
        /// True: nodes of one subnet have routes to each other.
        pub auto_direct_node_routes: Option<bool>,
        /// True: Services are resolved when a socket of the host connects.
        pub enable_host_reachable_services: Option<bool>,
        /// True: cilium replaces kube-proxy.
        pub enable_node_port: Option<bool>,
        /// True: an etcd cluster of its own, for identities.
        pub etcd_managed: Option<bool>,
        /// False: other nodes count as this one in policies.
        pub enable_remote_node_identity: Option<bool>,
        /// True: addresses of pods that went are unreachable.
        pub enable_unreachable_routes: Option<bool>,
        /// False: other CNI configurations stay.
        pub cni_exclusive: Option<bool>,
        /// What flows are seen with.
        pub hubble: Option<HubbleSpec>,
        /// False: agents write what became of policies into these.
        #[serde(rename = "disableCNPStatusUpdates")]
        pub disable_cnp_status_updates: Option<bool>,
        /// True: backends of the own zone are preferred, where the Service asks for it.
        pub enable_service_topology: Option<bool>,
        /// Ingresses.
        pub ingress: Option<CiliumIngressSpec>,
        /// Gateways.
        #[serde(rename = "gatewayAPI")]
        pub gateway_api: Option<CiliumGatewayAPISpec>,
        /// Further entries of the ConfigMap; they win.
        pub extra_config: BTreeMap<String, String>,
    }

    /// hubble, which shows flows between pods.
    pub struct HubbleSpec {
        pub enabled: Option<bool>,
        /// The metrics of flows, as `dns` or `drop:sourceContext=pod`.
        pub metrics: Vec<String>,
    }

    /// cilium's Ingress controller.
    pub struct CiliumIngressSpec {
        pub enabled: Option<bool>,
        /// False: HTTP is served where an Ingress has TLS.
        pub enforce_https: Option<bool>,
        /// False: somebody else puts the Secrets that Ingresses name where the agents read them.
        pub enable_secrets_sync: Option<bool>,
        /// Prefixes of annotations that Services get from Ingresses, separated by spaces.
        pub load_balancer_annotation_prefixes: Option<String>,
        /// `dedicated` or `shared`.
        pub default_load_balancer_mode: Option<String>,
        /// The Service of all Ingresses that share one.
        pub shared_load_balancer_service_name: Option<String>,
    }

    /// cilium's implementation of the Gateway API.
    pub struct CiliumGatewayAPISpec {
        pub enabled: Option<bool>,
        /// False: somebody else puts the Secrets that Gateways name where the agents read them.
        pub enable_secrets_sync: Option<bool>,
    }
}

impl CiliumNetworkingSpec {
    /// True if packets between pods are encrypted with IPsec, which is kOps' default.
    pub fn uses_ipsec(&self) -> bool {
        self.enable_encryption == Some(true) && self.encryption_type.as_deref() != Some("wireguard")
    }

    /// True if flows are shown. As in kOps, a section that is there is on unless it says otherwise.
    pub fn has_hubble(&self) -> bool {
        let hubble = self.hubble.as_ref();
        hubble.is_some_and(|hubble| hubble.enabled != Some(false))
    }

    /// Its Ingress controller, if that is on.
    pub fn ingress(&self) -> Option<&CiliumIngressSpec> {
        let ingress = self.ingress.as_ref();
        ingress.filter(|ingress| ingress.enabled != Some(false))
    }

    /// Its implementation of the Gateway API, if that is on.
    pub fn gateways(&self) -> Option<&CiliumGatewayAPISpec> {
        let gateways = self.gateway_api.as_ref();
        gateways.filter(|gateways| gateways.enabled != Some(false))
    }

    /// True if pods have addresses of network interfaces that the operator attaches to instances.
    pub fn uses_interfaces(&self) -> bool {
        self.ipam.as_deref() == Some("eni")
    }
}
