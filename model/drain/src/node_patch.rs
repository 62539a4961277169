//! How a Node is changed when it is drained, as merge patches.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value, json};

/// Label that takes a Node out of load balancers of Services; kOps sets it before a drain too.
pub const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Cordons a Node. `excluded_by`: also takes it out of load balancers of Services, with this value of the label, unless it has the
/// label already.
pub fn cordon_patch(node: &Node, excluded_by: Option<&str>) -> Value {
    let mut patch = json!({"spec": {"unschedulable": true}});
    if let Some(by) = excluded_by.filter(|_| label_of(node, EXCLUDE_LABEL).is_none()) {
        merge_patches(
            &mut patch,
            json!({"metadata": {"labels": {EXCLUDE_LABEL: by}}}),
        );
    }
    patch
}

/// A label of a Node.
pub fn label_of<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let labels = node.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// Adds to a patch.
pub fn merge_patches(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge_patches(into.entry(key).or_insert(Value::Object(Map::new())), value);
            }
        }
        (into, from) => *into = from,
    }
}
