//! The choice of the next Kubernetes version, what keeps a cluster from it, the way back, and the preview of a reconcile.

use crate::api_server::ApiServer;
use crate::instances::{Cluster, node_object};
use crate::kctl::KctlOutput;
use crate::scenario::NAME;
use serde_json::{Value, json};
use spec::catalog::{end_of_life, recommended_patch};
use spec::validate::versions::NEWEST_MINOR;

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

/// The version in the spec, and the one before an upgrade that can be taken back; empty without one.
fn stored_versions(cluster: &Cluster) -> [String; 2] {
    let get = ["get", "cluster", NAME, "-o", "json"];
    let text = cluster.kctl.run(&get).expect_success();
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let spec = &object["spec"];
    let versions = [
        &spec["kubernetesVersion"],
        &spec["kubernetesUpgrade"]["from"],
    ];
    versions.map(|version| version.as_str().unwrap_or_default().to_owned())
}

fn update(cluster: &Cluster) {
    let update = ["update", NAME, "--yes"];
    cluster.kctl.run(&update).expect_success();
}

/// The NodeConfigs of new control planes and of new workers.
fn node_configs(cluster: &Cluster) -> [String; 2] {
    let groups = [
        "control-plane/control-plane-eu-west-1a",
        "node/nodes-eu-west-1a",
    ];
    groups.map(|group| cluster.stored_text(&format!("igconfig/{group}/nodeupconfig.yaml")))
}

/// The command changed nothing, and said all of this.
fn assert_refused(ran: &KctlOutput, words: &[&str]) {
    assert_eq!(ran.code, 4, "{}", ran.all_output());
    for part in words {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
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
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);

    let ran = upgrade(&cluster, &api, &["--yes"]);
    let why = "reports a member of an etcd cluster";
    assert_refused(&ran, &[why, "nothing was changed; --no-backup goes on"]);
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);

    let at_once = ["--no-emulation", "--no-backup", "--yes"];
    upgrade(&cluster, &api, &at_once).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.36.3", ""]);
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
fn behind_the_newest_version_there_is_nothing() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let newest = recommended_patch(NEWEST_MINOR).expect("it");
    let set = format!("spec.kubernetesVersion={newest}");
    let edit = ["edit", "cluster", NAME, "--set", &set];
    cluster.kctl.run(&edit).expect_success();
    let ran = upgrade(&cluster, &api, &[]);
    assert!(ran.err.contains("nothing newer"), "{}", ran.all_output());
    ran.expect_success();
    let json = upgrade(&cluster, &api, &["-o", "json"]).expect_success();
    let document: Value = serde_json::from_str(&json).expect("JSON");
    let end = end_of_life(NEWEST_MINOR).expect("a day").to_string();
    assert_eq!(document["currentEndOfLife"], json!(end));
    assert_eq!(document["target"], Value::Null);
}

/// 1.34 ended on 2026-10-27; every later day is another test of the same.
#[test]
fn validate_says_that_a_minor_has_ended() {
    let cluster = Cluster::create(1, &["--kubernetes-version", "1.34.10"]);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let validate = ["validate", NAME, "--api-server", &api.url];
    let said = "Kubernetes 1.34 ended on 2026-10-27";
    let ran = cluster.kctl.run(&validate);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert_eq!(ran.err.matches(said).count(), 1, "{}", ran.err);
    let json = cluster
        .kctl
        .run(&[&validate[..], &["-o", "json"]].concat())
        .expect_success();
    let document: Value = serde_json::from_str(&json).expect("JSON");
    let warnings = document["warnings"].as_array().expect("a list");
    let of_kubernetes = |one: &&Value| one["topic"] == "kubernetes";
    let found: Vec<&Value> = warnings.iter().filter(of_kubernetes).collect();
    assert_eq!(found.len(), 1, "{warnings:?}");
    let message = found[0]["message"].as_str().expect("text");
    assert!(message.contains(said), "{message}");
}

#[test]
fn a_cluster_that_is_not_ready_for_a_version_keeps_its_own() {
    let (cluster, api) = joined_cluster("v1.32.1");
    api.set_metrics("apiserver_requested_deprecated_apis{group=\"flow.example.com\",removed_release=\"1.36\",resource=\"flows\",subresource=\"\",version=\"v1beta1\"} 1\n");
    let ran = upgrade(&cluster, &api, &["--yes"]);
    insta::assert_snapshot!(without_ids(ran.all_output(), &cluster));
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);

    let far = upgrade(&cluster, &api, &["--kubernetes-version", "1.34.0"]);
    assert_eq!(far.code, 2, "{}", far.all_output());
    assert!(far.err.contains("going back"), "{}", far.err);

    let json = upgrade(&cluster, &api, &["-o", "json"]).expect_success();
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["ready"], false);
    // A patch is served at once, and asks for no snapshot.
    let patch = ["--kubernetes-version", "1.35.8", "--yes", "--force"];
    upgrade(&cluster, &api, &patch).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.35.8", ""]);
    upgrade(&cluster, &api, &["--yes", "--force", "--no-backup"]).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.36.3", "1.35.8"]);
}

/// No option stores such a spec, so no snapshot is asked for either.
#[test]
fn what_the_next_version_refuses_is_said_before_anything_is_done() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let edit = |words: [&str; 2]| {
        let own = ["edit", "cluster", NAME];
        cluster
            .kctl
            .run(&[&own[..], &words[..]].concat())
            .expect_success();
    };
    edit([
        "--set",
        "spec.kubeAPIServer.featureGates.MemoryManager=true",
    ]);
    let named = "spec.kubeAPIServer.runtimeConfig[\"resource.k8s.io/v1alpha3\"]=true";
    edit(["--set", named]);
    let tries: [&[&str]; 2] = [&[], &["--yes", "--force"]];
    for words in tries {
        let ran = upgrade(&cluster, &api, words);
        assert_eq!(ran.code, 2, "{}", ran.all_output());
        let said = "Kubernetes 1.36 has no feature gate MemoryManager any more";
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);

    edit(["--unset", "spec.kubeAPIServer.featureGates"]);
    let ran = upgrade(&cluster, &api, &[]);
    let said = "names resource.k8s.io/v1alpha3: kctl does not know whether 1.36.3 still has it";
    assert!(ran.out.contains(said), "{}", ran.out);
    ran.expect_success();
}

#[test]
fn an_upgrade_to_another_minor_is_taken_back_without_a_trace() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let before = node_configs(&cluster);
    upgrade(&cluster, &api, &["--yes", "--no-backup"]).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.36.3", "1.35.7"]);
    update(&cluster);
    let [control_plane, workers] = node_configs(&cluster);
    for part in [
        "kubernetesVersion: 1.35.7",
        "kube-apiserver:v1.36.3",
        "kube-controller-manager:v1.36.3",
        "kube-scheduler:v1.36.3",
    ] {
        assert!(control_plane.contains(part), "{part}: {control_plane}");
    }
    let emulated = control_plane.matches("--emulated-version=1.35").count();
    assert_eq!(emulated, 3, "{control_plane}");
    assert_eq!(workers, before[1]);

    let ran = upgrade(&cluster, &api, &["--yes"]);
    let said = "the upgrade of demo.example.com from 1.35.7 to 1.36.3 is not finalized";
    assert_refused(&ran, &[said, "--finalize", "--rollback"]);
    let ran = cluster.kctl.run(&["update", NAME]);
    let said = "control planes get Kubernetes 1.36.3 and emulate 1.35, and all else keeps 1.35.7";
    assert!(ran.err.contains(said), "{}", ran.err);

    let ran = upgrade(&cluster, &api, &["--rollback"]);
    insta::assert_snapshot!(ran.all_output());
    assert_eq!(stored_versions(&cluster), ["1.36.3", "1.35.7"]);
    upgrade(&cluster, &api, &["--rollback", "--yes"]).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);
    update(&cluster);
    assert_eq!(node_configs(&cluster), before);
}

/// An operator who forgot it reads of it wherever the cluster is looked at.
#[test]
fn an_upgrade_that_has_not_ended_is_shown_with_the_next_step_and_is_no_problem() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let validate = ["validate", NAME, "--api-server", &api.url, "-o", "json"];
    let code = cluster.kctl.run(&validate).code;
    let shown = || -> Value {
        let ran = cluster.kctl.run(&validate);
        assert_eq!(ran.code, code, "{}", ran.all_output());
        serde_json::from_str(&ran.out).expect("JSON")
    };
    let reconcile = json!(["kctl reconcile demo.example.com --yes"]);
    assert_eq!(shown().get("upgrade"), None);

    upgrade(&cluster, &api, &["--yes", "--no-backup"]).expect_success();
    assert_eq!(shown()["upgrade"]["next"], reconcile);
    update(&cluster);
    let document = shown();
    let open = &document["upgrade"];
    let versions = [&open["from"], &open["to"], &open["emulates"]];
    assert_eq!(versions, ["1.35.7", "1.36.3", "1.35"]);
    let ways =
        ["--finalize", "--rollback"].map(|way| format!("kctl upgrade demo.example.com {way}"));
    assert_eq!(open["next"], json!(ways));
    let warnings = document["warnings"].to_string();
    let ran = cluster.kctl.run(&["get", "clusters", "-o", "wide"]);
    for way in &ways {
        assert!(warnings.contains(way.as_str()), "{way}: {warnings}");
        assert!(ran.err.contains(way.as_str()), "{way}: {}", ran.err);
    }
    assert!(ran.out.contains("EMULATES"), "{}", ran.out);

    upgrade(&cluster, &api, &["--rollback", "--yes"]).expect_success();
    assert_eq!(shown()["upgrade"]["next"], reconcile);
    update(&cluster);
    assert_eq!(shown().get("upgrade"), None);
    let ran = cluster.kctl.run(&["get", "clusters"]);
    assert!(!ran.err.contains("emulate"), "{}", ran.err);
}

#[test]
fn an_upgrade_that_is_finalized_in_the_spec_alone_is_taken_back() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let before = node_configs(&cluster);
    upgrade(&cluster, &api, &["--yes", "--no-backup"]).expect_success();
    update(&cluster);
    let finalize = ["--finalize", "--yes", "--no-backup", "--force"];
    upgrade(&cluster, &api, &finalize).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.36.3", ""]);
    upgrade(&cluster, &api, &["--rollback", "--yes"]).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.35.7", ""]);
    let ran = upgrade(&cluster, &api, &["--rollback", "--yes"]);
    assert_refused(&ran, &["has no upgrade that can be taken back"]);
    update(&cluster);
    assert_eq!(node_configs(&cluster), before);
}

/// Else `--rollback` would take back what instances are launched with already.
#[test]
fn an_update_that_ends_early_has_written_what_it_begins_before_it_changes_anything() {
    let (cluster, api) = joined_cluster("v1.35.7");
    upgrade(&cluster, &api, &["--yes", "--no-backup"]).expect_success();
    update(&cluster);
    let before = node_configs(&cluster);
    let finalize = ["--finalize", "--yes", "--no-backup", "--force"];
    upgrade(&cluster, &api, &finalize).expect_success();
    let fails_at = |fault: Value| {
        cluster.simulator.set_faults(&json!([fault]));
        let ran = cluster.kctl.run(&["update", NAME, "--yes"]);
        cluster.simulator.set_faults(&json!([]));
        assert_eq!(ran.code, 1, "{}", ran.all_output());
    };
    fails_at(
        json!({"service": "s3", "operation": "PutObject", "path": "*/cluster-completed.spec", "times": 99,
        "code": "InvalidRequest", "message": "no", "status": 400}),
    );
    assert_eq!(node_configs(&cluster), before);

    fails_at(
        json!({"service": "ec2", "operation": "CreateLaunchTemplateVersion", "times": 99,
        "code": "VersionLimitExceeded", "message": "no", "status": 400}),
    );
    let ran = upgrade(&cluster, &api, &["--rollback", "--yes"]);
    assert_refused(&ran, &["has no upgrade that can be taken back"]);
    assert_eq!(stored_versions(&cluster), ["1.36.3", ""]);
}

#[test]
fn a_finalized_upgrade_reaches_everything_and_is_not_taken_back() {
    let (cluster, api) = joined_cluster("v1.35.7");
    let before = node_configs(&cluster);
    let ran = upgrade(&cluster, &api, &["--finalize", "--yes"]);
    assert_refused(&ran, &["has no upgrade to finalize"]);
    upgrade(&cluster, &api, &["--yes", "--no-backup"]).expect_success();
    update(&cluster);

    let ran = upgrade(&cluster, &api, &["--finalize"]);
    insta::assert_snapshot!(without_ids(ran.all_output(), &cluster));
    let ran = upgrade(&cluster, &api, &["--finalize", "--yes", "--force"]);
    assert_refused(&ran, &["--no-backup goes on without a snapshot"]);
    // The emulated API server still serves what the new minor does not.
    api.set_metrics("apiserver_requested_deprecated_apis{group=\"flow.example.com\",removed_release=\"1.36\",resource=\"flows\",subresource=\"\",version=\"v1beta1\"} 1\n");
    let finalize = ["--finalize", "--yes", "--no-backup", "--force"];
    let ran = upgrade(&cluster, &api, &finalize[..3]);
    assert_refused(&ran, &["is not ready for 1.36.3: nothing was changed"]);
    api.set_metrics("");
    // Nobody has replaced the control plane.
    let ran = upgrade(&cluster, &api, &finalize[..3]);
    assert_refused(&ran, &["is not ready for 1.36.3"]);
    assert!(
        ran.out.contains("is not known to be up to date"),
        "{}",
        ran.out
    );
    assert_eq!(stored_versions(&cluster), ["1.36.3", "1.35.7"]);

    upgrade(&cluster, &api, &finalize).expect_success();
    assert_eq!(stored_versions(&cluster), ["1.36.3", ""]);
    update(&cluster);
    let [control_plane, workers] = node_configs(&cluster);
    assert!(
        control_plane.contains("kubernetesVersion: 1.36.3"),
        "{control_plane}"
    );
    assert!(
        !control_plane.contains("emulated-version"),
        "{control_plane}"
    );
    // No control plane is replaced yet.
    assert_eq!(workers, before[1]);
    let ran = upgrade(&cluster, &api, &["--rollback", "--yes"]);
    assert_refused(&ran, &["has no upgrade that can be taken back"]);
    assert_eq!(stored_versions(&cluster), ["1.36.3", ""]);
}
