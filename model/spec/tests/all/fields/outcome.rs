//! Everything that is rendered from a spec: AWS objects, the files of instances, and the addons. The completed spec is left out,
//! since it repeats the input.

use cloud::facts::Facts;
use cloud::render::cloud_json;
use engine::Text;
use full::FullSpec;
use full::addons::make_addons;
use full::nodes::{UserData, node_config, user_data};
use full::objects::desired_objects;
use node::config::{InstanceFacts, etcd_pods, host_files};
use serde_json::{Value, json};
use spec::api::{Cluster, InstanceGroup};
use spec::catalog::Catalog;
use spec::expand::expand;
use spec::read::render_problems;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use test_support::made_up_agents;

const KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7VJTUt9Us8cKj jo@example.com";
const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// What a spec is expanded to, and what is rendered from that, once it is asked for: most comparisons need less than all of it.
pub struct Outcome {
    full: FullSpec,
    /// AWS objects and the files of instances.
    own: OnceLock<Result<Value, String>>,
    /// Manifests, which take longest.
    addons: OnceLock<Result<Vec<String>, String>>,
}

impl Outcome {
    /// Fails if the spec cannot be expanded.
    pub fn expand(
        cluster: &Cluster,
        groups: &[InstanceGroup],
        facts: &Facts,
        catalog: &Catalog,
    ) -> Result<Self, String> {
        let keys = [KEY.to_owned()];
        let expanded = expand(cluster, groups, &keys, facts, catalog);
        let expanded = expanded.map_err(|problems| render_problems(&problems))?;
        Ok(Self {
            full: expanded.full,
            own: OnceLock::new(),
            addons: OnceLock::new(),
        })
    }

    /// Fails if instances or addons of this one cannot be made.
    pub fn differs(&self, other: &Self) -> Result<bool, String> {
        if self.full == other.full {
            return Ok(false);
        }
        let own = self.own().as_ref().map_err(Clone::clone)?;
        if other.own().as_ref() != Ok(own) {
            return Ok(true);
        }
        let addons = self.addons().as_ref().map_err(Clone::clone)?;
        Ok(other.addons().as_ref() != Ok(addons))
    }

    fn own(&self) -> &Result<Value, String> {
        self.own.get_or_init(|| render_own(&self.full))
    }

    fn addons(&self) -> &Result<Vec<String>, String> {
        self.addons.get_or_init(|| {
            let addons = make_addons(&self.full).map_err(error_text)?;
            Ok(addons.into_iter().map(|addon| addon.manifest).collect())
        })
    }
}

fn render_own(full: &FullSpec) -> Result<Value, String> {
    let mut machines = serde_json::Map::new();
    let mut texts = BTreeMap::new();
    for group in &full.groups {
        let (machine, text) = render_group(full, &group.name)?;
        machines.insert(group.name.clone(), machine);
        texts.extend(text.map(|text| (group.name.clone(), text)));
    }
    let cloud = cloud_json(&desired_objects(full, &texts, Vec::new()));
    Ok(json!({"cloud": cloud, "machines": machines}))
}

/// The NodeConfig and user data of a group.
fn render_group(full: &FullSpec, group: &str) -> Result<(Value, Option<Text>), String> {
    let agents = made_up_agents();
    let config = node_config(full, group, CERTIFICATES, &agents).map_err(error_text)?;
    let text = user_data(&UserData {
        full,
        group,
        // The real hash would tell of everything that the configuration repeats.
        node_config: &config.as_ref().map_or(String::new(), |_| "f".repeat(64)),
        trust_bundle: CERTIFICATES,
        agents: &agents,
    });
    let text = text.map_err(error_text)?;
    let Some(config) = config else {
        return Ok((Value::Null, text));
    };
    let files = host_files(&config, &InstanceFacts::placeholder()).map_err(error_text)?;
    let files: Vec<String> = files.iter().map(|file| format!("{file:?}")).collect();
    let mut parts = serde_json::to_value(&config).map_err(error_text)?;
    // What files and pods are made of: that it is handed on proves nothing.
    for repeated in ["/containerd", "/controlPlane/etcd"] {
        parts.pointer_mut(repeated).map(Value::take);
    }
    Ok((
        json!({"files": files, "config": parts, "etcd": etcd_pods(&config, "data")}),
        text,
    ))
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
