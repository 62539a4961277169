//! The CNI: `spec.networking`. Exactly one field is set.

use serde_json::Value;

use super::amazon_vpc::AmazonVPCNetworkingSpec;
use super::calico::CalicoNetworkingSpec;
use super::cilium::CiliumNetworkingSpec;
use super::fields::spec;
use super::kindnet::KindnetNetworkingSpec;
use super::kube_router::KuberouterNetworkingSpec;

spec! {
    /// One field per CNI, as kOps has them.
    pub struct NetworkingSpec {
        /// Removed from kOps.
        pub classic: Option<Value>,
        /// Pod routes in the VPC's route tables.
        pub kubenet: Option<KubenetNetworkingSpec>,
        /// The user installs the CNI; the same as `cni`.
        pub external: Option<ExternalNetworkingSpec>,
        /// The user installs the CNI.
        pub cni: Option<CNINetworkingSpec>,
        pub kopeio: Option<Value>,
        pub weave: Option<Value>,
        pub flannel: Option<FlannelNetworkingSpec>,
        /// In a box, as cilium.
        pub calico: Option<Box<CalicoNetworkingSpec>>,
        pub canal: Option<Value>,
        pub kuberouter: Option<KuberouterNetworkingSpec>,
        pub romana: Option<Value>,
        /// The Amazon VPC CNI.
        pub amazonvpc: Option<AmazonVPCNetworkingSpec>,
        /// In a box: a spec is moved often, and unoptimised each move takes its size of the stack.
        pub cilium: Option<Box<CiliumNetworkingSpec>>,
        pub lyftvpc: Option<Value>,
        /// Google Cloud only.
        pub gce: Option<Value>,
        pub kindnet: Option<KindnetNetworkingSpec>,
    }

    /// Marks kubenet; has no fields.
    pub struct KubenetNetworkingSpec {
    }

    /// Marks an external CNI; has no fields.
    pub struct ExternalNetworkingSpec {
    }

    /// A CNI that the user installs.
    pub struct CNINetworkingSpec {
        /// True: pods have addresses of the VPC.
        #[serde(rename = "usesSecondaryIP")]
        pub uses_secondary_ip: Option<bool>,
    }

    pub struct FlannelNetworkingSpec {
        /// `vxlan` or `udp`.
        pub backend: Option<String>,
        /// True: works around kernels with broken checksums.
        pub disable_tx_checksum_offloading: Option<bool>,
        /// Seconds between checks of its iptables rules.
        pub iptables_resync_seconds: Option<i32>,
    }
}
