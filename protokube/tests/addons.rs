//! Checks all objects of all addons against the types of Kubernetes: parsing and serializing must not lose a field, such as a
//! misspelt one.
#![cfg(test)]

use full::addons::make_addons;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Service, ServiceAccount};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_support::expanded_with_fields;

fn round_trip<T: Serialize + DeserializeOwned>(object: &Value) -> Value {
    let read: T = serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{error}: {object:#}"));
    serde_json::to_value(read).unwrap()
}

/// The object after parsing and serializing it with its type.
fn round_trip_typed(object: &Value) -> Value {
    let word = |field: &str| object[field].as_str().unwrap();
    match (word("apiVersion"), word("kind")) {
        ("v1", "ConfigMap") => round_trip::<ConfigMap>(object),
        ("v1", "LimitRange") => round_trip::<LimitRange>(object),
        ("v1", "Namespace") => round_trip::<Namespace>(object),
        ("v1", "Service") => round_trip::<Service>(object),
        ("v1", "ServiceAccount") => round_trip::<ServiceAccount>(object),
        ("apps/v1", "DaemonSet") => round_trip::<DaemonSet>(object),
        ("apps/v1", "Deployment") => round_trip::<Deployment>(object),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema") => round_trip::<FlowSchema>(object),
        ("policy/v1", "PodDisruptionBudget") => round_trip::<PodDisruptionBudget>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => round_trip::<ClusterRole>(object),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => {
            round_trip::<ClusterRoleBinding>(object)
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy") => {
            round_trip::<ValidatingAdmissionPolicy>(object)
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding") => {
            round_trip::<ValidatingAdmissionPolicyBinding>(object)
        }
        ("rbac.authorization.k8s.io/v1", "Role") => round_trip::<Role>(object),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => round_trip::<RoleBinding>(object),
        other => panic!("no type for {other:?}"),
    }
}

/// All objects of the sample cluster with this change of its spec.
fn sample_objects(change: &Value) -> Vec<Value> {
    let expanded = expanded_with_fields(change);
    let addons = make_addons(&expanded.full).unwrap();
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
        for object in sample_objects(&change) {
            assert_eq!(round_trip_typed(&object), object);
        }
    }
}

#[test]
fn a_misspelt_field_would_be_found() {
    let mut objects = sample_objects(&json!({}));
    let deployment = objects
        .iter_mut()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    deployment["spec"]["template"]["spec"]["priorityClass"] = json!("x");
    assert_ne!(round_trip_typed(deployment), *deployment);
}

/// The pod specs of the addons, with kind and name of the objects that create them.
fn addon_pods(objects: &[Value]) -> Vec<(String, k8s_openapi::api::core::v1::PodSpec)> {
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
    let objects = sample_objects(&json!({"networking": {"flannel": {}}}));
    let accounts: Vec<&Value> = objects
        .iter()
        .filter(|one| one["kind"] == "ServiceAccount")
        .collect();
    for (who, pod) in addon_pods(&objects) {
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
                .and_then(|resources| resources.requests.as_ref());
            assert!(
                requests.is_some_and(|requests| requests.contains_key("cpu")),
                "{who}"
            );
        }
    }
}

#[test]
fn selectors_select_the_pods_that_are_made() {
    for object in sample_objects(&json!({"networking": {"flannel": {}}})) {
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
