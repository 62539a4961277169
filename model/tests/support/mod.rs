//! A small cluster to make machines of.
#![allow(dead_code, unused_imports)] // Each test takes what it needs.

mod agents;

pub use agents::agents;
use model::api::{Cluster, InstanceGroup, Object};
use model::catalog::Catalog;
use model::expand::{Expanded, expand};
use model::facts::Facts;
use model::full::FullSpec;
use model::read::read_documents;

/// One control plane, one group of workers and a bastion, with a public hosted zone; changed by `change`.
pub fn expanded_with(change: impl FnOnce(&mut Cluster, &mut Vec<InstanceGroup>)) -> Expanded {
    let mut cluster = None;
    let mut groups = Vec::new();
    for document in read_documents("cluster.yaml", include_str!("cluster.yaml")).unwrap() {
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
    .unwrap()
}

/// The same as it is.
pub fn expanded() -> Expanded {
    expanded_with(|_, _| ())
}

/// Its full spec.
pub fn full() -> FullSpec {
    expanded().full
}
