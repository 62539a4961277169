//! The CNI: `spec.networking`. Exactly one field is set.

use serde_json::Value;

use super::amazon_vpc::AmazonVPCNetworkingSpec;
use super::calico::CalicoNetworkingSpec;
use super::cilium::CiliumNetworkingSpec;
use super::fields::spec;
use super::kindnet::KindnetNetworkingSpec;
use super::kube_router::KuberouterNetworkingSpec;

spec! {
    /// The network plugin, which connects pods. Exactly one of the fields is set, `{}` for its defaults.
    pub struct NetworkingSpec {
        /// The network of Kubernetes before there were plugins.
        pub classic: Option<Value>,
        /// Pods are reached by routes of the VPC, of which a route table takes a limited number. It has no fields: `{}`.
        pub kubenet: Option<KubenetNetworkingSpec>,
        /// You install the network plugin, as with `cni`. It has no fields: `{}`.
        pub external: Option<ExternalNetworkingSpec>,
        /// You install the network plugin once the API answers; Nodes are not ready before.
        pub cni: Option<CNINetworkingSpec>,
        /// The network plugin kopeio.
        pub kopeio: Option<Value>,
        /// The network plugin Weave Net.
        pub weave: Option<Value>,
        /// The network plugin flannel, which puts packets between nodes into VXLAN. It enforces no NetworkPolicies.
        pub flannel: Option<FlannelNetworkingSpec>,
        // In a box, as cilium: a spec is moved often, and unoptimised each move takes its size of the stack.
        /// The network plugin calico, with routes of the kernel and NetworkPolicies.
        pub calico: Option<Box<CalicoNetworkingSpec>>,
        /// The network plugin canal.
        pub canal: Option<Value>,
        /// The network plugin kube-router, with routes, NetworkPolicies and Services. `spec.kubeProxy.enabled` must be false.
        pub kuberouter: Option<KuberouterNetworkingSpec>,
        /// The network plugin romana.
        pub romana: Option<Value>,
        /// The Amazon VPC CNI, which gives pods addresses of the VPC.
        pub amazonvpc: Option<AmazonVPCNetworkingSpec>,
        /// The network plugin cilium, with programs in the kernel (BPF) and NetworkPolicies. `kctl create cluster` writes it.
        pub cilium: Option<Box<CiliumNetworkingSpec>>,
        /// The network plugin of Lyft for the VPC.
        pub lyftvpc: Option<Value>,
        /// Google Cloud only.
        pub gce: Option<Value>,
        /// The network plugin kindnet, for clusters in one subnet.
        pub kindnet: Option<KindnetNetworkingSpec>,
    }

    /// Pods are reached by routes of the VPC. It has no fields.
    pub struct KubenetNetworkingSpec {
    }

    /// You install the network plugin. It has no fields.
    pub struct ExternalNetworkingSpec {
    }

    /// You install the network plugin.
    pub struct CNINetworkingSpec {
        /// The plugin gives pods addresses of the VPC.
        #[serde(rename = "usesSecondaryIP")]
        pub uses_secondary_ip: Option<bool>,
    }

    /// The network plugin flannel.
    pub struct FlannelNetworkingSpec {
        /// How packets reach other nodes: `vxlan` or `udp`. Default `vxlan`. A running cluster keeps its way.
        pub backend: Option<String>,
        /// Works around kernels before 5.7 with wrong checksums. No supported system has one: no effect.
        pub disable_tx_checksum_offloading: Option<bool>,
        /// Seconds after which flannel checks its rules of iptables again. Default flannel's own.
        pub iptables_resync_seconds: Option<i32>,
    }
}
