//! Every image that kctl's model names is in the registry, every package in the machine image.

use super::parts::{Place, made_up};
use lab::content::images::images;
use lab::content::key::sha256;
use lab::host::image_packages;
use lab::scenario::SPEC as SPEC_IN_THE_LAB;
use model::api::assets::AssetsSpec;
use model::api::{Cluster, InstanceGroup, Object};
use model::catalog::Catalog;
use model::expand::{Expanded, expand};
use model::facts::Facts;
use model::manifests::etcd_image;
use model::node::{Agent, Agents, Distribution, node_config, packages};
use model::read::read_documents;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// `make lab`, which sets the same as scenarios do.
const MAKE_LAB: &str = include_str!("../../cluster");

const SPEC: &str = "
apiVersion: kops.k8s.io/v1alpha2
kind: Cluster
metadata: {name: c.example.com}
spec:
  configBase: s3://bucket/c.example.com
  networkCIDR: 10.0.0.0/16
  networking: {flannel: {}}
  subnets: [{name: a, zone: eu-west-1a, cidr: 10.0.0.0/20, type: Public}]
---
apiVersion: kops.k8s.io/v1alpha2
kind: InstanceGroup
metadata: {name: control-plane-a, labels: {kops.k8s.io/cluster: c.example.com}}
spec: {role: Master, minSize: 1, maxSize: 1, machineType: t3.medium, subnets: [a]}
---
apiVersion: kops.k8s.io/v1alpha2
kind: InstanceGroup
metadata: {name: nodes-a, labels: {kops.k8s.io/cluster: c.example.com}}
spec: {role: Node, minSize: 1, maxSize: 1, machineType: t3.medium, subnets: [a]}
";

fn expanded(kubernetes: &str) -> Expanded {
    let mut cluster: Option<Cluster> = None;
    let mut groups: Vec<InstanceGroup> = Vec::new();
    for document in read_documents("spec.yaml", SPEC).unwrap() {
        match document.object {
            Object::Cluster(object) => cluster = Some(object),
            Object::InstanceGroup(object) => groups.push(object),
            other => panic!("{other:?}"),
        }
    }
    let mut cluster = cluster.unwrap();
    cluster.spec.kubernetes_version = Some(kubernetes.to_owned());
    let facts = Facts {
        account: "123456789012".into(),
        partition: "aws".into(),
        stand_in: true,
        ..Facts::default()
    };
    expand(
        &cluster,
        &groups,
        &[],
        &facts,
        &Catalog::embedded().unwrap(),
    )
    .unwrap()
}

/// Strings under a key that ends in `image`, wherever they are.
fn named(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| match value {
            Value::String(text) if key.to_ascii_lowercase().ends_with("image") => {
                found.insert(text.clone());
            }
            other => named(other, found),
        }),
        Value::Array(list) => list.iter().for_each(|value| named(value, found)),
        _ => {}
    }
}

#[test]
fn every_image_of_an_expanded_spec_is_in_the_registry() {
    let parts = tempfile::tempdir().unwrap();
    let kit = made_up(parts.path());
    let expanded = expanded(kit.version("kubernetes").unwrap());
    let mut wanted = BTreeSet::new();
    named(
        &serde_json::to_value(&expanded.cluster.spec).unwrap(),
        &mut wanted,
    );
    for etcd in &expanded.cluster.spec.etcd_clusters {
        wanted.insert(etcd_image(etcd, &AssetsSpec::default()));
    }
    assert!(wanted.len() >= 9, "{wanted:?}");
    assert!(
        wanted
            .iter()
            .any(|name| name.starts_with("registry.k8s.io/pause:"))
    );

    let place = Place::laid_out(parts.path(), &kit);
    for name in &wanted {
        let (repository, tag) = name.rsplit_once(':').unwrap();
        let layout = place.registry().join(repository);
        let index =
            fs::read(layout.join("index.json")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let index: Value = serde_json::from_slice(&index).unwrap();
        let manifests = index["manifests"].as_array().unwrap();
        let tagged =
            |entry: &&Value| entry["annotations"]["org.opencontainers.image.ref.name"] == tag;
        assert_eq!(manifests.iter().filter(tagged).count(), 1, "{name}");
    }
}

/// Machines of the lab reach no mirror. What keeps the clock or installs updates is not there, and specs say so.
#[test]
fn every_package_of_a_node_is_in_the_machine_image() {
    let mut expanded = expanded("1.36.3");
    let mut spec = serde_json::to_value(&expanded.cluster.spec).unwrap();
    for setting in SPEC_IN_THE_LAB {
        let said = MAKE_LAB.replace('"', "");
        assert!(said.contains(&format!("--set {setting}")), "{setting}");
        let (path, value) = setting.split_once('=').unwrap();
        let mut at = &mut spec;
        for name in path.split('.').skip(1) {
            at = &mut at[name];
        }
        *at = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    }
    expanded.cluster.spec = serde_json::from_value(spec).unwrap();
    let agent = |digit: &str| {
        vec![Agent {
            arch: model::full::Arch::Amd64,
            sha256: digit.repeat(64),
            mirrors: Vec::new(),
        }]
    };
    let agents = Agents {
        nodeup: agent("1"),
        protokube: agent("2"),
    };
    let image = image_packages();
    for group in ["control-plane-a", "nodes-a"] {
        let config = node_config(&expanded, group, "", &agents).unwrap().unwrap();
        for package in packages(&config, Distribution::Debian) {
            assert!(image.contains(&package.as_str()), "{group}: {package}");
        }
    }
}

#[test]
fn every_blob_is_what_its_digest_says_and_shared_ones_are_one_file() {
    use std::os::unix::fs::MetadataExt;
    let parts = tempfile::tempdir().unwrap();
    let kit = made_up(parts.path());
    let place = Place::laid_out(parts.path(), &kit);
    let mut names = 0;
    let mut inodes = BTreeSet::new();
    let mut digests = BTreeSet::new();
    for image in images(&kit).unwrap() {
        let layout = place.registry().join(image.host).join(image.repository);
        for blob in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
            let path = blob.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert_eq!(sha256(&path).unwrap(), name, "{}", image.reference());
            names += 1;
            inodes.insert(path.metadata().unwrap().ino());
            digests.insert(name);
        }
    }
    assert_eq!(inodes.len(), digests.len());
    assert!(names > digests.len());
}
