//! Names: CoreDNS (`spec.kubeDNS`) and external-dns (`spec.externalDns`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::addon_values::Toleration;
use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// CoreDNS, which answers for the names of Services and pods.
    pub struct KubeDNSConfig {
        /// Entries that kube-dns kept. CoreDNS has no such setting: no effect.
        pub cache_max_size: Option<i32>,
        /// Queries that kube-dns forwarded at a time. CoreDNS has no such setting: no effect.
        pub cache_max_concurrent: Option<i32>,
        /// Taints that its pods tolerate.
        pub tolerations: Vec<Toleration>,
        /// Affinity of its pods, in the form of Kubernetes.
        pub affinity: Option<Value>,
        /// Image of CoreDNS. Default that of the release.
        #[serde(rename = "coreDNSImage")]
        pub core_dns_image: Option<String>,
        /// Image of the autoscaler that sets the number of its pods by nodes and cores. Default that of the release.
        pub cpa_image: Option<String>,
        /// Domain that it answers for. Default `spec.clusterDNSDomain`.
        pub domain: Option<String>,
        /// A whole Corefile in the place of kctl's. Fields that change the Corefile then have no effect.
        pub external_core_file: Option<String>,
        /// Image of kube-dns, which there is no more: no effect.
        pub image: Option<String>,
        /// Fixed number of pods, without the autoscaler. Default by nodes and cores.
        pub replicas: Option<i32>,
        /// `CoreDNS`, or `None` for a DNS server that you install. Default `CoreDNS`.
        pub provider: Option<String>,
        /// Address of the DNS Service. Default the tenth address of `spec.serviceClusterIPRange`.
        #[serde(rename = "serverIP")]
        pub server_ip: Option<String>,
        /// Name servers that are asked for a domain, by domain.
        pub stub_domains: BTreeMap<String, Vec<String>>,
        /// Name servers that are asked for all other names. Default those of the instance, on IPv6 that of AWS.
        pub upstream_nameservers: Vec<String>,
        /// Memory that a pod asks for. Default 70Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// Memory that a pod may use at most. Default 170Mi.
        pub memory_limit: Option<Quantity>,
        /// A DNS cache on every node, which pods ask first.
        #[serde(rename = "nodeLocalDNS")]
        pub node_local_dns: Option<NodeLocalDNSConfig>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
    }

    /// node-local-dns, a DNS cache on every node.
    pub struct NodeLocalDNSConfig {
        /// Installs the cache. Default false.
        pub enabled: Option<bool>,
        /// A whole Corefile in the place of kctl's.
        pub external_core_file: Option<String>,
        /// Text added to its Corefile.
        pub additional_config: Option<String>,
        /// Image of the cache. Default that of the release.
        pub image: Option<String>,
        /// Address on which it listens on every node. Default 169.254.20.10.
        #[serde(rename = "localIP")]
        pub local_ip: Option<String>,
        /// Asks CoreDNS for names outside the cluster too. Default true where CoreDNS knows such names: without a hosted zone,
        /// and with a Corefile or name servers of yours.
        #[serde(rename = "forwardToKubeDNS")]
        pub forward_to_kube_dns: Option<bool>,
        /// Memory that a pod asks for. Default 5Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 25m.
        pub cpu_request: Option<Quantity>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
    }

    /// Who publishes the names of Services, Ingresses and pods in the hosted zone.
    pub struct ExternalDNSConfig {
        /// Nobody publishes such names. Default false.
        pub disable: Option<bool>,
        /// Publishes names of Ingresses too. Default false, with `external-dns` true.
        pub watch_ingress: Option<bool>,
        /// Publishes names of objects in this namespace only; with `external-dns` only `kube-system` is possible. Default all
        /// namespaces.
        pub watch_namespace: Option<String>,
        /// `dns-controller`: protokube publishes them. `external-dns`: the addon of that name does. `none`: nobody. Default
        /// `dns-controller`.
        pub provider: Option<String>,
        /// Priority class of the pods of external-dns. Default `system-cluster-critical`.
        pub priority_class_name: Option<String>,
    }
}
