//! What expansion decides, and its laws: deterministic, idempotent, and values set by the user stay.

mod aws;
mod bundle;
pub mod laws;
mod limits;
mod profile;
mod upgrade;
mod user_settings;

use cloud::facts::Facts;
use full::{FullSpec, Group};
use node::yaml::to_yaml_documents;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::create::{CreateOptions, Topology, create_cluster};
use spec::expand::{Expanded, expand};
use spec::read::{Problem, ReadOptions, read_documents_with, render_problems};

const CUSTOM: &str = include_str!("samples/custom.yaml");
const KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7VJTUt9Us8cKj jo@example.com";

/// A spec file's objects.
fn read_objects(text: &str) -> (Cluster, Vec<InstanceGroup>) {
    let options = ReadOptions {
        allow_unsupported: true,
    };
    let documents = read_documents_with("in.yaml", text, options)
        .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
    let mut cluster = None;
    let mut groups = Vec::new();
    for document in documents {
        match document.object {
            Object::Cluster(read) => cluster = Some(read),
            Object::InstanceGroup(read) => groups.push(read),
            _ => {}
        }
    }
    (cluster.expect("a cluster"), groups)
}

/// Facts for an expansion without queries to AWS.
fn offline_facts() -> Facts {
    Facts {
        stand_in: true,
        ..Facts::default()
    }
}

fn expand_text(text: &str, facts: &Facts) -> Expanded {
    let (cluster, groups) = read_objects(text);
    try_expand(&cluster, &groups, facts)
        .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)))
}

fn try_expand(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    facts: &Facts,
) -> Result<Expanded, Vec<Problem>> {
    let catalog = Catalog::embedded().unwrap();
    expand(cluster, groups, &[KEY.to_owned()], facts, &catalog)
}

fn new_cluster(options: CreateOptions) -> (Cluster, Vec<InstanceGroup>) {
    let options = CreateOptions {
        name: "dev.example.com".into(),
        state_store: "s3://state".into(),
        ..options
    };
    let created = create_cluster(&options, &offline_facts())
        .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
    (created.cluster, created.groups)
}

fn zone_names(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| format!("eu-west-1{name}"))
        .collect()
}

/// A completed cluster and its groups as they are printed.
fn printed_objects(expanded: &Expanded) -> String {
    let mut documents = vec![serde_json::to_value(&expanded.cluster).unwrap()];
    let groups = expanded.groups.iter();
    documents.extend(groups.map(|group| serde_json::to_value(group).unwrap()));
    to_yaml_documents(&documents).unwrap()
}

fn find_group<'a>(full: &'a FullSpec, name: &str) -> &'a Group {
    let found = full.groups.iter().find(|group| group.name == name);
    found.unwrap_or_else(|| panic!("no group {name}"))
}

#[test]
fn a_new_cluster_completed() {
    let (cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        ..CreateOptions::default()
    });
    let expanded = try_expand(&cluster, &groups, &offline_facts()).unwrap();
    insta::assert_snapshot!(printed_objects(&expanded));
}

#[test]
fn made_up_facts_are_marked() {
    let (cluster, groups) = read_objects(CUSTOM);
    let expanded = try_expand(&cluster, &groups, &offline_facts()).unwrap();
    let marked = |warning: &Problem| warning.message.contains("no AWS call was made");
    assert!(expanded.warnings.iter().any(marked));
}

#[test]
fn a_new_cluster_in_full() {
    let (cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a", "b"]),
        topology: Topology::Private,
        bastion: true,
        ..CreateOptions::default()
    });
    let expanded = try_expand(&cluster, &groups, &offline_facts()).unwrap();
    insta::assert_json_snapshot!(expanded.full);
}

#[test]
fn a_cluster_of_many_wishes_completed() {
    insta::assert_snapshot!(printed_objects(&expand_text(CUSTOM, &offline_facts())));
}
