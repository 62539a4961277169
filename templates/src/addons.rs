//! Addons: objects that the cluster runs of itself, as YAML documents, and the files that go into their ConfigMaps.
//! A value that is `None` or null is one that nobody gave: who reads the documents leaves its field out.

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

/// What the API server may ask kubelets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeletApi {
    /// Common name of the certificate that the API server shows kubelets.
    pub user: String,
}

/// What containers of the namespace `default` ask for if they ask for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitRange {
    /// CPU, a quantity.
    pub cpu_request: String,
}

/// With what kubelets make their Nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeRegistration {}

/// flannel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flannel {
    /// Image of flanneld.
    pub image: String,
    /// Image of the CNI plugin `flannel`.
    pub plugin_image: String,
    /// The CNI configuration, JSON.
    pub cni_config: String,
    /// The network's configuration, JSON.
    pub network_config: String,
    /// sha256 (hex) of both: a change of them restarts the pods.
    pub config_sha256: String,
    /// Where the API answers on every machine, on port 443.
    pub api_host: String,
    /// Arguments of flanneld.
    pub arguments: Vec<String>,
    /// Port of its health checks, on 127.0.0.1.
    pub health_port: u16,
    /// It needs `/dev/net/tun`.
    pub privileged: bool,
    /// SELinux options of its container.
    pub selinux: Option<BTreeMap<String, String>>,
}

/// CoreDNS' configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Corefile {
    /// Domain of the cluster.
    pub domain: String,
    /// Name servers of everything else: addresses, or a file that names them.
    pub upstreams: Vec<String>,
    /// Domains that have name servers of their own.
    pub stubs: Vec<StubDomain>,
}

/// A domain with name servers of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StubDomain {
    /// `example.com:53`.
    pub domain: String,
    /// Its name servers.
    pub servers: Vec<String>,
}

/// CoreDNS.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreDns {
    /// Its configuration.
    pub corefile: String,
    /// Its image.
    pub image: String,
    /// Address of its Service.
    pub cluster_ip: String,
    /// Fixed number of pods; `None`: the autoscaler decides.
    pub replicas: Option<i32>,
    /// CPU a pod asks for.
    pub cpu_request: Option<String>,
    /// Memory a pod asks for.
    pub memory_request: Option<String>,
    /// Memory a pod may use at most.
    pub memory_limit: Option<String>,
    /// Tolerations of its pods.
    pub tolerations: Vec<Value>,
    /// Affinity of its pods.
    pub affinity: Option<Value>,
    /// Annotations of its pods.
    pub pod_annotations: Option<BTreeMap<String, String>>,
}

/// What sets the number of CoreDNS' pods.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreDnsAutoscaler {
    /// Its image.
    pub image: String,
    /// Tolerations of its pod.
    pub tolerations: Vec<Value>,
    /// Affinity of its pod.
    pub affinity: Option<Value>,
}

/// The configuration file of the AWS cloud controller manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudConfig {
    /// Its settings, in the section `global`.
    pub settings: Vec<CloudSetting>,
}

/// A setting of the AWS cloud controller manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudSetting {
    /// `ElbSecurityGroup`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The AWS cloud controller manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudControllerManager {
    /// Its image.
    pub image: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// CPU a pod asks for.
    pub cpu_request: Option<String>,
    /// Its configuration file.
    pub cloud_config: String,
    /// sha256 (hex) of it: a change restarts the pods.
    pub config_sha256: String,
    /// Where the file is, as `cloud.config`.
    pub config_folder: String,
}

#[cfg(test)]
pub(crate) mod samples {
    use super::{
        CloudConfig, CloudControllerManager, CloudSetting, CoreDns, CoreDnsAutoscaler, Corefile,
        Flannel, KubeletApi, LimitRange, StubDomain,
    };
    use serde_json::json;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    pub(crate) fn rbac() -> (KubeletApi, LimitRange) {
        (
            KubeletApi {
                user: text("kubelet-api"),
            },
            LimitRange {
                cpu_request: text("100m"),
            },
        )
    }

    pub(crate) fn flannel() -> Flannel {
        Flannel {
            image: text("ghcr.io/flannel-io/flannel:v1"),
            plugin_image: text("ghcr.io/flannel-io/flannel-cni-plugin:v1"),
            cni_config: text("{}"),
            network_config: text("{}"),
            config_sha256: "0".repeat(64),
            api_host: text("api.internal.a.example.com"),
            arguments: vec![text("--ip-masq")],
            health_port: 8081,
            privileged: false,
            selinux: Some([(text("type"), text("spc_t"))].into()),
        }
    }

    pub(crate) fn corefile() -> Corefile {
        Corefile {
            domain: text("cluster.local."),
            upstreams: vec![text("/etc/resolv.conf")],
            stubs: vec![StubDomain {
                domain: text("example.com:53"),
                servers: vec![text("10.0.0.2"), text("10.0.0.3")],
            }],
        }
    }

    pub(crate) fn core_dns() -> (CoreDns, CoreDnsAutoscaler) {
        let tolerations = vec![json!({"key": "a", "operator": "Exists"})];
        let affinity = Some(json!({"podAffinity": {"a": ["b"]}}));
        (
            CoreDns {
                corefile: text(".:53 {\n}\n"),
                image: text("registry.k8s.io/coredns/coredns:v1"),
                cluster_ip: text("100.64.0.10"),
                replicas: Some(2),
                cpu_request: Some(text("100m")),
                memory_request: Some(text("70Mi")),
                memory_limit: Some(text("170Mi")),
                tolerations: tolerations.clone(),
                affinity: affinity.clone(),
                pod_annotations: Some([(text("a"), text("b"))].into()),
            },
            CoreDnsAutoscaler {
                image: text("registry.k8s.io/cpa/cluster-proportional-autoscaler:v1"),
                tolerations,
                affinity,
            },
        )
    }

    pub(crate) fn cloud() -> (CloudConfig, CloudControllerManager) {
        (
            CloudConfig {
                settings: vec![CloudSetting {
                    name: text("ElbSecurityGroup"),
                    value: text("sg-1"),
                }],
            },
            CloudControllerManager {
                image: text("registry.k8s.io/provider-aws/cloud-controller-manager:v1"),
                arguments: vec![text("--v=2")],
                cpu_request: Some(text("200m")),
                cloud_config: text("[global]\n"),
                config_sha256: "0".repeat(64),
                config_folder: text("/etc/kubernetes/cloud"),
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
        let text = render(&samples::corefile()).unwrap();
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
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn the_cloud_configuration_is_one_section() {
        let (config, _) = samples::cloud();
        let text = render(&config).unwrap();
        assert_eq!(text, "[global]\nElbSecurityGroup = \"sg-1\"\n");
    }
}
