//! flannel, the network between pods of different nodes.

use crate::FullSpec;
use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use node::digest::sha256_hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::addons::Flannel;

/// The port in flannel's own manifest.
const HEALTH_PORT: u16 = 8081;

pub(super) fn flannel_addon(full: &FullSpec, flannel: &crate::Flannel) -> Result<Addon, Error> {
    let named = AddonName {
        name: "networking.flannel",
        id: "k8s-1.25",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let cni_config = indented_json(&cni_config());
    let network_config = indented_json(&json!({
        // As in kOps: traffic to this range, which contains the pods, is not masqueraded.
        "Network": full.pods.non_masquerade_cidr,
        "EnableNFTables": false,
        "Backend": { "Type": flannel.backend },
    }));
    let context = Flannel {
        image: flannel.image.clone(),
        plugin_image: flannel.plugin_image.clone(),
        config_sha256: sha256_hex(format!("{cni_config}{network_config}")),
        cni_config,
        network_config,
        api_host: full.dns.api_internal_name.clone(),
        arguments: vec![
            "--ip-masq".to_owned(),
            "--kube-subnet-mgr".to_owned(),
            format!("--iptables-resync={}", flannel.iptables_resync_seconds),
            "--healthz-ip=127.0.0.1".to_owned(),
            format!("--healthz-port={HEALTH_PORT}"),
        ],
        health_port: HEALTH_PORT,
        // Packets go through /dev/net/tun, which only privileged containers have.
        privileged: flannel.backend == "udp",
        selinux: flannel.selinux.then(container_domain),
    };
    named.make_addon(full, &[named.render_template(&context)?])
}

/// CNI configuration: flannel's plugin, which delegates to the bridge plugin, and host ports.
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

/// The SELinux options that let flannel write to the host's folders.
pub(super) fn container_domain() -> BTreeMap<String, String> {
    [("type", "spc_t"), ("level", "s0")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn indented_json(value: &Value) -> String {
    // The alternate form is indented, and cannot fail.
    format!("{value:#}\n")
}
