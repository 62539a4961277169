//! Names: CoreDNS (`spec.kubeDNS`) and external-dns (`spec.externalDns`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::addon_values::Toleration;
use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// DNS of services and pods.
    pub struct KubeDNSConfig {
        /// Entries that kube-dns' dnsmasq cached; without effect on CoreDNS.
        pub cache_max_size: Option<i32>,
        /// Queries that kube-dns' dnsmasq forwarded at once; without effect on CoreDNS.
        pub cache_max_concurrent: Option<i32>,
        /// Tolerations of its pods, as in Kubernetes.
        pub tolerations: Vec<Toleration>,
        /// Affinity of its pods, as in Kubernetes.
        pub affinity: Option<Value>,
        #[serde(rename = "coreDNSImage")]
        pub core_dns_image: Option<String>,
        /// Image of the proportional autoscaler.
        pub cpa_image: Option<String>,
        /// Domain it answers for; default `clusterDNSDomain`.
        pub domain: Option<String>,
        /// A whole Corefile instead of ours.
        pub external_core_file: Option<String>,
        /// Image of kube-dns; removed from kOps.
        pub image: Option<String>,
        /// Fixed number of pods, without the autoscaler.
        pub replicas: Option<i32>,
        /// `CoreDNS`, or `None` for the user's own.
        pub provider: Option<String>,
        /// Address of the DNS service; default the 10th of the service range.
        #[serde(rename = "serverIP")]
        pub server_ip: Option<String>,
        /// Name servers per domain.
        pub stub_domains: BTreeMap<String, Vec<String>>,
        /// Name servers of everything else; default the instance's.
        pub upstream_nameservers: Vec<String>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// Memory a pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// A cache on every node.
        #[serde(rename = "nodeLocalDNS")]
        pub node_local_dns: Option<NodeLocalDNSConfig>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
    }

    /// node-local-dns: a DNS cache on every node.
    pub struct NodeLocalDNSConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// A whole Corefile instead of ours.
        pub external_core_file: Option<String>,
        /// Added to its Corefile.
        pub additional_config: Option<String>,
        pub image: Option<String>,
        /// Address it listens on; default 169.254.20.10.
        #[serde(rename = "localIP")]
        pub local_ip: Option<String>,
        /// True: asks CoreDNS for names outside the cluster too.
        #[serde(rename = "forwardToKubeDNS")]
        pub forward_to_kube_dns: Option<bool>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
    }

    /// Publication of names for services and ingresses.
    pub struct ExternalDNSConfig {
        /// True: nothing publishes names.
        pub disable: Option<bool>,
        /// True: names of ingresses are published too.
        pub watch_ingress: Option<bool>,
        /// Publishes names of Services and Ingresses of this namespace only.
        pub watch_namespace: Option<String>,
        /// `dns-controller`, `external-dns` or `none`.
        pub provider: Option<String>,
        /// Priority class of its pods.
        pub priority_class_name: Option<String>,
    }
}
