//! Templates of the addons (Kubernetes objects as YAML documents) and of the files in their ConfigMaps. A value that is `None` or
//! null was not set; the reader of the documents leaves its field out.

use crate::Template;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

macro_rules! templates {
    ($($context:ident from $file:literal),* $(,)?) => {
        $(impl Template for $context {
            const NAME: &'static str = $file;
            const SOURCE: &'static str = include_str!(concat!("../", $file));
        })*
    };
}

templates! {
    ProtokubeAccess from "addons/protokube-access.yaml.hbs",
    KubeletApi from "addons/kubelet-api.yaml.hbs",
    LimitRange from "addons/limit-range.yaml.hbs",
    NodeRegistration from "addons/node-registration.yaml.hbs",
    Flannel from "addons/flannel.yaml.hbs",
    Corefile from "addons/corefile.hbs",
    CoreDns from "addons/coredns.yaml.hbs",
    CoreDnsAutoscaler from "addons/coredns-autoscaler.yaml.hbs",
    CloudConfig from "addons/cloud-config.hbs",
    CloudControllerManager from "addons/cloud-controller-manager.yaml.hbs",
}

/// RBAC objects that grant protokube what its roles call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProtokubeAccess {
    /// Group of protokube's user, and the name of the objects.
    pub group: String,
    /// Name of the Lease by which control planes end one after the other.
    pub lease: String,
    /// Name of the ConfigMap with the applied addons.
    pub addon_record: String,
    /// protokube publishes the names of Services and pods.
    pub object_names: bool,
    /// It publishes those of Ingresses too.
    pub ingress_names: bool,
}

/// RBAC objects that let the API server call kubelets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeletApi {
    /// Common name of the client certificate that the API server uses for kubelets.
    pub user: String,
}

/// Default requests of containers in the namespace `default`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitRange {
    /// CPU request, a Kubernetes quantity.
    pub cpu_request: String,
}

/// RBAC objects that let kubelets register their Nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeRegistration {}

/// The CNI plugin flannel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flannel {
    pub image: String,
    /// Image of the CNI plugin `flannel`.
    pub plugin_image: String,
    /// CNI configuration, JSON.
    pub cni_config: String,
    /// Network configuration of flanneld, JSON.
    pub network_config: String,
    /// sha256 (hex) of both configurations, so that a change restarts the pods.
    pub config_sha256: String,
    /// Host name at which every node reaches the API, on port 443.
    pub api_host: String,
    /// Command-line arguments of flanneld.
    pub arguments: Vec<String>,
    /// Port of the health checks on 127.0.0.1.
    pub health_port: u16,
    /// True if the container needs `/dev/net/tun`.
    pub privileged: bool,
    /// SELinux options of the container.
    pub selinux: Option<BTreeMap<String, String>>,
}

/// The configuration file of CoreDNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Corefile {
    /// DNS domain of the cluster, with a trailing dot.
    pub domain: String,
    /// Domains whose names are looked up in the instance's `/etc/hosts` first.
    pub hosts: Vec<String>,
    /// Name servers for all other domains: addresses, or the path of a resolv.conf.
    pub upstreams: Vec<String>,
    /// Pods have IPv6 only: names that have IPv4 addresses only get such of NAT64.
    pub dns64: bool,
    /// Domains with their own name servers.
    pub stubs: Vec<StubDomain>,
}

/// A domain with its own name servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StubDomain {
    /// Domain and port: `example.com:53`.
    pub domain: String,
    /// Addresses of the name servers.
    pub servers: Vec<String>,
}

/// The DNS server of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreDns {
    /// Rendered [`Corefile`].
    pub corefile: String,
    /// The Corefile names the instance's `/etc/hosts`.
    pub reads_hosts: bool,
    /// Resources of the core API that its plugin `kubernetes` watches.
    pub watched_resources: Vec<String>,
    pub image: String,
    /// Address of the Service `kube-dns`.
    pub cluster_ip: String,
    /// Fixed number of pods; `None`: the autoscaler decides.
    pub replicas: Option<i32>,
    /// CPU request of a pod.
    pub cpu_request: Option<String>,
    /// Memory request of a pod.
    pub memory_request: Option<String>,
    /// Memory limit of a pod.
    pub memory_limit: Option<String>,
    /// Tolerations of the pods.
    pub tolerations: Vec<Value>,
    /// Affinity of the pods.
    pub affinity: Option<Value>,
    /// Annotations of the pods.
    pub pod_annotations: Option<BTreeMap<String, String>>,
}

/// The autoscaler that sets the number of CoreDNS pods.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreDnsAutoscaler {
    pub image: String,
    /// Tolerations of the pod.
    pub tolerations: Vec<Value>,
    /// Affinity of the pod.
    pub affinity: Option<Value>,
}

/// The configuration file of the AWS cloud controller manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudConfig {
    /// Settings of the section `global`.
    pub settings: Vec<CloudSetting>,
}

/// One line of the section `global`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudSetting {
    /// Key, for example `ElbSecurityGroup`.
    pub name: String,
    /// Value, written in quotes.
    pub value: String,
}

/// The AWS cloud controller manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudControllerManager {
    pub image: String,
    pub arguments: Vec<String>,
    /// Name and namespace of the Lease by which its pods elect a leader.
    pub leases: Vec<String>,
    pub lease_namespace: String,
    /// CPU request of a pod.
    pub cpu_request: Option<String>,
    /// Rendered [`CloudConfig`].
    pub cloud_config: String,
    /// sha256 (hex) of the configuration file, so that a change restarts the pods.
    pub config_sha256: String,
    /// Folder in which the configuration file is mounted as `cloud.config`.
    pub config_folder: String,
}

#[cfg(test)]
pub(crate) mod samples {
    use super::{
        CloudConfig, CloudControllerManager, CloudSetting, CoreDns, CoreDnsAutoscaler, Corefile,
        Flannel, KubeletApi, LimitRange, ProtokubeAccess, StubDomain,
    };
    use serde_json::json;

    fn owned_text(text: &str) -> String {
        text.to_owned()
    }

    pub(crate) fn sample_access() -> ProtokubeAccess {
        ProtokubeAccess {
            group: owned_text("kctl:protokube"),
            lease: owned_text("kctl-termination"),
            addon_record: owned_text("kctl-addons"),
            object_names: true,
            ingress_names: true,
        }
    }

    pub(crate) fn sample_rbac() -> (KubeletApi, LimitRange) {
        (
            KubeletApi {
                user: owned_text("kubelet-api"),
            },
            LimitRange {
                cpu_request: owned_text("100m"),
            },
        )
    }

    pub(crate) fn sample_flannel() -> Flannel {
        Flannel {
            image: owned_text("ghcr.io/flannel-io/flannel:v1"),
            plugin_image: owned_text("ghcr.io/flannel-io/flannel-cni-plugin:v1"),
            cni_config: owned_text("{}"),
            network_config: owned_text("{}"),
            config_sha256: "0".repeat(64),
            api_host: owned_text("api.internal.a.example.com"),
            arguments: vec![owned_text("--ip-masq")],
            health_port: 8081,
            privileged: false,
            selinux: Some([(owned_text("type"), owned_text("spc_t"))].into()),
        }
    }

    pub(crate) fn sample_corefile() -> Corefile {
        Corefile {
            domain: owned_text("cluster.local."),
            hosts: vec![owned_text("a.example.com")],
            upstreams: vec![owned_text("/etc/resolv.conf")],
            dns64: true,
            stubs: vec![StubDomain {
                domain: owned_text("example.com:53"),
                servers: vec![owned_text("10.0.0.2"), owned_text("10.0.0.3")],
            }],
        }
    }

    pub(crate) fn core_dns() -> (CoreDns, CoreDnsAutoscaler) {
        let tolerations = vec![json!({"key": "a", "operator": "Exists"})];
        let affinity = Some(json!({"podAffinity": {"a": ["b"]}}));
        (
            CoreDns {
                corefile: owned_text(".:53 {\n}\n"),
                reads_hosts: true,
                watched_resources: vec![owned_text("services")],
                image: owned_text("registry.k8s.io/coredns/coredns:v1"),
                cluster_ip: owned_text("100.64.0.10"),
                replicas: Some(2),
                cpu_request: Some(owned_text("100m")),
                memory_request: Some(owned_text("70Mi")),
                memory_limit: Some(owned_text("170Mi")),
                tolerations: tolerations.clone(),
                affinity: affinity.clone(),
                pod_annotations: Some([(owned_text("a"), owned_text("b"))].into()),
            },
            CoreDnsAutoscaler {
                image: owned_text("registry.k8s.io/cpa/cluster-proportional-autoscaler:v1"),
                tolerations,
                affinity,
            },
        )
    }

    pub(crate) fn sample_cloud() -> (CloudConfig, CloudControllerManager) {
        (
            CloudConfig {
                settings: vec![CloudSetting {
                    name: owned_text("ElbSecurityGroup"),
                    value: owned_text("sg-1"),
                }],
            },
            CloudControllerManager {
                image: owned_text("registry.k8s.io/provider-aws/cloud-controller-manager:v1"),
                arguments: vec![owned_text("--v=2")],
                leases: vec![owned_text("cloud-controller-manager")],
                lease_namespace: owned_text("kube-system"),
                cpu_request: Some(owned_text("200m")),
                cloud_config: owned_text("[global]\n"),
                config_sha256: "0".repeat(64),
                config_folder: owned_text("/etc/kubernetes/cloud"),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::samples;
    use crate::render;

    #[test]
    fn a_corefile_has_a_block_for_each_domain_with_servers_of_its_own() {
        let text = render(&samples::sample_corefile()).unwrap();
        assert!(text.starts_with(".:53 {\n    errors\n"), "{text}");
        assert!(
            text.contains("    kubernetes cluster.local. in-addr.arpa ip6.arpa {\n"),
            "{text}"
        );
        assert!(
            text.contains("    forward . /etc/resolv.conf {\n"),
            "{text}"
        );
        assert!(
            text.contains("}\nexample.com:53 {\n    errors\n    forward . 10.0.0.2 10.0.0.3 {\n"),
            "{text}"
        );
        assert_eq!(text.matches("    loadbalance\n    dns64\n}\n").count(), 2);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn the_cloud_configuration_is_one_section() {
        let (config, _) = samples::sample_cloud();
        let text = render(&config).unwrap();
        assert_eq!(text, "[global]\nElbSecurityGroup = \"sg-1\"\n");
    }
}
