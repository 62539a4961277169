//! Takes out of specs, AWS resources and Kubernetes objects what may be a secret: where others wrote the content, only named fields stay.

use node::digest::sha256_hex;
use serde_json::{Map, Value, json};

/// The namespace whose containers are the cluster's own.
const SYSTEM: &str = "kube-system";

/// Fields of a spec whose text may be anything.
const TEXTS: [&str; 4] = ["configOverride", "content", "manifest", "userData"];

/// Fields of a spec with values or words that may be anything: variables, the command of a container, settings of Terraform's providers.
const COLLECTIONS: [&str; 5] = [
    "command",
    "configAdditions",
    "environment",
    "filesProviderExtraConfig",
    "providerExtraConfig",
];

/// The lists of containers of a pod.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Fields of volumes whose values are of their driver, in pods and in PersistentVolumes: passwords of file servers are seen there.
const DRIVER_VALUES: [&str; 3] = ["mountOptions", "options", "volumeAttributes"];

/// What stays of a container that is not the cluster's own.
const CONTAINER_FIELDS: [&str; 4] = ["image", "name", "ports", "resources"];

/// What stays of a pod that is not the cluster's own, besides its containers: where it may run, and as whom.
const POD_FIELDS: [&str; 16] = [
    "affinity",
    "dnsPolicy",
    "hostNetwork",
    "nodeName",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

/// Longest annotation that stays, bytes. Longer ones are copies of whole objects.
const ANNOTATION: usize = 256;

/// A spec without texts, values of environment variables, commands of hooks, and passwords in URLs.
pub fn redact_spec(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(redact_spec),
        Value::Object(fields) => {
            let names_variable = fields.contains_key("name");
            for (name, field) in fields.iter_mut() {
                if COLLECTIONS.contains(&name.as_str()) {
                    leave_out_values(field);
                }
                let hidden = TEXTS.contains(&name.as_str()) || (name == "value" && names_variable);
                match field {
                    Value::String(text) if hidden || text.contains('\n') => {
                        *field = left_out(text.len());
                    }
                    _ => redact_spec(field),
                }
            }
        }
        Value::String(text) => redact_url(text),
        _ => {}
    }
}

/// AWS resources with the sha256 of user data in the place of user data, which has the `additionalUserData` of the spec.
pub fn redact_resources(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(redact_resources),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if name == "user_data" && !field.is_null() {
                    let text = field
                        .as_str()
                        .map_or_else(|| field.to_string(), str::to_owned);
                    *field = json!({"sha256": sha256_hex(&text), "bytes": text.len()});
                } else {
                    redact_resources(field);
                }
            }
        }
        _ => {}
    }
}

/// A list of Kubernetes objects without the history of their fields and copies in annotations. Of pods and their templates outside of
/// `kube-system` only the named fields stay; in `kube-system`, values of variables and headers of probes go.
pub fn redact_objects(list: &mut Value) {
    let items = list.get_mut("items").and_then(Value::as_array_mut);
    for object in items.into_iter().flatten() {
        let namespace = object.pointer("/metadata/namespace");
        let own = namespace.is_none_or(|name| name == SYSTEM);
        redact_object(object, own);
    }
}

fn redact_object(value: &mut Value, own: bool) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| redact_object(one, own)),
        Value::Object(fields) => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                redact_metadata(metadata);
            }
            let is_pod = CONTAINERS
                .iter()
                .any(|list| fields.get(*list).is_some_and(Value::is_array));
            if is_pod {
                redact_pod(fields, own);
            }
            for name in DRIVER_VALUES {
                fields.get_mut(name).map(leave_out_values);
            }
            fields
                .values_mut()
                .for_each(|field| redact_object(field, own));
        }
        Value::String(text) => redact_url(text),
        _ => {}
    }
}

fn redact_metadata(metadata: &mut Map<String, Value>) {
    metadata.remove("managedFields");
    let annotations = metadata.get_mut("annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    for annotation in annotations.values_mut() {
        let text = annotation.as_str().unwrap_or_default();
        if text.len() > ANNOTATION || text.contains(['{', '\n']) {
            *annotation = left_out(text.len());
        }
    }
}

fn redact_pod(pod: &mut Map<String, Value>, own: bool) {
    if !own {
        pod.retain(|name, _| {
            POD_FIELDS.contains(&name.as_str()) || CONTAINERS.contains(&name.as_str())
        });
    }
    for list in CONTAINERS {
        let containers = pod.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            match container.as_object_mut() {
                Some(fields) if !own => {
                    fields.retain(|name, _| CONTAINER_FIELDS.contains(&name.as_str()));
                }
                _ => redact_own_container(container),
            }
        }
    }
}

/// Without values of variables and of headers of probes.
fn redact_own_container(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(redact_own_container),
        Value::Object(fields) => {
            let is_named = fields.contains_key("name");
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(text) if name == "value" && is_named => {
                        *field = left_out(text.len());
                    }
                    _ => redact_own_container(field),
                }
            }
        }
        _ => {}
    }
}

/// Takes user and password out of a URL: `https://proxy.example.com` of `https://user:password@proxy.example.com`.
fn redact_url(text: &mut String) {
    let Some((scheme, rest)) = text.split_once("://") else {
        return;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@') {
        let rest = rest.get(user.len() + 1..).unwrap_or_default();
        *text = format!("{scheme}://{rest}");
    }
}

fn leave_out_values(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(leave_out_values),
        Value::Object(fields) => fields.values_mut().for_each(leave_out_values),
        Value::Null => {}
        Value::String(text) => *value = left_out(text.len()),
        _ => *value = left_out(value.to_string().len()),
    }
}

fn left_out(bytes: usize) -> Value {
    format!("(left out: {bytes} bytes)").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_variables_of_a_spec_are_left_out() {
        let mut spec = json!({"spec": {
            "fileAssets": [{"name": "a", "path": "/etc/a", "content": "hunter2"}],
            "kubeAPIServer": {"env": [{"name": "TOKEN", "value": "hunter2"}]},
            "hooks": [{"name": "h", "execContainer": {
                "image": "i", "command": ["login", "hunter2"], "environment": {"P": "hunter2", "name": "hunter2"}}}],
            "containerd": {"configOverride": "hunter2", "configAdditions": {"a.auth.password": "hunter2", "b": 7},
                "registryMirrors": {"docker.io": ["https://user:hunter2@mirror.example.com/v2"]}},
            "egressProxy": {"httpProxy": {"host": "http://u:hunter2@proxy.example.com", "port": 3128}},
            "kubeDNS": {"externalCoreFile": "a {\n hunter2\n}"},
            "target": {"terraform": {"providerExtraConfig": {"secret_key": "hunter2"}, "filesProviderExtraConfig": {"token": "hunter2"}}},
            "kubelet": {"maxPods": 77},
        }});
        redact_spec(&mut spec);
        assert!(!spec.to_string().contains("hunter2"), "{spec}");
        let spec = &spec["spec"];
        assert_eq!(spec["fileAssets"][0]["content"], "(left out: 7 bytes)");
        assert_eq!(spec["fileAssets"][0]["path"], "/etc/a");
        assert_eq!(spec["hooks"][0]["execContainer"]["image"], "i");
        let mirror = &spec["containerd"]["registryMirrors"]["docker.io"][0];
        assert_eq!(mirror, "https://mirror.example.com/v2");
        assert_eq!(spec["egressProxy"]["httpProxy"]["port"], 3128);
        assert_eq!(spec["kubelet"]["maxPods"], 77);
    }

    #[test]
    fn of_user_data_only_the_digest_stays() {
        let mut resources = json!({"items": [
            {"launch_template": {"image_id": "ami-1", "user_data": "#!/bin/sh\nhunter2"}},
            {"launch_template": {"user_data": [{"literal": "hunter2"}]}},
            {"launch_template": {"user_data": null}},
        ]});
        redact_resources(&mut resources);
        assert!(!resources.to_string().contains("hunter2"), "{resources}");
        let template = &resources["items"][0]["launch_template"];
        assert_eq!(template["image_id"], "ami-1");
        assert_eq!(
            template["user_data"]["sha256"],
            sha256_hex("#!/bin/sh\nhunter2")
        );
        assert!(resources["items"][2]["launch_template"]["user_data"].is_null());
    }

    /// A pod with the password in every place that a container has for it.
    fn pod(namespace: &str) -> Value {
        let container = json!({"name": "web", "image": "web:1", "args": ["--flag"], "command": ["web"],
            "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80}],
            "env": [{"name": "PASSWORD", "value": "hunter2"}],
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}}});
        json!({
            "metadata": {"namespace": namespace, "managedFields": [1], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
                "copy": "{\"password\": \"hunter2\"}", "kept": "yes"}},
            "spec": {"nodeName": "n", "containers": [container.clone()], "initContainers": [container]},
            "status": {"containerStatuses": [{"name": "web", "image": "web:1", "restartCount": 3}]},
        })
    }

    #[test]
    fn containers_of_others_keep_named_fields_only() {
        let mut other = pod("default");
        let container = &mut other["spec"]["containers"][0];
        container["livenessProbe"] =
            json!({"exec": {"command": ["redis-cli", "-a", "hunter2", "ping"]}});
        container["lifecycle"] = json!({"preStop": {"exec": {"command": ["hunter2"]}}});
        container["unknownToKctl"] = json!("hunter2");
        other["spec"]["ephemeralContainers"] =
            json!([{"name": "d", "targetContainerName": "web", "args": ["hunter2"]}]);
        other["spec"]["volumes"] =
            json!([{"name": "v", "csi": {"volumeAttributes": {"token": "hunter2"}}}]);
        let template = json!({"metadata": {"namespace": "default"}, "spec": {"template": {
            "metadata": other["metadata"], "spec": other["spec"]}}});
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"mountOptions": ["password=hunter2"],
            "csi": {"driver": "smb.csi.k8s.io", "volumeAttributes": {"password": "hunter2"}}}});
        let mut list = json!({"items": [other, template, pod("kube-system"), volume]});
        redact_objects(&mut list);
        let text = list.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("managedFields"),
            "{text}"
        );
        let kept = json!({"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}},
            "ports": [{"containerPort": 80}]});
        for pod in [&list["items"][0], &list["items"][1]["spec"]["template"]] {
            assert_eq!(pod["spec"]["containers"][0], kept);
            assert_eq!(pod["spec"]["initContainers"][0], kept);
            assert_eq!(pod["spec"]["nodeName"], "n");
            assert_eq!(pod["metadata"]["annotations"]["kept"], "yes");
        }
        let status = &list["items"][0]["status"]["containerStatuses"][0];
        assert_eq!(status["restartCount"], 3);
        let own = &list["items"][2]["spec"]["containers"][0];
        assert_eq!(own["args"], json!(["--flag"]));
    }
}
