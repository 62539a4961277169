//! What a user changes in the pods of addons, from a completed spec, and whether the cluster has such pods.

use super::Findings;
use crate::api::addon_values::Toleration;
use crate::api::cluster::ClusterSpec;
use crate::read::path;
use crate::validate::addon_values::VALUES;
use full::addons::{find_misfits, make_addons};
use full::{AddonValues, FullSpec};
use serde_json::{Map, Value, json};

pub(super) fn full_addon_values(spec: &ClusterSpec) -> Vec<AddonValues> {
    spec.addon_values.iter().cloned().map(full_values).collect()
}

fn full_values(values: crate::api::addon_values::AddonValues) -> AddonValues {
    let resources = values.resources.unwrap_or_default();
    let mut pods = Map::new();
    if !values.node_selector.is_empty() {
        pods.insert("nodeSelector".to_owned(), json!(values.node_selector));
    }
    pods.extend(
        values
            .affinity
            .map(|affinity| ("affinity".to_owned(), affinity)),
    );
    let class = values.priority_class_name.map(Value::from);
    pods.extend(class.map(|class| ("priorityClassName".to_owned(), class)));
    AddonValues {
        addon: values.addon,
        workload: values.workload,
        container: values.container,
        replicas: values.replicas,
        requests: resources.requests,
        limits: resources.limits,
        pods,
        tolerations: full_tolerations(&values.tolerations),
        args: values.args,
    }
}

/// Tolerations as they stand in a manifest.
pub(super) fn full_tolerations(tolerations: &[Toleration]) -> Vec<Value> {
    tolerations
        .iter()
        .map(|toleration| json!(toleration))
        .collect()
}

/// Adds an error for values of which the addons have no place. Only a spec with values builds the addons here.
pub(super) fn check_addon_values(full: &FullSpec, findings: &mut Findings) {
    if full.addons.values.is_empty() {
        return;
    }
    let mut plain = full.clone();
    let values = std::mem::take(&mut plain.addons.values);
    let addons = match make_addons(&plain) {
        Ok(addons) => addons,
        Err(error) => {
            let message = engine::error_chain(&error);
            return findings.add_error(VALUES, message, "report it: the addons could not be built");
        }
    };
    for (index, misfit) in find_misfits(&values, &addons) {
        let at = path::field_path(&path::element_path(VALUES, index), misfit.field);
        findings.add_error(
            at,
            misfit.message,
            "`kctl render` writes the manifests of all addons",
        );
    }
}
