//! cilium, the network between pods of different nodes, which can replace kube-proxy. Its agents compile their programs on the node. They
//! are replaced with their instance only (`OnDelete`), as in kOps: a NodeConfig has the digest of what is installed.

mod settings;

use super::control_planes::controller_replicas;
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use node::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use settings::SETTINGS;
use std::collections::BTreeMap;
use templates::Template;

/// Settings of cilium: `spec.networking.cilium`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cilium {
    pub image: String,
    pub operator_image: String,
    /// `vxlan`, `geneve` or `disabled`.
    pub tunnel: String,
    /// Entries of its ConfigMap.
    pub settings: BTreeMap<String, String>,
    pub cpu_request: String,
    pub memory_request: String,
    /// Annotations of the agents' pods.
    pub agent_annotations: BTreeMap<String, String>,
    /// Annotations of the operator's pods.
    pub operator_annotations: BTreeMap<String, String>,
}

impl Cilium {
    /// Changes with everything that an agent takes over only when its instance is replaced.
    pub fn digest(&self) -> String {
        let settings = json!([self.image, self.settings, SETTINGS]);
        sha256_hex(settings.to_string())
    }
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    operator_image: String,
    settings: BTreeMap<String, String>,
    resources: Value,
    agent_annotations: BTreeMap<String, String>,
    operator_annotations: Option<BTreeMap<String, String>>,
    api_host: String,
    replicas: i32,
}

impl Template for Manifest {
    const NAME: &'static str = "cilium/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("cilium/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(cilium) = &full.addons.cilium else {
        return Ok(None);
    };
    let named = AddonName {
        name: "networking.cilium.io",
        id: "k8s-1.16",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut settings: BTreeMap<String, String> = SETTINGS.iter().map(owned).collect();
    settings.extend(cilium.settings.clone());
    let mut agent_annotations = cilium.agent_annotations.clone();
    let container = "kubectl.kubernetes.io/default-container";
    agent_annotations.insert(container.to_owned(), "cilium-agent".to_owned());
    let manifest = Manifest {
        image: cilium.image.clone(),
        operator_image: cilium.operator_image.clone(),
        settings,
        resources: json!({"requests": {"cpu": cilium.cpu_request, "memory": cilium.memory_request}}),
        agent_annotations,
        operator_annotations: Some(cilium.operator_annotations.clone())
            .filter(|annotations| !annotations.is_empty()),
        api_host: full.dns.api_internal_name.clone(),
        replicas: controller_replicas(full),
    };
    let manifest = named.render_template(&manifest)?;
    named.make_addon(full, &[manifest]).map(Some)
}
