//! `spec.addonValues`: what a user changes in the pods of addons.

use full::FullSpec;
use full::addons::{Addon, make_addons};
use serde_json::{Value, json};
use spec::api::{Cluster, InstanceGroup};
use test_support::{expanded_with_fields, try_expanded_with};

/// A cluster with most addons.
fn all_addons() -> Value {
    json!({
        "certManager": {"enabled": true},
        "clusterAutoscaler": {"enabled": true},
        "metricsServer": {"enabled": true},
        "nodeProblemDetector": {"enabled": true},
        "snapshotController": {"enabled": true},
        "networking": {"flannel": {}},
        "kubeDNS": {"nodeLocalDNS": {"enabled": true}},
    })
}

fn with_values(values: Value) -> FullSpec {
    let mut fields = all_addons();
    fields["addonValues"] = values;
    expanded_with_fields(&fields).full
}

/// Addon, name and containers of each workload.
fn workloads(addons: &[Addon]) -> Vec<(&str, String, Vec<String>)> {
    let mut found = Vec::new();
    for addon in addons {
        for object in &addon.objects {
            if let Some(containers) = object.pointer("/spec/template/spec/containers") {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let containers = containers.as_array().unwrap().iter();
                let containers = containers.map(|one| text(&one["name"])).collect();
                found.push((
                    addon.name.as_str(),
                    text(&object["metadata"]["name"]),
                    containers,
                ));
            }
        }
    }
    found
}

fn workload<'a>(addons: &'a [Addon], name: &str) -> &'a Value {
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    let mut workloads = objects.filter(|object| object.pointer("/spec/template").is_some());
    workloads
        .find(|object| object["metadata"]["name"] == name)
        .unwrap()
}

/// Every container of every workload takes values, and nothing else of the cluster changes with them.
#[test]
fn values_change_the_pods_that_they_name_and_nothing_else() {
    let plain = make_addons(&with_values(json!([]))).unwrap();
    let all = workloads(&plain);
    assert!(all.len() > 12, "{all:?}");
    for (addon, name, containers) in all {
        for (position, container) in containers.iter().enumerate() {
            let values = json!([{
                "addon": addon,
                "workload": name,
                "container": container,
                "resources": {"requests": {"cpu": "77m"}, "limits": {"memory": "777Mi"}},
                "nodeSelector": {"disk": "fast"},
                "tolerations": [{"key": "mine", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {}},
                "priorityClassName": "mine",
                "args": ["--mine"],
            }]);
            let changed = make_addons(&with_values(values)).unwrap();
            let mut wanted = plain.clone();
            let objects = wanted.iter_mut().flat_map(|addon| &mut addon.objects);
            let pods = objects
                .filter(|object| object["metadata"]["name"] == name.as_str())
                .find_map(|object| object.pointer_mut("/spec/template/spec"))
                .unwrap();
            pods["nodeSelector"] = json!({"disk": "fast"});
            pods["affinity"] = json!({"nodeAffinity": {}});
            pods["priorityClassName"] = json!("mine");
            push(
                &mut pods["tolerations"],
                json!({"key": "mine", "operator": "Exists"}),
            );
            let own = &mut pods["containers"][position];
            own["resources"]["requests"]["cpu"] = json!("77m");
            own["resources"]["limits"]["memory"] = json!("777Mi");
            push(&mut own["args"], json!("--mine"));
            for (wanted, changed) in wanted.iter().zip(&changed) {
                assert_eq!(
                    wanted.objects, changed.objects,
                    "{addon} {name} {container}"
                );
            }
        }
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        _ => *list = json!([item]),
    }
}

#[test]
fn the_only_workload_and_the_first_container_need_no_name() {
    let values =
        json!([{"addon": "metrics-server.addons.k8s.io", "replicas": 3, "args": ["--v=2"]}]);
    let addons = make_addons(&with_values(values)).unwrap();
    let server = workload(&addons, "metrics-server");
    assert_eq!(server["spec"]["replicas"], 3);
    let args = &server["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args.as_array().unwrap().last().unwrap(), "--v=2");
}

fn errors_of(values: &Value) -> String {
    let mut fields = all_addons();
    fields["addonValues"] = values.clone();
    let refused = try_expanded_with(|cluster: &mut Cluster, _: &mut Vec<InstanceGroup>| {
        let mut object = serde_json::to_value(&*cluster).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        *cluster = serde_json::from_value(object).unwrap();
    });
    let problems = refused.map(drop).unwrap_err();
    let lines = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.path, problem.message));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn values_that_fit_nothing_are_refused_by_name() {
    for (values, said) in [
        (
            json!({"addon": "nginx", "replicas": 2}),
            "spec.addonValues[0].addon: the cluster has no addon nginx; those with pods are",
        ),
        (
            json!({"addon": "storage-aws.addons.k8s.io", "replicas": 2}),
            "storage-aws.addons.k8s.io has no pods",
        ),
        (
            json!({"addon": "aws-ebs-csi-driver.addons.k8s.io", "replicas": 2}),
            "spec.addonValues[0].workload: aws-ebs-csi-driver.addons.k8s.io has several: ",
        ),
        (
            json!({"addon": "metrics-server.addons.k8s.io", "workload": "other", "replicas": 2}),
            "has no other, but metrics-server",
        ),
        (
            json!({"addon": "metrics-server.addons.k8s.io", "container": "other", "args": ["-v"]}),
            "spec.addonValues[0].container: metrics-server has metrics-server",
        ),
        (
            json!({"addon": "networking.flannel", "replicas": 2}),
            "spec.addonValues[0].replicas: the number of pods of kube-flannel-ds follows the cluster",
        ),
        (
            json!({"addon": "coredns.addons.k8s.io", "workload": "coredns", "replicas": 2}),
            "the number of pods of coredns follows the cluster",
        ),
    ] {
        let errors = errors_of(&json!([values]));
        assert!(errors.contains(said), "{values}:\n{errors}");
    }
}
