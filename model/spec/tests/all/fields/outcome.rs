//! What follows from a spec: every AWS object, everything that machines get, and the addons. The completed spec is no part of it,
//! since it repeats what was said.

use cloud::facts::Facts;
use cloud::render::cloud_json;
use engine::Text;
use full::FullSpec;
use full::addons::addons;
use full::nodes::{UserData, node_config, user_data};
use full::objects::desired;
use node::config::{InstanceFacts, etcd_pods, host_files};
use serde_json::{Value, json};
use spec::api::{Cluster, InstanceGroup};
use spec::catalog::Catalog;
use spec::expand::expand;
use spec::read::render;
use std::collections::BTreeMap;
use test_support::agents;

const KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7VJTUt9Us8cKj jo@example.com";
const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// All of it as one value; an error: the spec cannot be expanded, or its machines cannot be made.
pub fn outcome(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    facts: &Facts,
    catalog: &Catalog,
) -> Result<Value, String> {
    let keys = [KEY.to_owned()];
    let expanded = expand(cluster, groups, &keys, facts, catalog);
    let expanded = expanded.map_err(|problems| render(&problems))?;
    let mut machines = serde_json::Map::new();
    let mut texts = BTreeMap::new();
    for group in &expanded.full.groups {
        let (machine, text) = machine(&expanded.full, &group.name)?;
        machines.insert(group.name.clone(), machine);
        texts.extend(text.map(|text| (group.name.clone(), text)));
    }
    let cloud = cloud_json(&desired(&expanded.full, &texts, Vec::new()));
    let addons = addons(&expanded.full).map_err(said)?;
    let addons: Vec<&String> = addons.iter().map(|addon| &addon.manifest).collect();
    Ok(json!({"cloud": cloud, "machines": machines, "addons": addons}))
}

/// What machines of a group get, and their user data.
fn machine(full: &FullSpec, group: &str) -> Result<(Value, Option<Text>), String> {
    let agents = agents();
    let config = node_config(full, group, CERTIFICATES, &agents).map_err(said)?;
    let text = user_data(&UserData {
        full,
        group,
        // The real hash would tell of everything that the configuration repeats.
        node_config: &config.as_ref().map_or(String::new(), |_| "f".repeat(64)),
        trust_bundle: CERTIFICATES,
        agents: &agents,
    });
    let text = text.map_err(said)?;
    let Some(config) = config else {
        return Ok((Value::Null, text));
    };
    let files = host_files(&config, &InstanceFacts::placeholder()).map_err(said)?;
    let files: Vec<String> = files.iter().map(|file| format!("{file:?}")).collect();
    let mut parts = serde_json::to_value(&config).map_err(said)?;
    // What files and pods are made of: that it is handed on proves nothing.
    for repeated in ["/containerd", "/controlPlane/etcd"] {
        parts.pointer_mut(repeated).map(Value::take);
    }
    Ok((
        json!({"files": files, "config": parts, "etcd": etcd_pods(&config, "data")}),
        text,
    ))
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
