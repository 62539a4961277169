//! What a user changes in the pods of addons (`spec.addonValues`): replicas, resources, placement, arguments.

use super::Addon;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Changes of one workload of an addon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddonValues {
    pub addon: String,
    /// `None`: the addon has only one.
    pub workload: Option<String>,
    /// `None`: the first.
    pub container: Option<String>,
    pub replicas: Option<i32>,
    /// Quantities by resource.
    pub requests: BTreeMap<String, String>,
    pub limits: BTreeMap<String, String>,
    /// Fields of the pods' spec that are replaced.
    pub pods: Map<String, Value>,
    /// Added to those of the manifest.
    pub tolerations: Vec<Value>,
    /// Added to those of the manifest.
    pub args: Vec<String>,
}

/// Values that do not fit the addon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Misfit {
    /// The field that says so.
    pub field: &'static str,
    pub message: String,
}

fn misfit<T>(field: &'static str, message: String) -> Result<T, Misfit> {
    Err(Misfit { field, message })
}

/// Changes the objects of the addon.
pub(super) fn apply_values(values: &AddonValues, objects: &mut [Value]) -> Result<(), Misfit> {
    let workload = find_workload(values, objects)?;
    let name = name_of(workload).to_owned();
    if let Some(replicas) = values.replicas {
        // A DaemonSet has none, and a Deployment without them is scaled by another addon.
        let Some(own) = workload.pointer_mut("/spec/replicas") else {
            return misfit(
                "replicas",
                format!("the number of pods of {name} follows the cluster"),
            );
        };
        *own = replicas.into();
    }
    let Some(pods) = workload
        .pointer_mut("/spec/template/spec")
        .and_then(Value::as_object_mut)
    else {
        return Ok(());
    };
    pods.extend(values.pods.clone());
    append(pods, "tolerations", &values.tolerations);
    let container = find_container(values, pods, &name)?;
    append(container, "args", &values.args);
    set_quantities(container, "requests", &values.requests);
    set_quantities(container, "limits", &values.limits);
    Ok(())
}

/// Those of the values that do not fit these addons, in which none was applied yet, with their indexes.
pub fn find_misfits(all: &[AddonValues], addons: &[Addon]) -> Vec<(usize, Misfit)> {
    let mut found = Vec::new();
    for (index, values) in all.iter().enumerate() {
        let applied = match addons.iter().find(|addon| addon.name == values.addon) {
            Some(addon) => apply_values(values, &mut addon.objects.clone()),
            None => {
                let with_pods = addons
                    .iter()
                    .filter(|addon| addon.objects.iter().any(is_workload));
                let names: Vec<&str> = with_pods.map(|addon| addon.name.as_str()).collect();
                let addon = &values.addon;
                misfit(
                    "addon",
                    format!(
                        "the cluster has no addon {addon}; those with pods are {}",
                        names.join(", ")
                    ),
                )
            }
        };
        found.extend(applied.err().map(|misfit| (index, misfit)));
    }
    found
}

fn find_workload<'a>(
    values: &AddonValues,
    objects: &'a mut [Value],
) -> Result<&'a mut Value, Misfit> {
    let names: Vec<String> = objects
        .iter()
        .filter(|object| is_workload(object))
        .map(|object| name_of(object).to_owned())
        .collect();
    let (addon, listed) = (&values.addon, names.join(", "));
    let wanted = match (&values.workload, names.as_slice()) {
        (_, []) => return misfit("addon", format!("{addon} has no pods")),
        (Some(wanted), _) => wanted,
        (None, [only]) => only,
        (None, _) => return misfit("workload", format!("{addon} has several: {listed}")),
    };
    let mut workloads = objects.iter_mut().filter(|object| is_workload(object));
    match workloads.find(|object| name_of(object) == wanted) {
        Some(workload) => Ok(workload),
        None => misfit("workload", format!("{addon} has no {wanted}, but {listed}")),
    }
}

fn find_container<'a>(
    values: &AddonValues,
    pods: &'a mut Map<String, Value>,
    workload: &str,
) -> Result<&'a mut Map<String, Value>, Misfit> {
    let containers = pods.get_mut("containers").and_then(Value::as_array_mut);
    let mut containers: Vec<&mut Map<String, Value>> = containers
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
        .collect();
    let name = |container: &Map<String, Value>| -> String {
        let name = container.get("name").and_then(Value::as_str);
        name.unwrap_or_default().to_owned()
    };
    let names: Vec<String> = containers.iter().map(|container| name(container)).collect();
    let position = match &values.container {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None => Some(0),
    };
    match position {
        Some(position) if position < containers.len() => Ok(containers.swap_remove(position)),
        _ => misfit("container", format!("{workload} has {}", names.join(", "))),
    }
}

fn is_workload(object: &Value) -> bool {
    object.pointer("/spec/template/spec/containers").is_some()
}

fn name_of(object: &Value) -> &str {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// Adds quantities to `resources.PART` of a container.
fn set_quantities(
    container: &mut Map<String, Value>,
    part: &str,
    quantities: &BTreeMap<String, String>,
) {
    if quantities.is_empty() {
        return;
    }
    let mut map = container;
    for key in ["resources", part] {
        let inner = map.entry(key).or_insert_with(|| json!({}));
        let Some(inner) = inner.as_object_mut() else {
            return;
        };
        map = inner;
    }
    let given = quantities.iter();
    map.extend(given.map(|(name, quantity)| (name.clone(), quantity.as_str().into())));
}

fn append<T: Clone + Into<Value>>(map: &mut Map<String, Value>, key: &str, values: &[T]) {
    if values.is_empty() {
        return;
    }
    let list = map.entry(key).or_insert_with(|| Vec::<Value>::new().into());
    if let Some(list) = list.as_array_mut() {
        list.extend(values.iter().cloned().map(Into::into));
    }
}
