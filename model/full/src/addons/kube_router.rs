//! kube-router, the network between pods of different nodes by BGP, Services by IPVS in the place of kube-proxy, and NetworkPolicies.

use super::flannel::container_domain;
use super::manifest::AddonName;
use super::permissions::turn_check_off;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use node::ports;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use templates::Template;

/// Settings of kube-router: `spec.networking.kuberouter`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeRouter {
    pub image: String,
    /// NetworkPolicies are enforced by nftables instead of iptables and ipsets.
    pub nftables: bool,
    /// SELinux is enabled for containers.
    pub selinux: bool,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    cni_config: String,
    arguments: Vec<String>,
    health_port: u16,
    api_host: String,
    region: String,
    security: Option<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "kube_router/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("kube_router/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(router) = &full.addons.kube_router else {
        return Ok(None);
    };
    let named = AddonName {
        name: "networking.kuberouter",
        id: "k8s-1.12",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let manifest = Manifest {
        image: router.image.clone(),
        cni_config: format!("{:#}\n", cni_config()),
        arguments: arguments(full, router),
        health_port: ports::KUBE_ROUTER_HEALTH,
        api_host: full.dns.api_internal_name.clone(),
        region: full.placement.region.clone(),
        security: router
            .selinux
            .then(|| json!({ "seLinuxOptions": container_domain() })),
    };
    let manifest = named.render_template(&manifest)?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn arguments(full: &FullSpec, router: &KubeRouter) -> Vec<String> {
    let mut all = vec![
        "--run-router=true".to_owned(),
        "--run-firewall=true".to_owned(),
        "--run-service-proxy=true".to_owned(),
        "--bgp-graceful-restart=true".to_owned(),
        format!("--metrics-port={}", ports::KUBE_ROUTER_METRICS),
        "--runtime-endpoint=unix:///run/containerd/containerd.sock".to_owned(),
        "--hairpin-mode=true".to_owned(),
        format!("--service-cluster-ip-range={}", full.pods.service_cidr),
    ];
    let (first, last) = full.node_port_range;
    all.push(format!("--service-node-port-range={first}-{last}"));
    if router.nftables {
        all.push("--use-nftables-for-netpol=true".to_owned());
    }
    all
}

/// Pods are on a bridge, with addresses of their node's range; kube-router writes the range into it.
fn cni_config() -> Value {
    json!({
        "cniVersion": "0.3.0",
        "name": "mynet",
        "plugins": [
            {
                "name": "kubernetes",
                "type": "bridge",
                "bridge": "kube-bridge",
                "isDefaultGateway": true,
                "hairpinMode": true,
                "ipam": { "type": "host-local" },
            },
            { "type": "portmap", "capabilities": { "snat": true, "portMappings": true } },
        ],
    })
}

pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let router = full.addons.kube_router.iter();
    router.map(|_| turn_check_off(full)).collect()
}
