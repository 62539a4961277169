//! Every object of every addon is what Kubernetes' own types say it is: read as its type and written back, nothing is lost. A
//! misspelt field would be.
#![cfg(test)]

use full::addons::addons;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_support::expanded_with_fields;

fn typed<T: Serialize + DeserializeOwned>(object: &Value) -> Value {
    let read: T = serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{error}: {object:#}"));
    serde_json::to_value(read).unwrap()
}

/// The object by way of its type.
fn through_its_type(object: &Value) -> Value {
    let word = |field: &str| object[field].as_str().unwrap();
    match (word("apiVersion"), word("kind")) {
        ("v1", "ConfigMap") => typed::<ConfigMap>(object),
        ("v1", "LimitRange") => typed::<LimitRange>(object),
        ("v1", "Namespace") => typed::<Namespace>(object),
        ("v1", "Service") => typed::<Service>(object),
        ("v1", "ServiceAccount") => typed::<ServiceAccount>(object),
        ("apps/v1", "DaemonSet") => typed::<DaemonSet>(object),
        ("apps/v1", "Deployment") => typed::<Deployment>(object),
        ("policy/v1", "PodDisruptionBudget") => typed::<PodDisruptionBudget>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => typed::<ClusterRole>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => {
            typed::<ClusterRoleBinding>(object)
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy") => {
            typed::<ValidatingAdmissionPolicy>(object)
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding") => {
            typed::<ValidatingAdmissionPolicyBinding>(object)
        }
        ("rbac.authorization.k8s.io/v1", "Role") => typed::<Role>(object),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => typed::<RoleBinding>(object),
        other => panic!("no type for {other:?}"),
    }
}

/// All objects of the sample with its spec changed.
fn objects(change: &Value) -> Vec<Value> {
    let expanded = expanded_with_fields(change);
    let addons = addons(&expanded.full).unwrap();
    addons.into_iter().flat_map(|addon| addon.objects).collect()
}

#[test]
fn every_object_is_of_its_type() {
    let dns = json!({
        "replicas": 2,
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}},
        "podAnnotations": {"a": "true"},
        "stubDomains": {"corp.example.com": ["10.1.0.2"]},
    });
    for change in [
        json!({"networking": {"kubenet": {}}}),
        json!({"networking": {"flannel": {}}, "containerd": {"selinuxEnabled": true}}),
        json!({"networking": {"flannel": {"backend": "udp"}}, "kubeDNS": dns}),
        json!({"networking": {"cni": {}}, "cloudConfig": {"elbSecurityGroup": "sg-\"1"}}),
    ] {
        for object in objects(&change) {
            assert_eq!(through_its_type(&object), object);
        }
    }
}

#[test]
fn a_misspelt_field_would_be_found() {
    let mut objects = objects(&json!({}));
    let deployment = objects
        .iter_mut()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    deployment["spec"]["template"]["spec"]["priorityClass"] = json!("x");
    assert_ne!(through_its_type(deployment), *deployment);
}

/// Pods of the addons: kind and name of what makes them, and what they are made from.
fn pods(objects: &[Value]) -> Vec<(String, k8s_openapi::api::core::v1::PodSpec)> {
    let makers = objects
        .iter()
        .filter(|object| object["spec"]["template"].is_object());
    makers
        .map(|object| {
            let spec = serde_json::from_value(object["spec"]["template"]["spec"].clone()).unwrap();
            (
                format!("{} {}", object["kind"], object["metadata"]["name"]),
                spec,
            )
        })
        .collect()
}

#[test]
fn every_pod_is_critical_asks_for_what_it_needs_and_has_what_it_mounts() {
    let objects = objects(&json!({"networking": {"flannel": {}}}));
    let accounts: Vec<&Value> = objects
        .iter()
        .filter(|one| one["kind"] == "ServiceAccount")
        .collect();
    for (who, pod) in pods(&objects) {
        let class = pod.priority_class_name.unwrap();
        assert!(class.starts_with("system-"), "{who}");
        let account = pod.service_account_name.unwrap();
        assert!(
            accounts
                .iter()
                .any(|one| one["metadata"]["name"] == *account),
            "{who}: {account}"
        );
        let volumes: Vec<String> = pod
            .volumes
            .unwrap_or_default()
            .into_iter()
            .map(|one| one.name)
            .collect();
        for container in pod
            .containers
            .iter()
            .chain(pod.init_containers.iter().flatten())
        {
            for mount in container.volume_mounts.iter().flatten() {
                assert!(volumes.contains(&mount.name), "{who}: {}", mount.name);
            }
        }
        for container in &pod.containers {
            let requests = container
                .resources
                .as_ref()
                .and_then(|of| of.requests.as_ref());
            assert!(requests.is_some_and(|of| of.contains_key("cpu")), "{who}");
        }
    }
}

#[test]
fn selectors_select_the_pods_that_are_made() {
    for object in objects(&json!({"networking": {"flannel": {}}})) {
        let Some(wanted) = object.pointer("/spec/selector/matchLabels") else {
            continue;
        };
        if let Some(labels) = object.pointer("/spec/template/metadata/labels") {
            for (key, value) in wanted.as_object().unwrap() {
                assert_eq!(&labels[key], value, "{}", object["metadata"]["name"]);
            }
        }
    }
}
