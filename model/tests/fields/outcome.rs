//! What follows from a spec: every AWS object, and everything that machines get. The completed spec is no part of it,
//! since it repeats what was said.

use model::api::{Cluster, InstanceGroup};
use model::catalog::Catalog;
use model::cloud::build::desired;
use model::cloud::render::cloud_json;
use model::components::{EtcdMemberNames, EtcdStart, etcd_ports};
use model::engine::Text;
use model::expand::{Expanded, expand};
use model::facts::Facts;
use model::full::Arch;
use model::manifests::{EtcdPod, etcd};
use model::node::{Agent, Agents, Host, NodeConfig, UserData, files, node_config, user_data};
use model::read::render;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
        let (machine, text) = machine(&expanded, &group.name)?;
        machines.insert(group.name.clone(), machine);
        texts.extend(text.map(|text| (group.name.clone(), text)));
    }
    let cloud = cloud_json(&desired(&expanded.full, &texts, Vec::new()));
    Ok(json!({"cloud": cloud, "machines": machines}))
}

/// What machines of a group get, and their user data.
fn machine(expanded: &Expanded, group: &str) -> Result<(Value, Option<Text>), String> {
    let agents = agents();
    let config = node_config(expanded, group, CERTIFICATES, &agents).map_err(said)?;
    let text = user_data(&UserData {
        expanded,
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
    let files = files(&config, &Host::placeholder()).map_err(said)?;
    let files: Vec<String> = files.iter().map(|file| format!("{file:?}")).collect();
    let mut parts = serde_json::to_value(&config).map_err(said)?;
    // What files and pods are made of: that it is handed on proves nothing.
    for repeated in ["/containerd", "/controlPlane/etcd"] {
        parts.pointer_mut(repeated).map(Value::take);
    }
    Ok((
        json!({"files": files, "config": parts, "etcd": etcd_pods(&config)}),
        text,
    ))
}

fn etcd_pods(config: &NodeConfig) -> Vec<Value> {
    let control_plane = config.control_plane.iter();
    let clusters = control_plane.flat_map(|of| of.etcd.iter().map(move |etcd| (of, etcd)));
    let pods = clusters.filter_map(|(of, cluster)| {
        let mut members = cluster.etcd_members.iter();
        let member = members.find(|member| member.instance_group == config.group)?;
        let pod = etcd(&EtcdPod {
            etcd: cluster,
            image: of.etcd_images.get(&cluster.name)?,
            names: &EtcdMemberNames::of(cluster, &config.cluster),
            ports: etcd_ports(&cluster.name)?,
            member: &member.name,
            start: &EtcdStart::Existing,
            data: "data",
        });
        serde_json::to_value(pod).ok()
    });
    pods.collect()
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn agents() -> Agents {
    let both = |digit: &str| {
        let agent = |arch| Agent {
            arch,
            sha256: digit.repeat(64),
            mirrors: Vec::new(),
        };
        vec![agent(Arch::Amd64), agent(Arch::Arm64)]
    };
    Agents {
        nodeup: both("1"),
        protokube: both("2"),
    }
}
