//! The node problem detector, as `spec.nodeProblemDetector` wants it.
use crate::addons::{find_addon, find_kind};
use serde_json::{Value, json};
use test_support::expanded_with_fields;

fn objects_with(settings: &Value) -> Option<Vec<Value>> {
    let expanded = expanded_with_fields(&json!({ "nodeProblemDetector": settings }));
    find_addon(&expanded.full, "node-problem-detector.addons.k8s.io").map(|addon| addon.objects)
}

fn container_with(settings: &Value) -> Value {
    let objects = objects_with(settings).unwrap();
    find_kind(&objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn it_is_installed_if_the_spec_says_so_with_the_settings_of_the_spec() {
    assert_eq!(objects_with(&json!({})), None);
    assert_eq!(objects_with(&json!({"enabled": false})), None);
    let plain = container_with(&json!({"enabled": true}));
    let resources = json!({
        "limits": {"cpu": "200m", "memory": "100Mi"},
        "requests": {"cpu": "20m", "memory": "100Mi"},
    });
    assert_eq!(plain["resources"], resources);
    let own = container_with(&json!({
        "enabled": true, "image": "example.com/detector:v1", "cpuRequest": "30m", "cpuLimit": "40m",
        "memoryRequest": "50Mi", "memoryLimit": "60Mi",
    }));
    assert_eq!(own["image"], "example.com/detector:v1");
    let resources = json!({
        "limits": {"cpu": "40m", "memory": "60Mi"},
        "requests": {"cpu": "30m", "memory": "50Mi"},
    });
    assert_eq!(own["resources"], resources);
}

/// Its role lets it change the status of every Node, and its token is on each worker.
#[test]
fn a_policy_limits_its_account_to_its_own_node() {
    let objects = objects_with(&json!({"enabled": true})).unwrap();
    let of = |kind: &str| {
        objects
            .iter()
            .find(|object| object["kind"] == kind)
            .unwrap()
    };
    let policy = of("ValidatingAdmissionPolicy");
    let account = "system:serviceaccount:kube-system:node-problem-detector";
    assert!(
        policy["spec"]["matchConditions"]
            .to_string()
            .contains(account)
    );
    let bound = of("ValidatingAdmissionPolicyBinding");
    assert_eq!(bound["spec"]["policyName"], policy["metadata"]["name"]);
    assert_eq!(bound["spec"]["validationActions"], json!(["Deny"]));
    // Before the rights that it limits.
    let place = |kind: &str| objects.iter().position(|object| object["kind"] == kind);
    assert!(place("ValidatingAdmissionPolicyBinding") < place("ClusterRoleBinding"));
}
