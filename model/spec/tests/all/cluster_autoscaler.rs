//! The cluster autoscaler, as `spec.clusterAutoscaler` and instance groups want it.
use crate::addons::{find_addon, find_kind};
use full::addons::Addon;
use full::iam::role_policy;
use node::config::Role;
use serde_json::{Value, json};
use spec::expand::Expanded;
use test_support::expanded_with;

const NAME: &str = "cluster-autoscaler.addons.k8s.io";

/// With these settings, and fields of a group of nodes.
fn expanded(settings: &Value, fields: &Value) -> Expanded {
    expanded_with(|cluster, groups| {
        cluster.spec.cluster_autoscaler = serde_json::from_value(settings.clone()).unwrap();
        let group = groups.iter_mut();
        let mut group = group.filter(|group| group.name() == "nodes-eu-west-1a");
        let group = group.next().unwrap();
        let mut spec = serde_json::to_value(&group.spec).unwrap();
        spec.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        group.spec = serde_json::from_value(spec).unwrap();
    })
}

fn autoscaler(settings: &Value, fields: &Value) -> Option<Addon> {
    find_addon(&expanded(settings, fields).full, NAME)
}

fn container(addon: &Addon) -> &Value {
    &find_kind(&addon.objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn has_flag(addon: &Addon, flag: &str) -> bool {
    let command = container(addon)["command"].as_array().unwrap();
    command.iter().any(|one| one.as_str() == Some(flag))
}

#[test]
fn it_is_installed_and_may_scale_if_the_spec_says_so() {
    for (settings, on) in [
        (json!(null), false),
        (json!({"enabled": false}), false),
        (json!({"enabled": true}), true),
    ] {
        let full = expanded(&settings, &json!({})).full;
        assert_eq!(find_addon(&full, NAME).is_some(), on);
        let policy = role_policy(&full, Role::ControlPlane).unwrap().to_string();
        assert_eq!(policy.contains("autoscaling:SetDesiredCapacity"), on);
        let nodes = role_policy(&full, Role::Node).map(|policy| policy.to_string());
        assert!(!nodes.unwrap_or_default().contains("SetDesiredCapacity"));
    }
}

#[test]
fn it_scales_groups_of_nodes_unless_they_decline() {
    let on = json!({"enabled": true});
    let flag = "--nodes=3:9:nodes-eu-west-1a.a.example.com";
    for (autoscale, scaled) in [
        (json!(null), true),
        (json!(true), true),
        (json!(false), false),
    ] {
        let fields = json!({"minSize": 3, "maxSize": 9, "autoscale": autoscale});
        let addon = autoscaler(&on, &fields).unwrap();
        assert_eq!(has_flag(&addon, flag), scaled, "{autoscale}");
        let command = container(&addon)["command"].to_string();
        assert!(!command.contains("masters") && !command.contains("bastion"));
    }
}

#[test]
fn settings_become_flags() {
    let addon = autoscaler(
        &json!({
            "enabled": true, "expander": "least-waste", "balanceSimilarNodeGroups": true,
            "emitPerNodegroupMetrics": true, "awsUseStaticInstanceList": true, "ignoreDaemonSetsUtilization": true,
            "scaleDownUtilizationThreshold": "0.7", "skipNodesWithCustomControllerPods": false,
            "skipNodesWithSystemPods": false, "skipNodesWithLocalStorage": false, "newPodScaleUpDelay": "7s",
            "scaleDownDelayAfterAdd": "7m", "scaleDownUnneededTime": "8m", "scaleDownUnreadyTime": "9m",
            "cordonNodeBeforeTerminating": false, "maxNodeProvisionTime": "6m", "cpuRequest": "7m",
            "memoryRequest": "8Mi", "image": "mirror.example.com/autoscaler:v1", "podAnnotations": {"a": "b"},
        }),
        &json!({}),
    );
    let addon = addon.unwrap();
    for flag in [
        "--expander=least-waste",
        "--balance-similar-node-groups=true",
        "--emit-per-nodegroup-metrics=true",
        "--aws-use-static-instance-list=true",
        "--ignore-daemonsets-utilization=true",
        "--scale-down-utilization-threshold=0.7",
        "--skip-nodes-with-custom-controller-pods=false",
        "--skip-nodes-with-system-pods=false",
        "--skip-nodes-with-local-storage=false",
        "--new-pod-scale-up-delay=7s",
        "--scale-down-delay-after-add=7m",
        "--scale-down-unneeded-time=8m",
        "--scale-down-unready-time=9m",
        "--cordon-node-before-terminating=false",
        "--max-node-provision-time=6m",
    ] {
        assert!(has_flag(&addon, flag), "{flag}");
    }
    let container = container(&addon);
    assert_eq!(container["image"], "mirror.example.com/autoscaler:v1");
    let requests = json!({"cpu": "7m", "memory": "8Mi"});
    assert_eq!(container["resources"]["requests"], requests);
    let pods = &find_kind(&addon.objects, "Deployment")["spec"]["template"];
    let annotations =
        json!({"a": "b", "prometheus.io/port": "8085", "prometheus.io/scrape": "true"});
    assert_eq!(pods["metadata"]["annotations"], annotations);
}

#[test]
fn priorities_are_those_of_groups_or_of_the_spec() {
    let priorities = |more: Value, fields: Value| {
        let mut settings = json!({"enabled": true, "expander": "priority"});
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let addon = autoscaler(&settings, &fields).unwrap();
        let text = &find_kind(&addon.objects, "ConfigMap")["data"]["priorities"];
        text.as_str().map(str::to_owned)
    };
    let name = r"- ^nodes-eu-west-1a\.a\.example\.com$";
    let of_groups = priorities(json!({}), json!({"autoscalePriority": 50}));
    assert_eq!(of_groups.unwrap().trim_end(), format!("50:\n{name}"));
    let none = priorities(json!({}), json!({}));
    assert_eq!(none.unwrap().trim_end(), format!("0:\n{name}"));
    let declined = priorities(json!({}), json!({"autoscale": false}));
    assert_eq!(declined.unwrap(), "");
    let own =
        json!({"customPriorityExpanderConfig": {"10": [".*"], "50": ["^spot-", "*: x"], "70": []}});
    let own = priorities(own, json!({"autoscalePriority": 50})).unwrap();
    assert_eq!(own.trim_end(), "10:\n- .*\n50:\n- ^spot-\n- '*: x'");
    let mine = json!({"createPriorityExpanderConfig": false});
    assert_eq!(priorities(mine, json!({})), None);
}

#[test]
fn it_reads_config_maps_only_for_priorities() {
    for (expander, wanted) in [("priority", true), ("random", false)] {
        let settings = json!({"enabled": true, "expander": expander});
        let addon = autoscaler(&settings, &json!({})).unwrap();
        let reads = |kind: &str| {
            let rules = find_kind(&addon.objects, kind)["rules"]
                .as_array()
                .unwrap()
                .iter();
            let mut rules = rules.filter(|rule| rule["resources"] == json!(["configmaps"]));
            rules.any(|rule| rule["verbs"] == json!(["list", "watch"]))
        };
        assert_eq!(reads("Role"), wanted);
        assert!(!reads("ClusterRole"));
    }
}
