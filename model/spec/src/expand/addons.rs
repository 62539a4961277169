//! What kctl deploys into the cluster, of a completed spec, in full.

use super::assets::remapped_image;
use super::components::made_of;
use super::{Found, flags};
use crate::api::cloud::CloudConfiguration;
use crate::api::cluster::ClusterSpec;
use crate::api::dns::KubeDNSConfig;
use full::{Addons, CloudControllerManager, CoreDns, Corefile, Flannel};
use node::config::Networking;
use serde_json::json;

/// What kOps installs with the Kubernetes versions that kctl knows, and the plugin that its makers name beside it.
const FLANNEL: &str = "ghcr.io/flannel-io/flannel:v0.28.9";
const FLANNEL_PLUGIN: &str = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3";

/// Seconds between flannel's checks of its iptables rules, unless the spec says.
const RESYNC: i32 = 5;

/// The addons of a cluster with that network plugin.
pub(super) fn full(spec: &ClusterSpec, networking: &Networking, found: &mut Found) -> Addons {
    let dns = spec.kube_dns.clone().unwrap_or_default();
    Addons {
        core_dns: (dns.provider.as_deref() != Some("None")).then(|| core_dns(dns)),
        cloud_controller_manager: cloud_controller_manager(spec, found),
        flannel: match networking {
            Networking::Flannel(backend) => Some(flannel(spec, backend)),
            _ => None,
        },
    }
}

fn core_dns(dns: KubeDNSConfig) -> CoreDns {
    let made = |dns: &KubeDNSConfig| Corefile::Made {
        domain: dns.domain.clone().unwrap_or_default(),
        upstreams: dns.upstream_nameservers.clone(),
        stub_domains: dns.stub_domains.clone(),
    };
    let own = dns.external_core_file.clone().map(Corefile::Own);
    CoreDns {
        corefile: own.unwrap_or_else(|| made(&dns)),
        image: dns.core_dns_image.unwrap_or_default(),
        replicas: dns.replicas,
        autoscaler_image: dns.cpa_image.unwrap_or_default(),
        cpu_request: dns.cpu_request,
        memory_request: dns.memory_request,
        memory_limit: dns.memory_limit,
        tolerations: if dns.tolerations.is_empty() {
            vec![json!({ "key": "CriticalAddonsOnly", "operator": "Exists" })]
        } else {
            dns.tolerations
        },
        affinity: dns.affinity,
        pod_annotations: dns.pod_annotations,
    }
}

fn cloud_controller_manager(spec: &ClusterSpec, found: &mut Found) -> CloudControllerManager {
    let manager = spec.cloud_controller_manager.clone().unwrap_or_default();
    let made = flags::cloud_controller_manager(&manager);
    CloudControllerManager {
        image: manager.image.unwrap_or_default(),
        flags: made_of("spec.cloudControllerManager", made, found),
        cpu_request: manager.cpu_request,
        settings: settings(&spec.cloud_config.clone().unwrap_or_default()),
    }
}

/// Its configuration file. kOps has the same in a file of the instance; in the addon a change needs no new instance.
fn settings(config: &CloudConfiguration) -> Vec<(String, String)> {
    let ingress = config.disable_security_group_ingress;
    let one = |name: &str, value: Option<String>| value.map(|value| (name.to_owned(), value));
    let families = config.node_ip_families.iter();
    [
        one(
            "DisableSecurityGroupIngress",
            ingress.map(|disable| disable.to_string()),
        ),
        one("ElbSecurityGroup", config.elb_security_group.clone()),
        one(
            "NLBSecurityGroupMode",
            config.nlb_security_group_mode.clone(),
        ),
    ]
    .into_iter()
    .flatten()
    .chain(families.filter_map(|family| one("NodeIPFamilies", Some(family.clone()))))
    .collect()
}

fn flannel(spec: &ClusterSpec, backend: &str) -> Flannel {
    let assets = spec.assets.clone().unwrap_or_default();
    let settings = spec.networking.as_ref();
    let settings = settings.and_then(|networking| networking.flannel.as_ref());
    let containerd = spec.containerd.as_ref();
    Flannel {
        backend: backend.to_owned(),
        image: remapped_image(FLANNEL, &assets),
        plugin_image: remapped_image(FLANNEL_PLUGIN, &assets),
        iptables_resync_seconds: settings
            .and_then(|flannel| flannel.iptables_resync_seconds)
            .unwrap_or(RESYNC),
        selinux: containerd.and_then(|containerd| containerd.selinux_enabled) == Some(true),
    }
}
