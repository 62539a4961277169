//! hubble, which shows the flows between pods: a relay that asks every agent, and certificates of cert-manager for both. An addon of its
//! own, because the network must not wait for cert-manager.

use crate::FullSpec;
use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use serde::{Deserialize, Serialize};
use serde_json::json;
use templates::Template;

/// The relay of hubble: `spec.networking.cilium.hubble`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hubble {
    pub relay_image: String,
    /// The name in a mesh of clusters; agents' certificates are of it.
    pub cluster_name: String,
    /// The relay writes more logs.
    pub debug: bool,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    relay_config: String,
    arguments: Vec<&'static str>,
    server_names: [String; 1],
}

impl Template for Manifest {
    const NAME: &'static str = "cilium/hubble.yaml.hbs";
    const SOURCE: &'static str = include_str!("hubble.yaml.hbs");
}

/// After cert-manager.
pub(in crate::addons) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let cilium = full.addons.cilium.as_ref();
    let Some(hubble) = cilium.and_then(|cilium| cilium.hubble.as_ref()) else {
        return Ok(None);
    };
    let named = AddonName {
        name: "hubble.networking.cilium.io",
        id: "k8s-1.16",
        selector: ("k8s-app", "hubble-relay"),
    };
    let domain = &full.pods.dns_domain;
    let folder = "/var/lib/hubble-relay/tls";
    let relay_config = json!({
        "cluster-name": hubble.cluster_name,
        "peer-service": format!("hubble-peer.kube-system.svc.{domain}.:443"),
        "listen-address": ":4245",
        "gops": true,
        "gops-port": "9893",
        "tls-hubble-client-cert-file": format!("{folder}/client.crt"),
        "tls-hubble-client-key-file": format!("{folder}/client.key"),
        "tls-hubble-server-ca-files": format!("{folder}/hubble-server-ca.crt"),
        "disable-server-tls": true,
    });
    let mut arguments = vec!["serve"];
    arguments.extend(hubble.debug.then_some("--debug"));
    let cluster = hubble.cluster_name.replace('.', "-");
    let manifest = named.render_template(&Manifest {
        image: hubble.relay_image.clone(),
        relay_config: relay_config.to_string(),
        arguments,
        server_names: [format!("*.{cluster}.hubble-grpc.cilium.io")],
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}
