//! The preview of a rolling update, and what keeps one from beginning. The lab shows whole rolling updates.

use crate::api_server::ApiServer;
use crate::machines::{Cluster, node_object};
use crate::scenario::NAME;
use serde_json::{Value, json};

/// A pod of a ReplicaSet on a node, with a label.
fn web_pod(node: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true}]},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running"},
    })
}

/// A budget that keeps that many of two pods.
fn web_budget(kept: u32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": kept},
        "status": {"currentHealthy": 2, "desiredHealthy": kept, "disruptionsAllowed": 2 - kept, "expectedPods": 2},
    })
}

/// A cluster whose instances have joined, with a pod on each worker.
fn joined_cluster() -> (Cluster, ApiServer) {
    let cluster = Cluster::new_cluster(2);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    let mut nodes = vec![node_object(&cluster.control_plane, "control-plane", true)];
    nodes.extend(
        cluster
            .workers
            .iter()
            .map(|id| node_object(id, "node", true)),
    );
    let mut pods = cluster.control_plane_pods();
    pods.extend(
        cluster
            .workers
            .iter()
            .zip(["web-1", "web-2"])
            .map(|(id, name)| web_pod(id, name)),
    );
    api.set_objects(nodes, pods);
    (cluster, api)
}

#[test]
fn the_preview_names_the_instances_the_reason_and_what_would_stop_it() {
    let (cluster, api) = joined_cluster();
    let roll = |words: &[&str]| {
        let own = ["rolling-update", NAME, "--api-server", &api.url];
        cluster.kctl.run(&[&own[..], words].concat())
    };
    let ran = roll(&[]);
    assert!(ran.err.contains("is up to date"), "{}", ran.all_output());
    ran.expect_success();

    let set = ["edit", "cluster", NAME, "--set", "spec.kubelet.maxPods=77"];
    cluster.kctl.run(&set).expect_success();
    cluster
        .kctl
        .run(&["update", NAME, "--yes"])
        .expect_success();
    let ran = roll(&["-o", "json"]);
    let preview: Value = serde_json::from_str(&ran.expect_success()).expect("JSON");
    let instances = preview["instances"].as_array().expect("instances");
    let mut found: Vec<&str> = instances
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    let mut all: Vec<&str> = cluster.workers.iter().map(String::as_str).collect();
    all.push(&cluster.control_plane);
    found.sort_unstable();
    all.sort_unstable();
    assert_eq!(found, all);
    let reason = instances[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("its group launches version 2"), "{reason}");

    let ran = roll(&["--instance-group-roles", "node"]);
    let table = ran.out.clone();
    assert!(!table.contains(&cluster.control_plane), "{table}");
    assert!(!ran.err.contains("only control plane"), "{}", ran.err);
    assert!(
        ran.err.contains("replaces these 2 instances"),
        "{}",
        ran.err
    );
    let ran = roll(&[]);
    assert!(
        ran.err.contains("the only control plane, is replaced"),
        "{}",
        ran.err
    );

    let ran = roll(&["--instance-group", "nodes-eu-west-1b"]);
    assert_eq!(ran.code, 2, "{}", ran.all_output());
    assert!(
        ran.err.contains("there is no instance group"),
        "{}",
        ran.err
    );
}

#[test]
fn a_budget_that_can_never_be_met_stops_it_before_the_first_change() {
    let (cluster, api) = joined_cluster();
    api.set_budgets(vec![web_budget(2)]);
    let own = ["rolling-update", NAME, "--api-server", &api.url, "--force"];
    let ran = cluster.kctl.run(&own);
    let never = "can never be evicted: its budget default/web allows no disruption";
    assert_eq!(ran.err.matches(never).count(), 2, "{}", ran.err);
    let ran = cluster.kctl.run(&[&own[..], &["--yes"]].concat());
    assert_eq!(ran.code, 4, "{}", ran.all_output());
    assert!(ran.err.contains("nothing was changed"), "{}", ran.err);

    api.set_failure(503);
    let ran = cluster.kctl.run(&[&own[..], &["--yes"]].concat());
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    assert!(ran.err.contains("--cloudonly"), "{}", ran.err);
}
