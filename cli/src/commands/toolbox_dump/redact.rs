//! Takes out of specs and Kubernetes objects what may be a secret.

use serde_json::{Map, Value};

/// The namespace whose containers are the cluster's own.
const SYSTEM: &str = "kube-system";

/// Fields whose text may be anything: files and user data of a spec.
const TEXTS: [&str; 3] = ["content", "manifest", "userData"];

/// Fields of containers that people put passwords into.
const CONTAINER_FIELDS: [&str; 3] = ["args", "command", "env"];

/// A spec without texts and values of environment variables.
pub fn redact_spec(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(redact_spec),
        Value::Object(fields) => {
            let names_variable = fields.contains_key("name");
            for (name, field) in fields.iter_mut() {
                let hidden = TEXTS.contains(&name.as_str()) || (name == "value" && names_variable);
                match field {
                    Value::String(text) if hidden => *field = left_out(text.len()),
                    _ => redact_spec(field),
                }
            }
        }
        _ => {}
    }
}

/// A list of Kubernetes objects without the history of their fields, and without commands, arguments and environment of containers that
/// are not the cluster's own.
pub fn redact_objects(list: &mut Value) {
    let items = list.get_mut("items").and_then(Value::as_array_mut);
    for object in items.into_iter().flatten() {
        let namespace = object.pointer("/metadata/namespace");
        let own = namespace.is_none_or(|name| name == SYSTEM);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations") {
                annotations
                    .as_object_mut()
                    .map(|all| all.remove("kubectl.kubernetes.io/last-applied-configuration"));
            }
        }
        redact_containers(object, own);
    }
}

fn redact_containers(value: &mut Value, own: bool) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| redact_containers(one, own)),
        Value::Object(fields) if fields.contains_key("image") => redact_container(fields, own),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|one| redact_containers(one, own)),
        _ => {}
    }
}

fn redact_container(fields: &mut Map<String, Value>, own: bool) {
    if !own {
        for name in CONTAINER_FIELDS {
            fields.remove(name);
        }
    }
    if let Some(env) = fields.get_mut("env") {
        redact_spec(env);
    }
}

fn left_out(bytes: usize) -> Value {
    format!("(left out: {bytes} bytes)").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_and_variables_of_a_spec_are_left_out() {
        let mut spec = json!({"spec": {
            "fileAssets": [{"name": "a", "path": "/etc/a", "content": "hunter2"}],
            "kubeAPIServer": {"env": [{"name": "TOKEN", "value": "hunter2"}]},
            "kubelet": {"maxPods": 77},
        }});
        redact_spec(&mut spec);
        assert!(!spec.to_string().contains("hunter2"), "{spec}");
        assert_eq!(
            spec["spec"]["fileAssets"][0]["content"],
            "(left out: 7 bytes)"
        );
        assert_eq!(spec["spec"]["fileAssets"][0]["path"], "/etc/a");
        assert_eq!(spec["spec"]["kubelet"]["maxPods"], 77);
    }

    #[test]
    fn containers_of_others_keep_their_image_only() {
        let pod = |namespace: &str| {
            json!({
                "metadata": {"namespace": namespace, "managedFields": [1], "annotations":
                    {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "kept": "yes"}},
                "spec": {"containers": [{"image": "web:1", "args": ["--flag"],
                    "env": [{"name": "PASSWORD", "value": "hunter2"}]}]},
            })
        };
        let mut list = json!({"items": [pod("default"), pod("kube-system")]});
        redact_objects(&mut list);
        let text = list.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("managedFields"),
            "{text}"
        );
        let containers = |item: usize| &list["items"][item]["spec"]["containers"][0];
        assert_eq!(*containers(0), json!({"image": "web:1"}));
        assert_eq!(containers(1)["args"], json!(["--flag"]));
        assert_eq!(list["items"][0]["metadata"]["annotations"]["kept"], "yes");
    }
}
