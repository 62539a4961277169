//! The values that fields have in a new cluster: those that `kctl create cluster` writes, and those that expansion fills in. They are
//! taken from what both do with a cluster of one zone, so they cannot differ from it.

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::{Cluster, InstanceGroup, Spec as _};
use crate::catalog::Catalog;
use crate::create::{CreateOptions, create_cluster};
use crate::expand::expand;
use crate::read::Problem;
use cloud::facts::Facts;
use serde::Serialize;
use serde_json::Value;

/// What stands for the name of the cluster and for the state store.
const NAME: &str = "NAME";
const STORE: &str = "s3://STORE";

/// A new cluster, before and after expansion.
pub struct NewObjects {
    written: Objects,
    completed: Objects,
}

/// Objects as JSON. Groups come with their roles, on which many of their values depend.
struct Objects {
    cluster: Value,
    groups: Vec<(String, Value)>,
}

/// The values of a field in a new cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewValues {
    /// That `kctl create cluster` writes into the spec.
    pub written: Vec<String>,
    /// That the field has if nobody sets it.
    pub filled: Vec<String>,
}

/// A new cluster of one zone. Fails only if kctl cannot expand what it creates.
pub fn new_objects() -> Result<NewObjects, Vec<Problem>> {
    let facts = Facts {
        stand_in: true,
        ..Facts::default()
    };
    let options = CreateOptions {
        name: NAME.to_owned(),
        state_store: STORE.to_owned(),
        zones: vec!["eu-west-1a".to_owned()],
        ..CreateOptions::default()
    };
    let new = create_cluster(&options, &facts)?;
    let expanded = expand(&new.cluster, &new.groups, &[], &facts, &Catalog::default())?;
    Ok(NewObjects {
        written: Objects::new(&new.cluster, &new.groups),
        completed: Objects::new(&expanded.cluster, &expanded.groups),
    })
}

impl NewObjects {
    /// The values of a field of the spec, by its path in objects of a kind.
    pub fn values(&self, kind: &str, path: &str) -> NewValues {
        if !path.starts_with("spec.") {
            return NewValues::default();
        }
        let written = self.written.texts(kind, path);
        let filled = match written.is_empty() {
            true => self.completed.texts(kind, path),
            false => Vec::new(),
        };
        NewValues { written, filled }
    }
}

impl Objects {
    fn new(cluster: &Cluster, groups: &[InstanceGroup]) -> Self {
        let groups = groups.iter().map(|group| {
            let role = group.spec.role.map(|role| text_of(&json_of(&role)));
            (role.unwrap_or_default(), json_of(group))
        });
        Self {
            cluster: json_of(cluster),
            groups: groups.collect(),
        }
    }

    /// The values of a field as texts, each once. Where groups differ, each text names its role.
    fn texts(&self, kind: &str, path: &str) -> Vec<String> {
        match kind {
            ClusterSpec::KIND => unique(values_at(&self.cluster, path)),
            InstanceGroupSpec::KIND => self.group_texts(path),
            _ => Vec::new(),
        }
    }

    fn group_texts(&self, path: &str) -> Vec<String> {
        let groups = self.groups.iter();
        let groups: Vec<(&str, Vec<String>)> = groups
            .map(|(role, group)| (role.as_str(), unique(values_at(group, path))))
            .collect();
        match groups.split_first() {
            Some(((_, first), others)) if others.iter().all(|(_, other)| other == first) => {
                first.clone()
            }
            _ => {
                let texts = groups.iter().flat_map(|(role, texts)| {
                    let named = move |text: &String| format!("{text} ({role})");
                    texts.iter().map(named)
                });
                texts.collect()
            }
        }
    }
}

/// Objects of the spec always have a JSON form.
fn json_of(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// The values at a path, in all elements of the lists on the way. Sections have none, their fields have.
fn values_at<'a>(root: &'a Value, path: &str) -> Vec<&'a Value> {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let name = step.trim_end_matches("[]");
    let Some(value) = root.get(name) else {
        return Vec::new();
    };
    let values = match value {
        Value::Array(elements) if step.ends_with("[]") => elements.iter().collect(),
        one => vec![one],
    };
    if rest.is_empty() {
        return values;
    }
    let below = values.into_iter().flat_map(|value| values_at(value, rest));
    below.collect()
}

/// A text as it is written, everything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The texts of values, each once.
fn unique(values: Vec<&Value>) -> Vec<String> {
    let mut all = Vec::new();
    for text in values.into_iter().map(text_of) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{NewValues, new_objects};

    #[test]
    fn a_default_is_what_expansion_fills_in_and_not_what_create_writes() {
        let new = new_objects().unwrap();
        let owned = |texts: &[&str]| -> Vec<String> {
            texts.iter().map(|text| (*text).to_owned()).collect()
        };
        let everywhere = "[\"0.0.0.0/0\",\"::/0\"]";
        let taint = "[\"node-role.kubernetes.io/control-plane=:NoSchedule\"] (Master)";
        let cases: &[(&str, &str, &[&str], &[&str])] = &[
            ("Cluster", "spec.kubelet.cgroupDriver", &[], &["systemd"]),
            ("Cluster", "spec.kubelet.anonymousAuth", &["false"], &[]),
            ("Cluster", "spec.sshAccess", &[everywhere], &[]),
            ("Cluster", "spec.keyStore", &[], &["s3://STORE/NAME/pki"]),
            (
                "Cluster",
                "spec.etcdClusters[].etcdMembers[].volumeSize",
                &[],
                &["20"],
            ),
            (
                "Cluster",
                "spec.etcdClusters[].cpuRequest",
                &["200m", "100m"],
                &[],
            ),
            ("Cluster", "spec.networking.calico.mtu", &[], &[]),
            ("Cluster", "metadata.name", &[], &[]),
            ("InstanceGroup", "spec.rootVolumeType", &[], &["gp3"]),
            (
                "InstanceGroup",
                "spec.rootVolumeSize",
                &[],
                &["64 (Master)", "128 (Node)"],
            ),
            ("InstanceGroup", "spec.taints", &[], &[taint]),
        ];
        for (kind, path, written, filled) in cases {
            let wanted = NewValues {
                written: owned(written),
                filled: owned(filled),
            };
            assert_eq!(new.values(kind, path), wanted, "{kind} {path}");
        }
    }
}
