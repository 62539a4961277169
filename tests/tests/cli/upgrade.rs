//! The choice of the next Kubernetes version, what keeps a cluster from it, and the preview of a reconcile.

use crate::api_server::ApiServer;
use crate::instances::{Cluster, node_object};
use crate::kctl::KctlOutput;
use crate::scenario::NAME;
use serde_json::{Value, json};

/// A cluster of 1.35 whose instances have joined with that kubelet.
fn joined_cluster(kubelet: &str) -> (Cluster, ApiServer) {
    let cluster = Cluster::create(1, &["--kubernetes-version", "1.35.7"]);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    let mut nodes = vec![
        node_object(&cluster.control_plane, "control-plane", true),
        node_object(&cluster.workers[0], "node", true),
    ];
    for node in &mut nodes {
        node["status"]["nodeInfo"]["kubeletVersion"] = json!(kubelet);
    }
    let mut pods = cluster.control_plane_pods();
    pods.extend(["etcd-main", "etcd-events"].map(|name| {
        json!({
            "metadata": {"name": format!("{name}-{}", cluster.control_plane), "labels": {"k8s-app": name}},
            "spec": {"nodeName": cluster.control_plane, "priorityClassName": "system-cluster-critical", "containers": []},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": name, "ready": true, "image": "", "imageID": "", "restartCount": 0}
            ]},
        })
    }));
    api.set_objects(nodes, pods);
    (cluster, api)
}

fn upgrade(cluster: &Cluster, api: &ApiServer, words: &[&str]) -> KctlOutput {
    let own = ["upgrade", NAME, "--api-server", &api.url];
    cluster.kctl.run(&[&own[..], words].concat())
}

fn stored_version(cluster: &Cluster) -> String {
    let get = ["get", "cluster", NAME, "-o", "json"];
    let text = cluster.kctl.run(&get).expect_success();
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let version = object["spec"]["kubernetesVersion"].as_str();
    version.expect("a version").to_owned()
}

/// Output without the ids of instances.
fn without_ids(mut text: String, cluster: &Cluster) -> String {
    for (id, name) in [
        (&cluster.control_plane, "CONTROL-PLANE"),
        (&cluster.workers[0], "WORKER"),
    ] {
        text = text.replace(id, name);
    }
    text
}

#[test]
fn the_next_version_is_written_once_the_cluster_is_ready_for_it() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let ran = upgrade(&cluster, &api, &[]);
    insta::assert_snapshot!(without_ids(ran.all_output(), &cluster));
    assert_eq!(stored_version(&cluster), "1.35.7");

    upgrade(&cluster, &api, &["--yes"]).expect_success();
    assert_eq!(stored_version(&cluster), "1.36.3");
    let ran = upgrade(&cluster, &api, &[]);
    assert!(ran.err.contains("nothing newer"), "{}", ran.all_output());
    ran.expect_success();

    let words = ["reconcile", NAME, "--api-server", &api.url];
    let ran = cluster.kctl.run(&words);
    let text = ran.all_output();
    for part in [
        "1.36.3",
        "instances of groups whose launch template changes",
        "kctl reconcile demo.example.com --yes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    ran.expect_success();
}

#[test]
fn a_cluster_that_is_not_ready_for_a_version_keeps_its_own() {
    let (cluster, api) = joined_cluster("v1.32.1");
    api.set_metrics("apiserver_requested_deprecated_apis{group=\"flow.example.com\",removed_release=\"1.36\",resource=\"flows\",subresource=\"\",version=\"v1beta1\"} 1\n");
    let ran = upgrade(&cluster, &api, &["--yes"]);
    insta::assert_snapshot!(without_ids(ran.all_output(), &cluster));
    assert_eq!(stored_version(&cluster), "1.35.7");

    let far = upgrade(&cluster, &api, &["--kubernetes-version", "1.34.0"]);
    assert_eq!(far.code, 2, "{}", far.all_output());
    assert!(far.err.contains("going back"), "{}", far.err);

    let json = upgrade(&cluster, &api, &["-o", "json"]).expect_success();
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["ready"], false);
    upgrade(&cluster, &api, &["--yes", "--force"]).expect_success();
    assert_eq!(stored_version(&cluster), "1.36.3");
}
