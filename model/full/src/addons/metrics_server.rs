//! metrics-server: reads from kubelets what nodes and pods use, for `kubectl top` and horizontal pod autoscalers.

use super::control_planes::{controller_replicas, tolerations};
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::{FullSpec, NodeSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use templates::Template;

/// Where the token of a service account has the cluster's authority.
const AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Settings of metrics-server: `spec.metricsServer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsServer {
    pub image: String,
    /// cert-manager issues its certificate, and API servers verify it.
    pub certificate: bool,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    certificate: bool,
    replicas: i32,
    kubelet_flag: String,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "metrics_server/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("metrics_server/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(server) = &full.addons.metrics_server else {
        return Ok(None);
    };
    let named = AddonName {
        name: "metrics-server.addons.k8s.io",
        id: "k8s-1.11",
        selector: ("k8s-app", "metrics-server"),
    };
    let manifest = named.render_template(&Manifest {
        image: server.image.clone(),
        certificate: server.certificate,
        replicas: controller_replicas(full),
        tolerations: tolerations(full),
        kubelet_flag: if cluster_signs_kubelets(full) {
            format!("--kubelet-certificate-authority={AUTHORITY}")
        } else {
            "--kubelet-insecure-tls".to_owned()
        },
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

/// True if every kubelet serves with a certificate of the cluster's authority. One with a certificate of the user's cannot be verified:
/// its authority is in a file of the instances.
fn cluster_signs_kubelets(full: &FullSpec) -> bool {
    let mut nodes = full.groups.iter().filter_map(|group| group.node.as_ref());
    let asks =
        |node: &NodeSettings| node.kubelet.config.get("serverTLSBootstrap") == Some(&true.into());
    nodes.all(asks)
}
