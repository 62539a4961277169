//! Nodes get the labels that their instance's tags say.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{GROUP, INSTANCE, Lines, NAME, control_plane, instance};
use serde_json::json;

struct Fixture {
    api: FakeApi,
    aws: FakeAws,
    lines: Lines,
}

async fn start(api: FakeApi, aws: FakeAws) -> Fixture {
    let lines = Lines::default();
    let url = aws.start().await;
    let machine = control_plane(&aws, &url).await;
    let (client, log) = (api.client().await, lines.log());
    tokio::spawn(async move {
        let ended = protokube::labels::label_nodes(client, machine, NAME, &log).await;
        panic!("{ended:?}");
    });
    Fixture { api, aws, lines }
}

fn cloud(ids: &[&str]) -> FakeAws {
    let aws = FakeAws::default();
    for id in ids {
        aws.state().instances.push(instance(id));
    }
    aws
}

fn labelled(api: &FakeApi, node: &str) -> bool {
    api.node(node)["metadata"]["labels"]["disk"] == "fast"
}

#[tokio::test]
async fn a_node_gets_its_role_its_group_and_its_groups_labels_once() {
    let api = FakeApi::new();
    api.put_node(INSTANCE, "True");
    let fixture = start(api, cloud(&[INSTANCE, "i-0123456789abcdef1"])).await;
    fixture.api.until(|api| labelled(api, INSTANCE)).await;
    let expected = json!({
        "disk": "fast",
        "kops.k8s.io/instancegroup": GROUP,
        "node-role.kubernetes.io/node": "",
    });
    assert_eq!(fixture.api.node(INSTANCE)["metadata"]["labels"], expected);
    // A Node that comes later is labelled, the first one not again.
    fixture.api.put_node("i-0123456789abcdef1", "False");
    fixture
        .api
        .until(|api| labelled(api, "i-0123456789abcdef1"))
        .await;
    assert_eq!(fixture.api.objects().patches.len(), 2);
}

#[tokio::test]
async fn a_label_that_somebody_changed_comes_back_and_others_stay() {
    let api = FakeApi::new();
    api.put_node(INSTANCE, "True");
    let fixture = start(api, cloud(&[INSTANCE])).await;
    fixture.api.until(|api| labelled(api, INSTANCE)).await;
    let path = format!("/api/v1/nodes/{INSTANCE}");
    fixture.api.change(&path, |node| {
        node["metadata"]["labels"]["disk"] = json!("slow");
        node["metadata"]["labels"]["mine"] = json!("kept");
    });
    fixture.api.until(|api| labelled(api, INSTANCE)).await;
    let (_, patch) = fixture.api.objects().patches.last().unwrap().clone();
    assert_eq!(
        patch,
        json!({ "metadata": { "labels": { "disk": "fast" } } })
    );
    assert_eq!(
        fixture.api.node(INSTANCE)["metadata"]["labels"]["mine"],
        "kept"
    );
    // EC2 is asked by the clock, not for each change.
    assert_eq!(fixture.aws.calls("DescribeInstances"), 1);
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
    api.change(&path, stolen);
    let fixture = start(api, cloud(&[INSTANCE])).await;
    fixture.api.until(|api| labelled(api, INSTANCE)).await;
    let expected = json!({
        "disk": "fast",
        "kops.k8s.io/instancegroup": GROUP,
        "node-role.kubernetes.io/gpu": "",
        "node-role.kubernetes.io/node": "",
    });
    assert_eq!(fixture.api.node(INSTANCE)["metadata"]["labels"], expected);
    // And whenever it comes.
    fixture.api.change(&path, stolen);
    let gone = |api: &FakeApi| api.node(INSTANCE)["metadata"]["labels"] == expected;
    fixture.api.until(gone).await;
}

#[tokio::test]
async fn tags_make_no_control_plane_of_a_worker() {
    let aws = cloud(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    for instance in &mut aws.state().instances {
        let tag = "k8s.io/role/control-plane".to_owned();
        instance.tags.insert(tag, "1".to_owned());
    }
    "masters.a.example.com".clone_into(&mut aws.state().instances[1].profile);
    let api = FakeApi::new();
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let fixture = start(api, aws).await;
    let second = |api: &FakeApi| labelled(api, "i-0123456789abcdef1");
    fixture.api.until(second).await;
    let label = |node: &str| {
        let label = "node-role.kubernetes.io/control-plane";
        fixture.api.node(node)["metadata"]["labels"][label].clone()
    };
    assert_eq!(label("i-0123456789abcdef0"), json!(null));
    assert_eq!(label("i-0123456789abcdef1"), "");
}

#[tokio::test]
async fn a_node_that_cannot_be_written_keeps_no_other_from_its_labels() {
    let api = FakeApi::new();
    api.objects().stuck.insert("i-0123456789abcdef0".to_owned());
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let aws = cloud(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    let fixture = start(api, aws).await;
    let second = |api: &FakeApi| labelled(api, "i-0123456789abcdef1");
    fixture.api.until(second).await;
    let told = |_: &FakeApi| fixture.lines.text().contains("request is too large");
    fixture.api.until(told).await;
}

#[tokio::test]
async fn a_tag_that_cannot_be_a_label_keeps_no_other_node_from_its_labels() {
    let aws = cloud(&["i-0123456789abcdef0", "i-0123456789abcdef1"]);
    let tag = "k8s.io/cluster-autoscaler/node-template/label/disk".to_owned();
    aws.state().instances[0]
        .tags
        .insert(tag, "no label!".to_owned());
    let api = FakeApi::new();
    api.put_node("i-0123456789abcdef0", "True");
    api.put_node("i-0123456789abcdef1", "True");
    let fixture = start(api, aws).await;
    fixture
        .api
        .until(|api| labelled(api, "i-0123456789abcdef1"))
        .await;
    let told = |_: &FakeApi| fixture.lines.text().contains("not labelled");
    fixture.api.until(told).await;
}
