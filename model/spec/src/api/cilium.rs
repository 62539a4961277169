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
    /// The network plugin cilium, which connects pods by programs in the kernel (BPF) and enforces NetworkPolicies. It can take
    /// the place of kube-proxy.
    pub struct CiliumNetworkingSpec {
        /// Registry of its images. Default `quay.io`.
        pub registry: Option<String>,
        /// Version of its images. Default that of the release.
        pub version: Option<String>,
        /// Memory that each pod of the agent and of the operator asks for. Default 128Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that each pod of the agent and of the operator asks for. Default 25m.
        pub cpu_request: Option<Quantity>,
        /// With `enablePrometheusMetrics`: TCP port of the agent's metrics. Default 9090.
        pub agent_prometheus_port: Option<i64>,
        /// With `enablePrometheusMetrics`: metrics added to those of the agent (`+NAME`) or removed from them (`-NAME`).
        pub metrics: Vec<String>,
        /// The CNI plugin that follows cilium's own: `none`, or `portmap` for host ports beside kube-proxy. Default `none`.
        pub chaining_mode: Option<String>,
        /// The agent and the operator write more logs. Default false.
        pub debug: Option<bool>,
        /// Makes no CiliumEndpoint objects. Default false.
        #[serde(rename = "disableEndpointCRD")]
        pub disable_endpoint_crd: Option<bool>,
        /// When policies are enforced: `default` (for pods that a policy selects), `always` or `never`. Default `default`.
        pub enable_policy: Option<String>,
        /// Enforces rules for HTTP, Kafka and DNS. Default true.
        pub enable_l7_proxy: Option<bool>,
        /// Lets policies redirect traffic of a Service to pods of the same node. Default false.
        pub enable_local_redirect_policy: Option<bool>,
        /// Replaces addresses of pods by programs in the kernel, not by iptables. Default false, with `ipam: eni` true.
        #[serde(rename = "enableBPFMasquerade")]
        pub enable_bpf_masquerade: Option<bool>,
        /// Agents probe a pod of each other node. Default true.
        pub enable_endpoint_health_checking: Option<bool>,
        /// Policies apply to nodes too. Default false.
        pub enable_host_firewall: Option<bool>,
        /// The agent and the operator serve metrics. Default false.
        pub enable_prometheus_metrics: Option<bool>,
        /// Encrypts packets between pods of different nodes. Default false.
        pub enable_encryption: Option<bool>,
        /// With `enableEncryption`: `ipsec`, whose key is the secret `ciliumpassword`, or `wireguard`. Default `ipsec`.
        pub encryption_type: Option<String>,
        /// With WireGuard: encrypts packets between nodes too. Default false.
        pub node_encryption: Option<bool>,
        /// Where identities of pods are stored: `crd`, as objects of Kubernetes, or `kvstore`. Default `crd`.
        pub identity_allocation_mode: Option<String>,
        /// How long a changed identity waits before it is used. Default 5s.
        pub identity_change_grace_period: Option<Duration>,
        /// Pods keep their own addresses towards destinations outside the cluster. Default false, on IPv6 true.
        pub disable_masquerade: Option<bool>,
        /// Annotations of the agent's pods.
        pub agent_pod_annotations: BTreeMap<String, String>,
        /// Annotations of the operator's pods.
        pub operator_pod_annotations: BTreeMap<String, String>,
        /// How packets reach other nodes: `vxlan` or `geneve`, or `disabled` with `ipam: eni` and on IPv6. Default `vxlan` or
        /// `disabled`. A running cluster keeps its way.
        pub tunnel: Option<String>,
        /// How much events of packets are summed up: `none`, `low`, `medium` or `maximum`. Default `medium`.
        pub monitor_aggregation: Option<String>,
        /// Most TCP connections that a node tracks. With the default of 524288 cilium sizes the table by the memory of the
        /// instance.
        #[serde(rename = "bpfCTGlobalTCPMax")]
        pub bpf_ct_global_tcp_max: Option<i64>,
        /// Most other connections that a node tracks. With the default of 262144 cilium sizes the table by the memory of the
        /// instance.
        #[serde(rename = "bpfCTGlobalAnyMax")]
        pub bpf_ct_global_any_max: Option<i64>,
        /// How a backend of a Service is chosen: `random` or `maglev`. Default `random`.
        #[serde(rename = "bpfLBAlgorithm")]
        pub bpf_lb_algorithm: Option<String>,
        /// With `maglev`: number of entries in the table of a Service, a prime number of cilium's list. Default 16381.
        #[serde(rename = "bpfLBMaglevTableSize")]
        pub bpf_lb_maglev_table_size: Option<String>,
        /// Most addresses that a node translates at a time. With the default of 524288 cilium sizes the table by the memory of
        /// the instance.
        #[serde(rename = "bpfNATGlobalMax")]
        pub bpf_nat_global_max: Option<i64>,
        /// Most neighbours of a node. With the default of 524288 cilium sizes the table by the memory of the instance.
        pub bpf_neigh_global_max: Option<i64>,
        /// Most entries of the policies of one pod. Default 16384.
        pub bpf_policy_map_max: Option<i64>,
        /// Most entries of each table of Services and backends of a node. Default 65536.
        #[serde(rename = "bpfLBMapMax")]
        pub bpf_lb_map_max: Option<i64>,
        /// Resolves addresses of Services when a socket connects. Default that of `enableHostReachableServices`.
        #[serde(rename = "bpfLBSock")]
        pub bpf_lb_sock: Option<bool>,
        /// With `bpfLBSock`: for sockets of the host only, not of pods. Default false, with `gatewayAPI` true.
        #[serde(rename = "bpfLBSockHostNSOnly")]
        pub bpf_lb_sock_host_ns_only: Option<bool>,
        /// Tables take all their memory when they are made, which makes packets faster. Default false.
        #[serde(rename = "preallocateBPFMaps")]
        pub preallocate_bpf_maps: Option<bool>,
        /// Image of a proxy that cilium no longer has: no effect. The completed spec has kOps' value.
        pub sidecar_istio_proxy_image: Option<String>,
        /// Name of the cluster in a mesh of clusters, without dots. Default `default`.
        pub cluster_name: Option<String>,
        /// Number of the cluster in a mesh of clusters. Default 0: in no mesh.
        #[serde(rename = "clusterID")]
        pub cluster_id: Option<i64>,
        /// What pods are answered that ask for a name which a policy does not allow: `nameError` or `refused`. Default
        /// `refused`.
        pub to_fqdns_dns_reject_response_code: Option<String>,
        /// Who gives addresses to pods: `kubernetes`, from the range of each Node, or `eni`, addresses of the VPC. Default
        /// `kubernetes`.
        pub ipam: Option<String>,
        /// Installs no rules of iptables. Default false.
        #[serde(rename = "IPTablesRulesNoinstall")]
        pub iptables_rules_noinstall: Option<bool>,
        /// Nodes of one subnet have routes to each other's pods. Not beside a tunnel. Default false.
        pub auto_direct_node_routes: Option<bool>,
        /// Older name of `bpfLBSock`, which wins. Default false.
        pub enable_host_reachable_services: Option<bool>,
        /// Cilium takes the place of kube-proxy, for which `spec.kubeProxy.enabled` must be false. Default false.
        pub enable_node_port: Option<bool>,
        /// Runs an etcd cluster for cilium.
        pub etcd_managed: Option<bool>,
        /// Whether policies tell other nodes from the own one. cilium always does: no effect.
        pub enable_remote_node_identity: Option<bool>,
        /// Addresses of pods that have ended are answered as unreachable at once. Default false.
        pub enable_unreachable_routes: Option<bool>,
        /// Removes the CNI configurations of other plugins. Default true.
        pub cni_exclusive: Option<bool>,
        /// Shows flows between pods. A section that is there turns it on.
        pub hubble: Option<HubbleSpec>,
        /// Whether agents write into policies what became of them. cilium no longer does: no effect.
        #[serde(rename = "disableCNPStatusUpdates")]
        pub disable_cnp_status_updates: Option<bool>,
        /// Prefers backends of the own zone for Services that ask for it. Default false.
        pub enable_service_topology: Option<bool>,
        /// The Ingress controller of cilium. A section that is there turns it on.
        pub ingress: Option<CiliumIngressSpec>,
        /// The Gateway API by cilium. A section that is there turns it on.
        #[serde(rename = "gatewayAPI")]
        pub gateway_api: Option<CiliumGatewayAPISpec>,
        /// Further entries of the ConfigMap `cilium-config`. They win over all other fields.
        pub extra_config: BTreeMap<String, String>,
    }

    /// Hubble, which shows flows between pods. It needs cert-manager.
    pub struct HubbleSpec {
        /// Whether hubble runs. Default true if the section is there.
        pub enabled: Option<bool>,
        /// Metrics of flows, such as `dns` or `drop:sourceContext=pod`. Default none.
        pub metrics: Vec<String>,
    }

    /// The Ingress controller of cilium. It needs `enableNodePort`.
    pub struct CiliumIngressSpec {
        /// Whether cilium serves Ingresses. Default true if the section is there.
        pub enabled: Option<bool>,
        /// Redirects HTTP to HTTPS where an Ingress has TLS. Default true.
        pub enforce_https: Option<bool>,
        /// The operator copies the Secrets that Ingresses name to where the agents read them. False: you do. Default true.
        pub enable_secrets_sync: Option<bool>,
        /// Prefixes of the annotations that Services get from their Ingresses, separated by spaces. Default those of cilium's
        /// chart.
        pub load_balancer_annotation_prefixes: Option<String>,
        /// Whether each Ingress has a load balancer of its own (`dedicated`) or all have one (`shared`). Default `dedicated`.
        pub default_load_balancer_mode: Option<String>,
        /// Name of the Service of all Ingresses that share one. Default `cilium-ingress`.
        pub shared_load_balancer_service_name: Option<String>,
    }

    /// The Gateway API by cilium. It needs `enableNodePort`, and you install the CustomResourceDefinitions.
    pub struct CiliumGatewayAPISpec {
        /// Whether cilium serves Gateways. Default true if the section is there.
        pub enabled: Option<bool>,
        /// The operator copies the Secrets that Gateways name to where the agents read them. False: you do. Default true.
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
