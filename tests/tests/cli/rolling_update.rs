//! The preview of a rolling update, what keeps one from beginning, and what stops one. The lab shows whole rolling updates.

use crate::api_server::ApiServer;
use crate::instances::{Cluster, node_object};
use crate::kctl::KctlOutput;
use crate::scenario::{NAME, REGION};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

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

/// A budget that keeps both of two pods for now, of which one is not ready.
fn blocking_budget() -> Value {
    let mut budget = web_budget(1);
    budget["status"] = json!({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 2});
    budget
}

/// The words of a rolling update of the workers.
fn roll_words<'a>(api: &'a ApiServer, more: &[&'a str]) -> Vec<&'a str> {
    let own = [
        "rolling-update",
        NAME,
        "--api-server",
        &api.url,
        "--instance-group-roles",
        "node",
        "--force",
        "--yes",
        "--post-drain-delay",
        "0s",
        "--validation-timeout",
        "2s",
    ];
    [&own[..], more].concat()
}

/// The end of a rolling update: its exit code, its error and hints without ids and ages.
fn end_of(ran: &KctlOutput) -> String {
    let from = ran.err.find("error: ").unwrap_or_default();
    let mut text = format!("exit code {}\n{}", ran.code, &ran.err[from..]);
    while let Some(at) = text.find("i-") {
        let id = text[at..]
            .chars()
            .take_while(|letter| *letter == '-' || letter.is_ascii_alphanumeric());
        let end = at + id.count();
        text.replace_range(at..end, "INSTANCE");
    }
    if let Some((before, after)) = text.split_once("launched ") {
        let (_, after) = after.split_once(" ago").expect("an age");
        text = format!("{before}launched AGE ago{after}");
    }
    text
}

/// No Node is cordoned, tainted or marked, but of an instance that is terminated: AWS' cloud controller deletes that Node.
fn assert_nothing_marked(api: &ApiServer) {
    let is_drained = |node: &Value| {
        node["metadata"]["annotations"]
            .to_string()
            .contains("drained")
    };
    for node in api.list_nodes().iter().filter(|node| !is_drained(node)) {
        let spec = &node["spec"];
        assert!(spec.get("unschedulable").is_none(), "{node}");
        let taints = spec["taints"].as_array();
        assert!(taints.is_none_or(Vec::is_empty), "{node}");
        let marks = node["metadata"]["annotations"].as_object();
        assert!(marks.is_none_or(serde_json::Map::is_empty), "{node}");
    }
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

    let changes = instances[0]["changes"].as_array().expect("changes");
    let pods = json!({"field": "kubelet.config.maxPods", "before": null, "after": 77});
    assert_eq!(changes, &[pods], "nothing else changes");

    let ran = roll(&["--instance-group-roles", "node"]);
    let table = ran.out.clone();
    insta::assert_snapshot!("changes", table.split_once("Changes").expect("changes").1);
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

/// A joined cluster whose workers are replaced without others before.
fn cluster_without_surge() -> (Cluster, ApiServer) {
    let (cluster, api) = joined_cluster();
    let (group, set) = ("nodes-eu-west-1a", "spec.rollingUpdate.maxSurge=0");
    let edit = ["edit", "ig", group, "--name", NAME, "--set", set];
    cluster.kctl.run(&edit).expect_success();
    (cluster, api)
}

#[test]
fn pods_that_do_not_leave_in_time_stop_it_and_nothing_stays_marked() {
    let (cluster, api) = cluster_without_surge();
    api.set_budgets(vec![blocking_budget()]);
    let ran = cluster
        .kctl
        .run(&roll_words(&api, &["--drain-timeout", "1s"]));
    insta::assert_snapshot!(end_of(&ran));
    assert_nothing_marked(&api);
}

#[test]
fn a_replacement_that_never_joins_stops_it_and_is_kept() {
    let (cluster, api) = cluster_without_surge();
    let ran = cluster.kctl.run(&roll_words(&api, &[]));
    insta::assert_snapshot!(end_of(&ran));
    assert_nothing_marked(&api);
}

#[test]
fn a_group_that_launches_nothing_stops_it() {
    let (cluster, api) = cluster_without_surge();
    let code = format!(
        "boto('autoscaling').suspend_processes(AutoScalingGroupName='nodes-eu-west-1a.{NAME}', ScalingProcesses=['Launch'])"
    );
    cluster.simulator.run_python(REGION, &code);
    let ran = cluster.kctl.run(&roll_words(&api, &[]));
    insta::assert_snapshot!(end_of(&ran));
    assert_nothing_marked(&api);
}

#[test]
fn an_instance_that_the_operator_does_not_agree_to_is_not_touched() {
    let (cluster, api) = joined_cluster();
    let words = roll_words(&api, &["--interactive"]);
    let ran = cluster.kctl.run(&words);
    assert_eq!(ran.code, 2, "{}", ran.all_output());
    assert!(ran.err.contains("no terminal"), "{}", ran.err);

    let ran = cluster.kctl.run_on_terminal(&words, "no\n");
    assert_eq!(ran.code, 130, "{}", ran.out);
    let asked = ran.out.matches("Replace i-").count();
    assert_eq!(asked, 1, "{}", ran.out);
    assert!(ran.out.contains("was not agreed to"), "{}", ran.out);
    assert_nothing_marked(&api);
    assert!(!ran.out.contains("detached"), "{}", ran.out);
    assert!(!ran.out.contains("terminated"), "{}", ran.out);
}

/// Starts a rolling update whose drain is blocked by a budget, and waits until it has cordoned a Node.
fn start_blocked(cluster: &Cluster, api: &ApiServer, more: &[&str]) -> Child {
    api.set_budgets(vec![blocking_budget()]);
    let words = roll_words(api, more);
    let mut rolls = cluster.kctl.start_command(&words, Stdio::null());
    let is_cordoned = |node: &Value| node["spec"]["unschedulable"] == true;
    for _ in 0..600 {
        if api.list_nodes().iter().any(is_cordoned) {
            return rolls;
        }
        sleep(Duration::from_millis(100));
    }
    let _ = rolls.kill();
    panic!(
        "no Node was cordoned: {}",
        cluster.kctl.wait_for_end(rolls).err
    );
}

#[test]
fn an_api_that_fails_for_too_long_stops_it() {
    let (cluster, api) = cluster_without_surge();
    let rolls = start_blocked(&cluster, &api, &[]);
    api.set_failure(503);
    let ran = cluster.kctl.wait_for_end(rolls);
    insta::assert_snapshot!(end_of(&ran).replace(&api.url, "URL"));
}

#[test]
fn an_update_meanwhile_stops_it_and_nobody_else_replaces_or_deletes() {
    let (cluster, api) = cluster_without_surge();
    let rolls = start_blocked(&cluster, &api, &["--drain-timeout", "10m"]);
    for words in [
        &roll_words(&api, &[])[..],
        &["delete", "cluster", NAME, "--yes"],
    ] {
        let refused = cluster.kctl.run(words);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(
            refused.err.contains("(kctl rolling-update)"),
            "{}",
            refused.err
        );
        assert!(refused.err.contains(" --rolling-update"), "{}", refused.err);
    }
    let set = ["edit", "cluster", NAME, "--set", "spec.kubelet.maxPods=77"];
    cluster.kctl.run(&set).expect_success();
    let update = ["update", NAME, "--yes"];
    cluster.kctl.run(&update).expect_success();
    // What is under way ends first: the pods may leave now.
    api.set_budgets(Vec::new());
    let ran = cluster.kctl.wait_for_end(rolls);
    assert_eq!(ran.code, 4, "{}", ran.err);
    // It sees the update's lock, or what the update wrote.
    let reasons = ["is being changed by tester@", "was updated meanwhile"];
    let told = |reason: &&str| ran.err.contains(&format!("stopped: the cluster {reason}"));
    assert!(reasons.iter().any(told), "{}", ran.err);
}

#[test]
fn an_instance_that_was_detached_goes_with_its_cluster() {
    let (cluster, api) = joined_cluster();
    let ran = cluster.kctl.run(&roll_words(&api, &[]));
    assert!(
        ran.err.contains(": detached from its Auto Scaling group"),
        "{}",
        ran.err
    );
    let states = || {
        cluster.simulator.run_python(
            REGION,
            "print([i['State']['Name'] for r in boto('ec2').describe_instances()['Reservations'] for i in r['Instances']])",
        )
    };
    assert!(states().contains("running"), "{}", states());
    let delete = ["delete", "cluster", NAME];
    let ran = cluster.kctl.run(&delete);
    assert!(
        ran.err.contains("they will be terminated: i-"),
        "{}",
        ran.err
    );
    // AWS may list an instance that it does not know any more.
    cluster.simulator.set_faults(&serde_json::json!([{
        "operation": "TerminateInstances", "code": "InvalidInstanceID.NotFound", "status": 400, "after": true,
    }]));
    let deletes = cluster
        .kctl
        .start_command(&[&delete[..], &["--yes"]].concat(), Stdio::null());
    for _ in 0..600 {
        if !states().contains("running") {
            break;
        }
        sleep(Duration::from_millis(100));
    }
    assert!(!states().contains("running"), "{}", states());
    let mut deletes = deletes;
    let _ = deletes.kill();
    cluster.kctl.wait_for_end(deletes);
}

#[test]
fn one_instance_is_replaced_by_name_and_no_other_is_touched() {
    let (cluster, api) = cluster_without_surge();
    let [chosen, other] = &cluster.workers[..] else {
        panic!("{:?}", cluster.workers);
    };
    let delete = |instance: &str, more: &[&str]| {
        let own = [
            "delete",
            "instance",
            instance,
            "--name",
            NAME,
            "--api-server",
            &api.url,
        ];
        cluster.kctl.run(&[&own[..], more].concat())
    };
    let ran = delete("i-0123", &[]);
    assert_eq!(ran.code, 2, "{}", ran.all_output());
    assert!(ran.err.contains("there is no instance"), "{}", ran.err);

    let json = delete(chosen, &["-o", "json"]).expect_success();
    let preview: Value = serde_json::from_str(&json).expect("JSON");
    let instances = preview["instances"].as_array().expect("instances");
    assert_eq!(instances.len(), 1, "{preview}");
    assert_eq!(instances[0]["id"], json!(chosen));

    let ran = delete(
        chosen,
        &[
            "--yes",
            "--post-drain-delay",
            "0s",
            "--validation-timeout",
            "2s",
        ],
    );
    assert_eq!(ran.code, 1, "{}", ran.all_output());
    let again = format!("kctl delete instance {chosen} --name {NAME} --yes");
    assert!(ran.err.contains(&again), "{}", ran.err);
    for part in ["cordoned", "drained", "is being terminated"] {
        assert!(
            ran.err
                .contains(&format!("{chosen} (nodes-eu-west-1a): {part}")),
            "{}",
            ran.err
        );
    }
    assert!(!ran.err.contains(other), "{}", ran.err);
}

/// They are no Nodes, and Auto Scaling would take them into service for the instances that are replaced.
#[test]
fn outdated_instances_of_a_warm_pool_go_first_and_without_a_drain() {
    let (cluster, api) = joined_cluster();
    let run = |words: &[&str]| cluster.kctl.run(words);
    let set = |more: &[&str]| {
        run(&[&["edit"], more].concat()).expect_success();
        run(&["update", NAME, "--yes"]).expect_success();
    };
    let group = ["ig", "nodes-eu-west-1a", "--name", NAME];
    set(&[&group[..], &["--set", "spec.warmPool.maxSize=3"]].concat());
    let warm = cluster.simulator.run_python(
        REGION,
        &format!("print(boto('autoscaling').describe_warm_pool(AutoScalingGroupName='nodes-eu-west-1a.{NAME}')['Instances'][0]['InstanceId'])"),
    );
    let warm = warm.trim();
    for state in ["running", "stopped"] {
        let report = json!({"instances": {warm: state}});
        cluster.simulator.report_hosts(&report);
    }
    let shown = run(&["get", "instances", NAME, "--api-server", &api.url]).expect_success();
    let line = shown.lines().find(|line| line.contains(warm));
    assert!(line.expect("it").contains("warmed"), "{shown}");
    let healthy = run(&["validate", NAME, "--api-server", &api.url]);
    assert!(
        !healthy.all_output().contains(warm),
        "{}",
        healthy.all_output()
    );

    set(&["cluster", NAME, "--set", "spec.kubelet.maxPods=77"]);
    let preview = [
        "rolling-update",
        NAME,
        "--api-server",
        &api.url,
        "-o",
        "json",
    ];
    let preview: Value = serde_json::from_str(&run(&preview).expect_success()).expect("JSON");
    assert_eq!(preview["instances"][0]["id"], json!(warm), "{preview}");
    assert_eq!(
        preview["instances"][0]["changes"][0]["field"],
        "kubelet.config.maxPods"
    );
    let groups = preview["groups"].as_array().expect("groups");
    let nodes = groups.iter().find(|one| one["role"] == "Node");
    assert_eq!(nodes.expect("it")["needUpdate"], 3, "{preview}");

    let delete = [
        "delete",
        "instance",
        warm,
        "--name",
        NAME,
        "--yes",
        "--api-server",
    ];
    let ran = run(&[&delete[..], &[&api.url]].concat());
    let line = format!("{warm} (nodes-eu-west-1a): is being terminated");
    assert!(ran.err.contains(&line), "{}", ran.err);
    assert!(ran.err.contains("replaced 1 instance"), "{}", ran.err);
    assert!(!ran.err.contains("cordoned"), "{}", ran.err);
    ran.expect_success();
    assert_nothing_marked(&api);
}
