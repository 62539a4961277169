//! flannel, the network between pods of different nodes.

use super::manifest::Named;
use super::{Addon, Error};
use crate::api::networking::FlannelNetworkingSpec;
use crate::expand::{Expanded, remapped_image};
use crate::node::sha256;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::addons::Flannel;

/// What kOps installs with the Kubernetes versions that kctl knows, and the plugin that its makers name beside it.
const IMAGE: &str = "ghcr.io/flannel-io/flannel:v0.28.9";
const PLUGIN_IMAGE: &str = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3";

/// Seconds between checks of its iptables rules, unless the spec says.
const RESYNC: i32 = 5;

/// flannel's own choice for its manifest.
const HEALTH_PORT: u16 = 8081;

/// The addon for the backend `vxlan` or `udp`.
pub(super) fn addon(expanded: &Expanded, backend: &str) -> Result<Addon, Error> {
    let named = Named {
        name: "networking.flannel",
        id: "k8s-1.25",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let spec = &expanded.cluster.spec;
    let assets = spec.assets.clone().unwrap_or_default();
    let said = spec.networking.as_ref();
    let said = said.and_then(|networking| networking.flannel.clone());
    let cni_config = pretty(&cni_config());
    let network_config = pretty(&json!({
        // As kOps: what is not masqueraded on the way out of the cluster. Pods are inside.
        "Network": expanded.full.pods.non_masquerade_cidr,
        "EnableNFTables": false,
        "Backend": { "Type": backend },
    }));
    let containerd = spec.containerd.as_ref();
    let selinux = containerd.and_then(|containerd| containerd.selinux_enabled) == Some(true);
    let context = Flannel {
        image: remapped_image(IMAGE, &assets),
        plugin_image: remapped_image(PLUGIN_IMAGE, &assets),
        config_sha256: sha256(&format!("{cni_config}{network_config}")),
        cni_config,
        network_config,
        api_host: expanded.full.dns.api_internal_name.clone(),
        arguments: arguments(&said.unwrap_or_default()),
        health_port: HEALTH_PORT,
        // Its packets go through /dev/net/tun, which only privileged containers have.
        privileged: backend == "udp",
        selinux: selinux.then(container_domain),
    };
    named.addon(&[named.render(&context)?])
}

fn arguments(said: &FlannelNetworkingSpec) -> Vec<String> {
    let resync = said.iptables_resync_seconds.unwrap_or(RESYNC);
    vec![
        "--ip-masq".to_owned(),
        "--kube-subnet-mgr".to_owned(),
        format!("--iptables-resync={resync}"),
        "--healthz-ip=127.0.0.1".to_owned(),
        format!("--healthz-port={HEALTH_PORT}"),
    ]
}

/// The bridge plugin by way of flannel's, and host ports.
fn cni_config() -> Value {
    json!({
        "name": "cbr0",
        "cniVersion": "0.3.1",
        "plugins": [
            {
                "type": "flannel",
                "delegate": { "hairpinMode": true, "isDefaultGateway": true },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

/// SELinux must let it write to the host's folders.
fn container_domain() -> BTreeMap<String, String> {
    [("type", "spc_t"), ("level", "s0")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn pretty(value: &Value) -> String {
    // The alternate form is indented, and cannot fail.
    format!("{value:#}\n")
}
