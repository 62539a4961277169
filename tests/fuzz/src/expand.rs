//! Everything that follows from a spec.

use super::change::{Spec, changed, comes_back};
use super::problems::fit_to_be_shown;
use super::same::same;
use super::samples::{CERTIFICATES, KEY, agents, catalog, facts};
use cloud::Cloud;
use cloud::render::cloud_json;
use engine::{Plan, Snapshot, Text, plan};
use full::addons::make_addons;
use full::nodes::{UserData, node_config, user_data};
use full::objects::{addon_objects, desired_objects};
use node::config::{InstanceFacts, etcd_pods, read_node_config, to_stored};
use node::host;
use spec::expand::{Expanded, expand, wanted_facts};
use spec::read::{Problem, render_problems};
use spec::validate::{ClusterInput, validate};
use std::collections::BTreeMap;

pub fn law(data: &[u8]) {
    let text = std::str::from_utf8(data).ok();
    match text.filter(|text| text.contains("kind:")) {
        Some(text) => Spec::read(text).iter().for_each(follow),
        None => follow(&changed(data)),
    }
}

fn follow(spec: &Spec) {
    let problems = validate(&ClusterInput {
        cluster: &spec.cluster,
        instance_groups: &spec.groups,
        ssh_keys: &[],
    });
    if problems.iter().any(Problem::is_error) {
        return fit_to_be_shown(&problems);
    }
    let _ = wanted_facts(&spec.cluster, &spec.groups);
    let expanded = match tried(spec) {
        Ok(expanded) => expanded,
        Err(problems) => return fit_to_be_shown(&problems),
    };
    let again = Spec {
        cluster: expanded.cluster.clone(),
        groups: expanded.groups.clone(),
    };
    let twice = tried(&again).unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
    same(&twice.full, &expanded.full, "expanded again");
    same(&twice.cluster, &expanded.cluster, "expanded again");
    same(&twice.groups, &expanded.groups, "expanded again");
    comes_back(&again);
    make(&expanded);
}

fn tried(spec: &Spec) -> Result<Expanded, Vec<Problem>> {
    expand(
        &spec.cluster,
        &spec.groups,
        &[KEY.to_owned()],
        &facts(),
        catalog(),
    )
}

/// Machines' configurations and AWS objects. Whatever is wanted can be planned: nothing twice, nothing missing, no circle.
fn make(expanded: &Expanded) {
    let mut objects = Vec::new();
    let addons = match make_addons(&expanded.full) {
        Ok(addons) => addons,
        Err(error) => return said(&error),
    };
    objects.extend(addon_objects(&addons).expect("addons have a YAML form"));
    let mut texts = BTreeMap::new();
    for group in &expanded.full.groups {
        match machine(expanded, &group.name) {
            Ok(text) => texts.extend(text.map(|text| (group.name.clone(), text))),
            Err(error) => return said(&error),
        }
    }
    let wanted = desired_objects(&expanded.full, &texts, objects);
    let _ = cloud_json(&wanted);
    let made = plan(&wanted, &Snapshot::default()).unwrap_or_else(|error| panic!("{error}"));
    made.check().unwrap_or_else(|error| panic!("{error}"));
    let json = serde_json::to_string(&made).expect("a plan has a JSON form");
    let back: Plan<Cloud> = serde_json::from_str(&json).expect("a plan is read back");
    same(&back, &made, "a plan from its file");
}

fn machine(expanded: &Expanded, group: &str) -> Result<Option<Text>, node::config::Error> {
    let agents = agents();
    let config = node_config(&expanded.full, group, CERTIFICATES, &agents)?;
    let mut sha256 = String::new();
    if let Some(config) = &config {
        let stored = to_stored(config)?;
        let read = read_node_config(&stored.text, &stored.sha256);
        let read = read.unwrap_or_else(|error| panic!("{error:?}\n{}", stored.text));
        same(&read, config, "NodeConfig read back");
        sha256 = stored.sha256;
        let _ = etcd_pods(config, "data");
        if let Err(error) = host::desired_resources(config, &InstanceFacts::placeholder()) {
            said(&error);
        }
    }
    user_data(&UserData {
        full: &expanded.full,
        group,
        node_config: &sha256,
        trust_bundle: CERTIFICATES,
        agents: &agents,
    })
}

/// An error that says something.
pub fn said(error: &dyn std::error::Error) {
    assert!(!error.to_string().is_empty());
}
