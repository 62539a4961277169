//! `kctl toolbox cis`: what the API shows decides, and the exit code says whether a control fails.

use crate::api_server::ApiServer;
use crate::instances::{Cluster, node_object};
use crate::kctl::KctlOutput;
use crate::scenario::NAME;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What the API says of a cluster of one control plane, whose API server has this argument.
fn show_cluster(api: &ApiServer, node: &str, argument: &str) {
    let pod = json!({
        "metadata": {
            "name": format!("kube-apiserver-{node}"),
            "namespace": "kube-system",
            "labels": {"k8s-app": "kube-apiserver"},
            "annotations": {"kubernetes.io/config.mirror": "1"},
        },
        "spec": {"nodeName": node, "containers": [{"name": "kube-apiserver", "args": [argument]}]},
    });
    api.set_objects(vec![node_object(node, "control-plane", true)], vec![pod]);
    let list = |kind: &str, items: Value| json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items});
    let namespaces =
        json!([{"metadata": {"name": "default"}}, {"metadata": {"name": "kube-system"}}]);
    api.put_answer("/api/v1/namespaces", list("NamespaceList", namespaces));
    api.put_answer(
        "/apis/networking.k8s.io/v1/networkpolicies",
        list("NetworkPolicyList", json!([])),
    );
    // It takes any pod there.
    api.put_answer("/api/v1/namespaces/default/pods", json!({"kind": "Pod"}));
    let proxy = format!("/api/v1/nodes/{node}/proxy");
    let kubelet =
        json!({"authentication": {"anonymous": {"enabled": false}}, "rotateCertificates": true});
    api.put_answer(
        &format!("{proxy}/configz"),
        json!({"kubeletconfig": kubelet}),
    );
    let now = OffsetDateTime::now_utc().format(&Rfc3339).expect("a time");
    let files = format!(
        "time {now}\nfile kubelet-unit 600 root:root /k\nfile etcd-data 700 root:root /d\nend\n"
    );
    api.put_answer(&format!("{proxy}/logs/kctl-node-files.txt"), json!(files));
}

fn result_of(document: &Value, number: &str) -> (String, String) {
    let controls = document["controls"].as_array().expect("controls");
    let row = controls.iter().find(|row| row["number"] == number);
    let row = row.expect("a row");
    let text = |field: &str| row[field].as_str().expect("text").to_owned();
    (text("result"), text("why"))
}

#[test]
fn a_control_passes_by_what_runs_or_is_not_known_and_failing_ones_are_named() {
    let cluster = Cluster::new_cluster(1);
    let api = cluster.start_api();
    let node = cluster.control_plane.as_str();
    let run = |more: &[&str]| -> KctlOutput {
        let command = ["toolbox", "cis", NAME, "--api-server", &api.url];
        cluster.kctl.run(&[&command[..], more].concat())
    };

    show_cluster(&api, node, "--profiling=true");
    let ran = run(&["-o", "json"]);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["controls"].as_array().map(Vec::len), Some(131));
    let at_node = |text: &str| format!("{text} ({node})");
    for (number, result, why) in [
        ("1.2.15", "fail", at_node("--profiling=true")),
        ("1.2.1", "not_known", at_node("--anonymous-auth is not set")),
        (
            "1.3.2",
            "not_known",
            at_node("kube-controller-manager is not among its static pods"),
        ),
        ("1.1.12", "fail", at_node("/d is of root:root")),
        ("4.1.1", "pass", at_node("/k is 600")),
        (
            "4.2.1",
            "pass",
            at_node("authentication.anonymous.enabled=false"),
        ),
        ("5.2.2", "not_known", "takes every pod (default)".to_owned()),
        (
            "5.3.2",
            "not_known",
            "has no NetworkPolicy (default)".to_owned(),
        ),
    ] {
        assert_eq!(
            result_of(&document, number),
            (result.to_owned(), why),
            "{number}"
        );
    }
    // The test's API has no roles.
    let (result, why) = result_of(&document, "5.1.4");
    assert!(
        result == "not_known" && why.starts_with("clusterroles: "),
        "{why}"
    );
    assert!(ran.err.contains("1.1.12, "), "{}", ran.err);

    let failing = document["controls"].as_array().expect("controls").iter();
    let failing = failing.filter(|row| row["result"] == "fail");
    let accepted: Vec<&str> = failing
        .flat_map(|row| ["--accept", row["number"].as_str().expect("a number")])
        .collect();
    let ran = run(&accepted);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(ran.out.contains("fails, accepted"), "{}", ran.out);

    let wrong = run(&["--accept", "9.9.9"]);
    assert_eq!(wrong.code, 2, "{}", wrong.all_output());
    assert!(wrong.err.contains("no control \"9.9.9\""), "{}", wrong.err);
}
