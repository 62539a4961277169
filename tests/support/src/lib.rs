//! What tests of several crates share: a small cluster to make instances of, and the fields of a type.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod agents;
mod script;
pub mod trace;

pub use agents::made_up_agents;
use cloud::facts::Facts;
use full::nodes::node_config;
use full::{EtcdCluster, EtcdMember, FullSpec, Group};
use node::config::{NodeConfig, Role};
pub use script::write_script;
use serde_json::Value;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::expand::{Expanded, expand};
use spec::read::{Problem, read_documents};

/// One control plane, one group of workers and a bastion, with a public hosted zone; changed by `change`.
pub fn expanded_with(change: impl FnOnce(&mut Cluster, &mut Vec<InstanceGroup>)) -> Expanded {
    try_expanded_with(change).unwrap()
}

/// The same with fields of the cluster's spec, as JSON, in the place of its own.
pub fn expanded_with_fields(fields: &Value) -> Expanded {
    expanded_with(|cluster, _| {
        let mut spec = serde_json::to_value(&cluster.spec).unwrap();
        let fields = fields.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(fields);
        cluster.spec = serde_json::from_value(spec).unwrap();
    })
}

/// The NodeConfig of its first group of that role.
pub fn node_config_of(full: &FullSpec, role: Role, trust_bundle: &str) -> NodeConfig {
    let group = group_of(full, role);
    let config = node_config(full, &group.name, trust_bundle, &made_up_agents());
    config.unwrap().unwrap()
}

/// Its first group of that role.
pub fn group_of(full: &FullSpec, role: Role) -> &Group {
    let mut groups = full.groups.iter();
    groups.find(|group| group.role == role).unwrap()
}

/// The same, or what is wrong with it then.
pub fn try_expanded_with(
    change: impl FnOnce(&mut Cluster, &mut Vec<InstanceGroup>),
) -> Result<Expanded, Vec<Problem>> {
    let mut cluster = None;
    let mut groups = Vec::new();
    for document in read_documents("cluster.yaml", CLUSTER).unwrap() {
        match document.object {
            Object::Cluster(object) => cluster = Some(object),
            Object::InstanceGroup(object) => groups.push(object),
            other => panic!("{other:?}"),
        }
    }
    let mut cluster = cluster.unwrap();
    change(&mut cluster, &mut groups);
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
}

/// The same as it is.
pub fn expanded_spec() -> Expanded {
    expanded_with(|_, _| ())
}

/// The full spec of the sample cluster.
pub fn full_spec() -> FullSpec {
    expanded_spec().full
}

/// The spec of that cluster.
pub const CLUSTER: &str = include_str!("cluster.yaml");

/// An etcd cluster with these members, all in one zone.
pub fn etcd_cluster(name: &str, members: &[&str]) -> EtcdCluster {
    let mut etcd = full_spec().etcd.swap_remove(0);
    let first = etcd.members.swap_remove(0);
    let member = |member: &&str| EtcdMember {
        name: (*member).to_owned(),
        ..first.clone()
    };
    EtcdCluster {
        name: name.to_owned(),
        members: members.iter().map(member).collect(),
        ..etcd
    }
}
