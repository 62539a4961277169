//! Nodes get the labels in their instance's tags.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{GROUP, INSTANCE, LogLines, NAME, control_plane, running_instance};
use serde_json::json;

struct LabelFixture {
    api: FakeApi,
    aws: FakeAws,
    lines: LogLines,
}

async fn start_labels(api: FakeApi, aws: FakeAws) -> LabelFixture {
    let lines = LogLines::default();
    let url = aws.start().await;
    let instance = control_plane(&aws, &url).await;
    let (client, log) = (api.new_client().await, lines.new_log());
    tokio::spawn(async move {
        let ended = protokube::labels::label_nodes(client, instance, NAME, &log).await;
        panic!("{ended:?}");
    });
    LabelFixture { api, aws, lines }
}

fn aws_with_instances(ids: &[&str]) -> FakeAws {
    let aws = FakeAws::default();
    for id in ids {
        aws.lock_state().instances.push(running_instance(id));
    }
    aws
}

fn is_labelled(api: &FakeApi, node: &str) -> bool {
    api.node_object(node)["metadata"]["labels"]["disk"] == "fast"
}

#[tokio::test]
async fn a_node_gets_its_role_its_group_and_its_groups_labels_once() {
    let api = FakeApi::new();
    api.put_node(INSTANCE, "True");
    let fixture = start_labels(api, aws_with_instances(&[INSTANCE, "i-0123456789abcdef1"])).await;
    fixture
        .api
        .wait_until(|api| is_labelled(api, INSTANCE))
        .await;
    let expected = json!({
        "disk": "fast",
        "kops.k8s.io/instancegroup": GROUP,
        "node-role.kubernetes.io/node": "",
    });
    assert_eq!(
        fixture.api.node_object(INSTANCE)["metadata"]["labels"],
        expected
    );
    // A later Node is labelled; the first one is not patched again.
    fixture.api.put_node("i-0123456789abcdef1", "False");
    fixture
        .api
        .wait_until(|api| is_labelled(api, "i-0123456789abcdef1"))
        .await;
    assert_eq!(fixture.api.lock_objects().patches.len(), 2);
}

#[tokio::test]
async fn a_label_that_somebody_changed_comes_back_and_others_stay() {
    let api = FakeApi::new();
    api.put_node(INSTANCE, "True");
    let fixture = start_labels(api, aws_with_instances(&[INSTANCE])).await;
    fixture
        .api
        .wait_until(|api| is_labelled(api, INSTANCE))
        .await;
    let path = format!("/api/v1/nodes/{INSTANCE}");
    fixture.api.change_object(&path, |node| {
        node["metadata"]["labels"]["disk"] = json!("slow");
        node["metadata"]["labels"]["mine"] = json!("kept");
    });
    fixture
        .api
        .wait_until(|api| is_labelled(api, INSTANCE))
        .await;
    let (_, patch) = fixture.api.lock_objects().patches.last().unwrap().clone();
    assert_eq!(
        patch,
        json!({ "metadata": { "labels": { "disk": "fast" } } })
    );
    assert_eq!(
        fixture.api.node_object(INSTANCE)["metadata"]["labels"]["mine"],
        "kept"
    );
    // EC2 is called at intervals, not for each change.
    assert_eq!(fixture.aws.count_calls("DescribeInstances"), 1);
}

#[tokio::test]
async fn a_role_that_the_tags_do_not_say_is_taken_away() {
    let api = FakeApi::new();
    api.put_node(INSTANCE, "True");
    let path = format!("/api/v1/nodes/{INSTANCE}");
    let stolen = |node: &mut serde_json::Value| {
        let labels = &mut node["metadata"]["labels"];
        labels["node-role.kubernetes.io/control-plane"] = json!("");
        labels["node-role.kubernetes.io/gpu"] = json!("");
    };
    api.change_object(&path, stolen);
    let fixture = start_labels(api, aws_with_instances(&[INSTANCE])).await;
    fixture
        .api
        .wait_until(|api| is_labelled(api, INSTANCE))
        .await;
    let expected = json!({
        "disk": "fast",
        "kops.k8s.io/instancegroup": GROUP,
        "node-role.kubernetes.io/gpu": "",
        "node-role.kubernetes.io/node": "",
    });
    assert_eq!(
        fixture.api.node_object(INSTANCE)["metadata"]["labels"],
        expected
    );
    // Also if the Node appears later.
    fixture.api.change_object(&path, stolen);
    let is_removed = |api: &FakeApi| api.node_object(INSTANCE)["metadata"]["labels"] == expected;
    fixture.api.wait_until(is_removed).await;
}

#[tokio::test]
async fn tags_make_no_control_plane_of_a_worker() {
    let aws = aws_with_instances(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    for instance in &mut aws.lock_state().instances {
        let tag = "k8s.io/role/control-plane".to_owned();
        instance.tags.insert(tag, "1".to_owned());
    }
    "masters.a.example.com".clone_into(&mut aws.lock_state().instances[1].profile);
    let api = FakeApi::new();
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let fixture = start_labels(api, aws).await;
    let second = |api: &FakeApi| is_labelled(api, "i-0123456789abcdef1");
    fixture.api.wait_until(second).await;
    let label = |node: &str| {
        let label = "node-role.kubernetes.io/control-plane";
        fixture.api.node_object(node)["metadata"]["labels"][label].clone()
    };
    assert_eq!(label("i-0123456789abcdef0"), json!(null));
    assert_eq!(label("i-0123456789abcdef1"), "");
}

#[tokio::test]
async fn a_node_that_cannot_be_written_keeps_no_other_from_its_labels() {
    let api = FakeApi::new();
    api.lock_objects()
        .stuck
        .insert("i-0123456789abcdef0".to_owned());
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let aws = aws_with_instances(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    let fixture = start_labels(api, aws).await;
    let second = |api: &FakeApi| is_labelled(api, "i-0123456789abcdef1");
    fixture.api.wait_until(second).await;
    let is_logged = |_: &FakeApi| fixture.lines.all_text().contains("request is too large");
    fixture.api.wait_until(is_logged).await;
}

#[tokio::test]
async fn a_tag_that_cannot_be_a_label_keeps_no_other_node_from_its_labels() {
    let aws = aws_with_instances(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    let tag = "k8s.io/cluster-autoscaler/node-template/label/disk".to_owned();
    aws.lock_state().instances[0]
        .tags
        .insert(tag, "no label!".to_owned());
    let api = FakeApi::new();
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let fixture = start_labels(api, aws).await;
    fixture
        .api
        .wait_until(|api| is_labelled(api, "i-0123456789abcdef1"))
        .await;
    let is_logged = |_: &FakeApi| fixture.lines.all_text().contains("not labelled");
    fixture.api.wait_until(is_logged).await;
}

#[tokio::test]
async fn an_uncordoned_node_loses_all_marks_of_a_termination_and_nothing_else() {
    const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    const NOTE: &str = "kctl.dev/termination";
    let ids = [
        "i-0123456789abcdef0",
        "i-0123456789abcdef1",
        "i-0123456789abcdef2",
    ];
    let [uncordoned, cordoned, of_a_user] = ids;
    let api = FakeApi::new();
    for id in ids {
        api.put_node(id, "True");
        api.change_object(&format!("/api/v1/nodes/{id}"), |node| {
            node["metadata"]["annotations"] =
                json!({NOTE: "scheduled event of AWS, 2026", "mine": "kept"});
            node["metadata"]["labels"] = json!({EXCLUDE: "termination", "mine": "kept"});
            node["spec"] = json!({"unschedulable": id == cordoned, "taints": [
                {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"},
                {"key": "mine", "effect": "NoSchedule"},
            ]});
        });
    }
    api.change_object(&format!("/api/v1/nodes/{of_a_user}"), |node| {
        node["metadata"]["labels"][EXCLUDE] = json!("for my own reason");
    });
    let fixture = start_labels(api, aws_with_instances(&ids)).await;
    let is_released = |api: &FakeApi, id: &str| {
        api.node_object(id)["metadata"]["annotations"] == json!({"mine": "kept"})
    };
    for id in [uncordoned, of_a_user] {
        fixture.api.wait_until(|api| is_released(api, id)).await;
        let taints = &fixture.api.node_object(id)["spec"]["taints"];
        assert_eq!(*taints, json!([{"key": "mine", "effect": "NoSchedule"}]));
    }
    let label = |id: &str| fixture.api.node_object(id)["metadata"]["labels"][EXCLUDE].clone();
    assert_eq!(label(uncordoned), json!(null));
    assert_eq!(label(of_a_user), json!("for my own reason"));
    assert_eq!(label(cordoned), json!("termination"));
    assert!(!is_released(&fixture.api, cordoned));
    // Also one that is uncordoned later.
    fixture
        .api
        .change_object(&format!("/api/v1/nodes/{cordoned}"), |node| {
            node["spec"]["unschedulable"] = json!(null);
            node["metadata"]["labels"]["disk"] = json!("slow");
        });
    fixture
        .api
        .wait_until(|api| is_released(api, cordoned))
        .await;
    assert_eq!(label(cordoned), json!(null));
}
