//! The field that somebody names: `cluster.spec.subnets[0].cidr`, `ig.spec.taints`.

use super::{Field, objects};
use crate::api::set_names;
use crate::api::shape::Shape;
use crate::read::nearest;
use crate::read::path::PathSegment;

/// There is no field of that name.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct NoSuchField {
    message: String,
    /// What was meant, or what there is.
    pub hint: String,
}

/// At most so many names are offered in the place of one.
const OFFERED: usize = 5;

/// The kind of the object and the field that a text names. Indexes of lists may be left out; names of kOps' newer API version are
/// understood as `--set` understands them. Below a map or a value in the form of Kubernetes, it is the field itself.
pub fn look_up(text: &str) -> Result<(String, Field), NoSuchField> {
    let mut names = text
        .split('.')
        .map(|name| name.split('[').next().unwrap_or_default());
    let first = names.next().unwrap_or_default();
    let object = objects()
        .into_iter()
        .find(|object| is_named(&object.name, first))
        .ok_or_else(|| no_kind(first))?;
    let steps = names
        .map(|name| PathSegment::Field(name.to_owned()))
        .collect();
    let mut found = &object;
    for step in set_names::in_v1alpha2(steps) {
        let PathSegment::Field(name) = step else {
            continue;
        };
        let next = found.fields.iter().find(|field| field.name == name);
        found = match next {
            Some(next) => next,
            None if takes_anything(found) => break,
            None => return Err(no_field(&object.name, found, &name)),
        };
    }
    Ok((object.name.clone(), found.clone()))
}

/// True if somebody may mean the kind: in any case, in the plural, or in short.
fn is_named(kind: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    let kind = kind.to_lowercase();
    word == kind
        || word.strip_suffix('s') == Some(kind.as_str())
        || (word == "ig" && kind == "instancegroup")
}

/// True if users choose the names below the field.
fn takes_anything(field: &Field) -> bool {
    matches!(field.shape.element(), Shape::Map(_) | Shape::Anything)
}

fn no_kind(word: &str) -> NoSuchField {
    let kinds = objects().map(|object| object.name.to_lowercase());
    let names: Vec<&str> = kinds.iter().map(String::as_str).collect();
    NoSuchField {
        message: format!("{word:?} is not a kind of object"),
        hint: match nearest::nearest_name(word, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!(
                "begin with one of {}: cluster.spec.kubelet",
                names.join(", ")
            ),
        },
    }
}

fn no_field(kind: &str, parent: &Field, name: &str) -> NoSuchField {
    let at = |name: &str| match parent.path.as_str() {
        "" => name.to_owned(),
        parent => format!("{parent}.{name}"),
    };
    let known: Vec<&str> = parent
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let mut near = nearest::nearest_names(name, known.iter().copied());
    near.truncate(OFFERED);
    let near: Vec<String> = near.into_iter().map(at).collect();
    let path = at(name);
    let hint = match (set_names::hint(&path), near.as_slice()) {
        (Some(newer), _) => newer,
        (None, []) => nearest::hint(name, &known),
        (None, near) => format!("did you mean {}?", near.join(" or ")),
    };
    NoSuchField {
        message: format!("{kind} has no field {path}"),
        hint,
    }
}

#[cfg(test)]
mod tests {
    use super::look_up;

    fn path_of(text: &str) -> String {
        let (kind, field) = look_up(text).unwrap();
        format!("{kind} {}", field.path)
    }

    fn told(text: &str) -> String {
        let error = look_up(text).unwrap_err();
        format!("{error}; {}", error.hint)
    }

    #[test]
    fn a_field_is_named_as_in_a_file_as_for_set_or_in_short() {
        for (text, path) in [
            ("cluster", "Cluster "),
            ("Clusters.metadata.name", "Cluster metadata.name"),
            ("cluster.spec.subnets.cidr", "Cluster spec.subnets[].cidr"),
            (
                "cluster.spec.subnets[2].cidr",
                "Cluster spec.subnets[].cidr",
            ),
            (
                "ig.spec.rootVolume.size",
                "InstanceGroup spec.rootVolumeSize",
            ),
            (
                "cluster.spec.controlPlaneKubelet.maxPods",
                "Cluster spec.masterKubelet.maxPods",
            ),
            ("cluster.spec.cloudLabels.Owner", "Cluster spec.cloudLabels"),
            (
                "cluster.spec.kubeDNS.affinity.nodeAffinity",
                "Cluster spec.kubeDNS.affinity",
            ),
            (
                "cluster.spec.networking.cilium.lb",
                "Cluster spec.networking.cilium.lb",
            ),
        ] {
            assert_eq!(path_of(text), path, "{text}");
        }
    }

    #[test]
    fn another_name_is_answered_with_those_that_resemble_it() {
        for (text, said) in [
            (
                "cluster.spec.networkCidr",
                "Cluster has no field spec.networkCidr; did you mean spec.networkCIDR",
            ),
            (
                "instancegroup.spec.rootVolume",
                "InstanceGroup has no field spec.rootVolume; in v1alpha2 spec.rootVolume.size is spec.rootVolumeSize",
            ),
            (
                "cluster.spec.kubelet.maxPod",
                "did you mean spec.kubelet.maxPods",
            ),
            (
                "cluster.specs",
                "Cluster has no field specs; did you mean spec?",
            ),
            (
                "clutser.spec",
                "\"clutser\" is not a kind of object; did you mean cluster?",
            ),
            ("spec.kubelet", "begin with one of cluster, instancegroup"),
            ("cluster.spec.subnets.cidr.x", "spec.subnets[].cidr.x"),
            ("", "\"\" is not a kind of object"),
        ] {
            let told = told(text);
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
