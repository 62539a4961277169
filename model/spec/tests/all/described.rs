//! What is told of fields is told of the reader's fields, and of each of them.

use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::shape::Shape;
use spec::field::{Field, objects};
use std::collections::BTreeMap;
use test_support::trace::{Leaf, LeafType, type_leaves};

/// Every field of every object, with its kind.
fn all_fields(objects: &[Field]) -> Vec<(&str, &Field)> {
    let fields = objects.iter().flat_map(|object| {
        let kind = object.name.as_str();
        object
            .below(true)
            .into_iter()
            .map(move |field| (kind, field))
    });
    fields.collect()
}

/// The leaves of a field as the tracer of types names them: `[]` for elements of a list, `.*` for entries of a map.
fn collect_leaves(field: &Field, into: &mut BTreeMap<String, LeafType>) {
    let (mut path, mut shape) = (field.path.clone(), field.shape);
    let leaf = loop {
        shape = match shape {
            Shape::Optional(of) => of(),
            Shape::List(of) => {
                path += "[]";
                of()
            }
            Shape::Map(of) => {
                path += ".*";
                of()
            }
            Shape::Bool => break LeafType::Bool,
            Shape::Int(..) => break LeafType::Number,
            Shape::Text => break LeafType::Text,
            Shape::IntOrText | Shape::Anything => break LeafType::Anything,
            Shape::Choice(words) => break LeafType::Choice(words),
            Shape::Section(_) if field.fields.is_empty() => break LeafType::Presence,
            Shape::Section(_) => {
                field
                    .fields
                    .iter()
                    .for_each(|one| collect_leaves(one, into));
                return;
            }
        };
    };
    into.insert(path, leaf);
}

fn by_path(leaves: Vec<Leaf>) -> BTreeMap<String, LeafType> {
    let pairs = leaves.into_iter().map(|leaf| (leaf.path, leaf.takes));
    pairs.collect()
}

#[test]
fn the_fields_and_their_types_are_those_that_the_reader_has() {
    let read = [
        ("Cluster", type_leaves::<ClusterSpec>("spec")),
        ("InstanceGroup", type_leaves::<InstanceGroupSpec>("spec")),
    ];
    let objects = objects();
    for (kind, leaves) in read {
        let object = objects.iter().find(|object| object.name == kind).unwrap();
        let spec = object.fields.iter().find(|field| field.name == "spec");
        let mut told = BTreeMap::new();
        collect_leaves(spec.unwrap(), &mut told);
        // What kOps dropped or removed has no type, and is in a list.
        let read = by_path(leaves);
        for (_, field) in all_fields(&objects).into_iter().filter(|(of, field)| {
            *of == kind && !field.refusals.is_empty() && matches!(field.shape, Shape::Anything)
        }) {
            if !read.contains_key(&field.path) {
                told.remove(&field.path);
            }
        }
        assert_eq!(told, read, "{kind}");
    }
}

#[test]
fn every_field_has_a_description_in_sentences() {
    let objects = objects();
    let all = all_fields(&objects);
    assert!(all.len() > 1000, "{} fields", all.len());
    let silent: Vec<String> = all
        .into_iter()
        .filter(|(_, field)| {
            let text = &field.description;
            text.len() < 10 || !text.ends_with('.') || text.contains("  ")
        })
        .map(|(kind, field)| format!("{kind} {}: {:?}", field.path, field.description))
        .collect();
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn what_is_refused_by_name_says_so_and_why() {
    let objects = objects();
    let notes = |kind: &str, path: &str| {
        let all = all_fields(&objects);
        let found = all
            .iter()
            .find(|(of, field)| *of == kind && field.path == path);
        found.unwrap().1.notes().join(" ")
    };
    for (kind, path, said) in [
        (
            "Cluster",
            "spec.karpenter",
            "Refused unless it is empty or off: kctl does not support Karpenter; instance groups with",
        ),
        (
            "Cluster",
            "spec.networking.weave",
            "Refused: kOps removed this: this network plugin is no longer maintained",
        ),
        (
            "Cluster",
            "spec.networking.cilium.chainingMode",
            "Refused if it is flannel: kctl does not support cilium after another network plugin.",
        ),
        (
            "Cluster",
            "spec.networking.calico.crossSubnet",
            "Ignored: it does nothing, in kOps either",
        ),
        (
            "InstanceGroup",
            "spec.kubelet.requireKubeconfig",
            "Refused unless it is true where Kubernetes is newer than 1.9",
        ),
    ] {
        let notes = notes(kind, path);
        assert!(notes.contains(said), "{path}: {notes}");
    }
}
