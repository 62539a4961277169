//! The addons of the full spec, from a completed spec.

use super::addon_values::{full_addon_values, full_tolerations};
use super::amazon_vpc::full_amazon_vpc;
use super::authentication::full_aws_iam_authenticator;
use super::calico::full_calico;
use super::cert_manager::full_cert_manager;
use super::cilium::full_cilium;
use super::cloud_config::full_ebs_csi_driver;
use super::cluster_autoscaler::full_cluster_autoscaler;
use super::components::value_or_error;
use super::containerd::full_nvidia;
use super::core_dns::full_node_local_dns;
use super::external_dns::full_external_dns;
use super::kindnet::full_kindnet;
use super::kube_router::full_kube_router;
use super::load_balancer_controller::full_load_balancer_controller;
use super::metrics_server::full_metrics_server;
use super::node_problem_detector::full_node_problem_detector;
use super::pod_identity_webhook::full_pod_identity_webhook;
use super::snapshot_controller::full_snapshot_controller;
use super::{Findings, flags};
use crate::api::cloud::CloudConfiguration;
use crate::api::cluster::ClusterSpec;
use crate::api::dns::KubeDNSConfig;
use crate::api::{Cluster, InstanceGroup};
use full::{Addons, CloudControllerManager, CoreDns, Corefile, Flannel};
use node::config::Networking;
use serde_json::json;

/// The flannel version that kOps installs, and the CNI plugin version that this flannel release names.
const FLANNEL: &str = "ghcr.io/flannel-io/flannel:v0.28.9";
const FLANNEL_PLUGIN: &str = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3";

/// Seconds between flannel's checks of its iptables rules, unless the spec sets them.
const RESYNC: i32 = 5;

/// The addons of a cluster with this network plugin.
pub(super) fn full_addons(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    networking: &Networking,
    findings: &mut Findings,
) -> Addons {
    let spec = &cluster.spec;
    let dns = spec.kube_dns.clone().unwrap_or_default();
    Addons {
        core_dns: (dns.provider.as_deref() != Some("None")).then(|| full_core_dns(dns)),
        node_local_dns: full_node_local_dns(spec),
        cloud_controller_manager: full_cloud_controller_manager(spec, findings),
        flannel: match networking {
            Networking::Flannel(backend) => Some(full_flannel(spec, backend)),
            _ => None,
        },
        calico: full_calico(spec),
        cilium: full_cilium(spec),
        amazon_vpc: full_amazon_vpc(spec),
        kube_router: full_kube_router(spec),
        kindnet: full_kindnet(spec),
        ebs_csi_driver: full_ebs_csi_driver(spec),
        storage_classes: cloud_config(spec).manage_storage_classes != Some(false),
        node_problem_detector: full_node_problem_detector(spec),
        nvidia: full_nvidia(spec, groups),
        cert_manager: full_cert_manager(spec),
        snapshot_controller: full_snapshot_controller(spec),
        cluster_autoscaler: full_cluster_autoscaler(cluster, groups),
        metrics_server: full_metrics_server(spec),
        load_balancer_controller: full_load_balancer_controller(spec),
        pod_identity_webhook: full_pod_identity_webhook(spec),
        external_dns: full_external_dns(spec),
        aws_iam_authenticator: full_aws_iam_authenticator(spec),
        values: full_addon_values(spec),
    }
}

fn cloud_config(spec: &ClusterSpec) -> CloudConfiguration {
    spec.cloud_config.clone().unwrap_or_default()
}

fn full_core_dns(dns: KubeDNSConfig) -> CoreDns {
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
            full_tolerations(&dns.tolerations)
        },
        affinity: dns.affinity,
        pod_annotations: dns.pod_annotations,
    }
}

fn full_cloud_controller_manager(
    spec: &ClusterSpec,
    findings: &mut Findings,
) -> CloudControllerManager {
    let manager = spec.cloud_controller_manager.clone().unwrap_or_default();
    let made = flags::cloud_controller_manager_flags(&manager);
    CloudControllerManager {
        image: manager.image.unwrap_or_default(),
        flags: value_or_error("spec.cloudControllerManager", made, findings),
        cpu_request: manager.cpu_request,
        settings: cloud_config_settings(&cloud_config(spec)),
    }
}

/// Lines of the cloud controller manager's configuration file. kOps writes this file on the instance; as part of the addon, a
/// change needs no new instance.
fn cloud_config_settings(config: &CloudConfiguration) -> Vec<(String, String)> {
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

fn full_flannel(spec: &ClusterSpec, backend: &str) -> Flannel {
    let settings = spec.networking.as_ref();
    let settings = settings.and_then(|networking| networking.flannel.as_ref());
    let containerd = spec.containerd.as_ref();
    Flannel {
        backend: backend.to_owned(),
        image: FLANNEL.to_owned(),
        plugin_image: FLANNEL_PLUGIN.to_owned(),
        iptables_resync_seconds: settings
            .and_then(|flannel| flannel.iptables_resync_seconds)
            .unwrap_or(RESYNC),
        selinux: containerd.and_then(|containerd| containerd.selinux_enabled) == Some(true),
    }
}
