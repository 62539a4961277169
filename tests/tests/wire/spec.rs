//! A cluster that has every kind of object: three zones, private, balancers for API and bastions, Route 53.

use cloud::facts::Facts;
use cloud::{Cloud, ObjectContent, S3Object};
use engine::{Id, Part, Resource, Text};
use full::{FullSpec, objects};
use node::names;
use node::pki::JsonWebKeySet;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::expand::expand;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

pub const NAME: &str = "prod.example.com";
pub const REGION: &str = "eu-west-1";

const CLUSTER: &str = include_str!("cluster.yaml");

/// A public SSH key; its private half does not exist any more.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmrKXh7lMNHVwDkUPSmfqT5vvZxmYoJUs1xGPZgYjQw someone@somewhere";

/// What nodeup would be.
pub const ASSET: &[u8] = b"not really a program";
/// The file that stands for it, made once.
pub fn asset_source() -> aws_cloud::AssetSource {
    static FILE: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), ASSET).expect("a file with something in it");
        file
    });
    Arc::new(|_| Ok(FILE.path().to_owned()))
}

pub const ASSET_SHA256: &str = "6b2f4b53c4d4e86cfe2f16243d6b1f6bd109bfe54c7f239bc2ecc72da1f420f8";

pub fn read_spec(edit: impl Fn(&mut String)) -> (Cluster, Vec<InstanceGroup>) {
    let mut text = CLUSTER.to_owned();
    edit(&mut text);
    let documents = spec::read::read_documents("cluster.yaml", &text).expect("a spec");
    let (mut cluster, mut groups) = (None, Vec::new());
    for document in documents {
        match document.object {
            Object::Cluster(one) => cluster = Some(one),
            Object::InstanceGroup(one) => groups.push(one),
            _ => {}
        }
    }
    (cluster.expect("a cluster"), groups)
}

pub fn full_spec(facts: &Facts, edit: impl Fn(&mut String)) -> FullSpec {
    let (cluster, groups) = read_spec(edit);
    let catalog = Catalog::embedded().expect("a catalog");
    let keys = [KEY.to_owned()];
    let expanded = expand(&cluster, &groups, &keys, facts, &catalog);
    let problems =
        |problems: Vec<spec::read::Problem>| panic!("{}", spec::read::render_problems(&problems));
    expanded.unwrap_or_else(problems).full
}

/// The cluster's objects; user data name the balancer, as those of a cluster without DNS do.
pub fn desired_objects(full: &FullSpec, objects: Vec<S3Object>) -> Vec<Cloud> {
    let balancer = Id::new("lb", names::api_load_balancer(&full.name));
    let user_data = |group: &full::Group| {
        let late = Text::late(&balancer, "dns_name");
        let parts = [Part::Literal(
            format!("#!/bin/sh\n# {}\nAPI=", group.name).into(),
        )];
        let parts = parts.into_iter().chain(late.parts().iter().cloned());
        (group.name.clone(), Text::from_parts(parts))
    };
    let user_data: BTreeMap<String, Text> = full.groups.iter().map(user_data).collect();
    let mut all = objects::desired_objects(full, &user_data, objects);
    let documents = objects::discovery_documents(full, &token_keys());
    all.extend(documents.into_iter().map(Cloud::from));
    all
}

/// The keys that verify the cluster's tokens.
pub fn token_keys() -> JsonWebKeySet {
    JsonWebKeySet::stand_in("the-only-key")
}

/// These objects and all that they need.
pub fn dependency_closure(all: &[Cloud], of: &[Id]) -> Vec<Cloud> {
    let mut ids: BTreeSet<Id> = BTreeSet::new();
    let mut open = of.to_vec();
    while let Some(id) = open.pop() {
        let one = all.iter().find(|one| one.id() == id).expect("an object");
        if ids.insert(id) {
            open.extend(one.needs());
        }
    }
    all.iter()
        .filter(|one| ids.contains(&one.id()))
        .cloned()
        .collect()
}

pub fn store_objects(completed: &str) -> Vec<S3Object> {
    vec![
        S3Object {
            key: "cluster-completed.spec".to_owned(),
            content: ObjectContent::Text(completed.into()),
        },
        S3Object {
            key: format!("assets/{ASSET_SHA256}/amd64/nodeup"),
            content: ObjectContent::Sha256(ASSET_SHA256.to_owned()),
        },
    ]
}
