//! The AWS load balancer controller, as `spec.awsLoadBalancerController` wants it.
use crate::addons::{find_addon, find_kind};
use full::addons::Addon;
use full::{FullSpec, iam};
use node::config::Role;
use serde_json::{Value, json};
use test_support::expanded_with_fields;

const NAME: &str = "aws-load-balancer-controller.addons.k8s.io";

fn full_with(settings: &Value) -> FullSpec {
    let fields = json!({
        "awsLoadBalancerController": settings, "certManager": {"enabled": true},
        "cloudLabels": {"Team": "data"},
    });
    expanded_with_fields(&fields).full
}

fn addon_with(settings: &Value) -> Option<Addon> {
    find_addon(&full_with(settings), NAME)
}

fn pods(addon: &Addon) -> &Value {
    &find_kind(&addon.objects, "Deployment")["spec"]["template"]["spec"]
}

#[test]
fn it_is_installed_if_the_spec_says_so() {
    for settings in [json!({}), json!({"enabled": false})] {
        assert_eq!(addon_with(&settings), None, "{settings}");
    }
    let addon = addon_with(&json!({"enabled": true})).unwrap();
    let kinds = addon.objects.iter().map(|object| &object["kind"]);
    let definitions = kinds.filter(|kind| *kind == "CustomResourceDefinition");
    assert_eq!(definitions.count(), 6);
}

#[test]
fn it_has_the_settings_of_the_spec() {
    let plain = addon_with(&json!({"enabled": true})).unwrap();
    let container = &pods(&plain)["containers"][0];
    assert_eq!(
        container["image"],
        "public.ecr.aws/eks/aws-load-balancer-controller:v3.3.0"
    );
    assert_eq!(
        container["args"],
        json!([
            "--cluster-name=a.example.com",
            "--ingress-class=alb",
            "--aws-region=eu-west-1",
            "--metrics-bind-addr=:9442",
            "--enable-waf=false",
            "--enable-wafv2=false",
            "--enable-shield=false",
            "--default-tags=KubernetesCluster=a.example.com,Team=data",
        ])
    );
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"cpu": "200m", "memory": "500Mi"}})
    );
    let set = addon_with(&json!({
        "enabled": true, "version": "v3.2.1", "enableWAF": true, "enableWAFv2": true, "enableShield": true,
        "cpuRequest": "1m", "cpuLimit": "2m", "memoryRequest": "3Mi", "memoryLimit": "4Mi",
    }));
    let set = set.unwrap();
    let container = &pods(&set)["containers"][0];
    assert_eq!(
        container["image"],
        "public.ecr.aws/eks/aws-load-balancer-controller:v3.2.1"
    );
    let arguments = container["args"].as_array().unwrap();
    for service in ["waf", "wafv2", "shield"] {
        assert!(arguments.contains(&json!(format!("--enable-{service}=true"))));
    }
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "1m", "memory": "3Mi"}, "limits": {"cpu": "2m", "memory": "4Mi"}})
    );
}

/// Pods reach the role of an instance only on its network, where two of them cannot have one port.
#[test]
fn it_runs_where_the_permissions_are() {
    let addon = addon_with(&json!({"enabled": true})).unwrap();
    assert_eq!(pods(&addon)["hostNetwork"], true);
    let places =
        &pods(&addon)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let place = &places["nodeSelectorTerms"][0]["matchExpressions"][0]["key"];
    assert_eq!(place, "node-role.kubernetes.io/control-plane");
    let deployment = find_kind(&addon.objects, "Deployment");
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"],
        0
    );
}

#[test]
fn its_permissions_are_those_of_what_is_on() {
    let policy = |settings: Value| {
        let full = full_with(&settings);
        iam::role_policy(&full, Role::ControlPlane)
            .unwrap()
            .to_string()
    };
    let actions = [
        "elasticloadbalancing:ModifyRule",
        "waf-regional:AssociateWebACL",
        "wafv2:AssociateWebACL",
        "shield:CreateProtection",
    ];
    for (settings, allowed) in [
        (json!({}), [false, false, false, false]),
        (json!({"enabled": true}), [true, false, false, false]),
        (
            json!({"enabled": true, "enableWAF": true}),
            [true, true, false, false],
        ),
        (
            json!({"enabled": true, "enableWAFv2": true}),
            [true, false, true, false],
        ),
        (
            json!({"enabled": true, "enableShield": true}),
            [true, false, false, true],
        ),
        (
            json!({"enabled": false, "enableShield": true}),
            [false, false, false, false],
        ),
    ] {
        let policy = policy(settings.clone());
        assert_eq!(
            actions.map(|action| policy.contains(action)),
            allowed,
            "{settings}"
        );
    }
}
