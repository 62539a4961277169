//! Nodes whose instance is gone are removed, and no others.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, Lines, control_plane, instance};
use protokube::removal::RemovalPace;
use std::time::Duration;

/// The machine that this runs on.
const OWN: &str = "i-0fedcba9876543210";
const GHOST: &str = "i-0123456789abcdef1";

struct Fixture {
    api: FakeApi,
    aws: FakeAws,
    lines: Lines,
}

const QUICK: RemovalPace = RemovalPace {
    look: Duration::from_millis(20),
    gone: Duration::from_millis(100),
};

/// Nodes of those names, all of which say that they are ready, an EC2 with those instances, and the part that removes.
async fn start(nodes: &[&str], instances: &[&str], pace: RemovalPace) -> Fixture {
    let (api, aws, lines) = (FakeApi::new(), FakeAws::default(), Lines::default());
    let url = aws.start().await;
    let machine = control_plane(&aws, &url).await;
    for node in nodes {
        api.put_node(node, "True");
    }
    aws.state().instances = instances.iter().map(|id| instance(id)).collect();
    let (client, log) = (api.client().await, lines.log());
    tokio::spawn(async move {
        protokube::removal::remove_stale_nodes(client, machine, OWN, pace, &log).await
    });
    Fixture { api, aws, lines }
}

impl Fixture {
    /// Until EC2 was asked that many times more.
    async fn looks(&self, more: usize) {
        let before = self.aws.calls("DescribeInstances");
        self.api
            .until(|_| self.aws.calls("DescribeInstances") >= before + more)
            .await;
    }
}

#[tokio::test]
async fn a_node_that_says_it_is_ready_goes_with_its_instance() {
    let fixture = start(&[OWN, INSTANCE, GHOST, "by-hand"], &[OWN, INSTANCE], QUICK).await;
    fixture.api.until(|api| !api.has_node(GHOST)).await;
    let terminated = |state: &mut crate::fakes::aws::Aws| {
        "terminated".clone_into(&mut state.instances[1].state);
    };
    terminated(&mut fixture.aws.state());
    fixture.api.until(|api| !api.has_node(INSTANCE)).await;
    tokio::time::sleep(5 * QUICK.look).await;
    assert!(fixture.api.has_node(OWN) && fixture.api.has_node("by-hand"));
    let lines = fixture.lines.json();
    let told: Vec<_> = lines.iter().map(|line| line["instance"].as_str()).collect();
    assert_eq!(told, [Some(GHOST), Some(INSTANCE)]);
}

#[tokio::test]
async fn finalizers_of_a_gone_machines_node_keep_it_no_longer() {
    let pace = RemovalPace {
        gone: Duration::from_millis(500),
        ..QUICK
    };
    let fixture = start(&[OWN, INSTANCE, GHOST], &[OWN, INSTANCE], pace).await;
    for node in [INSTANCE, GHOST] {
        let keep = |node: &mut serde_json::Value| {
            node["metadata"]["finalizers"] = serde_json::json!(["thief.example.com/keep"]);
        };
        fixture.api.change(&format!("/api/v1/nodes/{node}"), keep);
    }
    fixture.api.until(|api| !api.has_node(GHOST)).await;
    // Others keep theirs.
    let own = fixture.api.node(INSTANCE);
    assert_eq!(own["metadata"]["finalizers"][0], "thief.example.com/keep");
    let told = |_: &FakeApi| fixture.lines.text().contains("thief.example.com/keep");
    fixture.api.until(told).await;
}

#[tokio::test]
async fn a_node_that_cannot_be_removed_keeps_no_other() {
    let fixture = start(&[OWN, INSTANCE, GHOST], &[OWN], QUICK).await;
    let stuck = INSTANCE.to_owned();
    fixture.api.objects().stuck.insert(stuck);
    fixture.api.until(|api| !api.has_node(GHOST)).await;
    assert!(fixture.api.has_node(INSTANCE));
    assert!(fixture.lines.text().contains("not removed: "));
    fixture.api.objects().stuck.clear();
    fixture.api.until(|api| !api.has_node(INSTANCE)).await;
}

#[tokio::test]
async fn one_look_removes_nothing() {
    let patient = RemovalPace {
        gone: Duration::from_hours(1),
        ..QUICK
    };
    let fixture = start(&[OWN, INSTANCE], &[OWN], patient).await;
    fixture.looks(5).await;
    assert!(fixture.api.has_node(INSTANCE));
}

#[tokio::test]
async fn a_machine_that_was_missing_for_a_moment_keeps_its_node() {
    let pace = RemovalPace {
        gone: Duration::from_secs(1),
        ..QUICK
    };
    let fixture = start(&[OWN, INSTANCE], &[OWN], pace).await;
    fixture.looks(2).await;
    // Back before the time is over: what was seen before counts no more.
    fixture.aws.state().instances.push(instance(INSTANCE));
    fixture.looks(2).await;
    tokio::time::sleep(pace.gone).await;
    fixture.aws.state().instances.pop();
    fixture.looks(2).await;
    assert!(fixture.api.has_node(INSTANCE));
    fixture.api.until(|api| !api.has_node(INSTANCE)).await;
}

#[tokio::test]
async fn stopped_and_rebooting_machines_keep_their_nodes() {
    for state in ["pending", "shutting-down", "stopping", "stopped"] {
        let fixture = start(&[OWN, INSTANCE], &[OWN, INSTANCE], QUICK).await;
        state.clone_into(&mut fixture.aws.state().instances[1].state);
        fixture.looks(10).await;
        assert!(fixture.api.has_node(INSTANCE), "{state}");
    }
}

#[tokio::test]
async fn an_answer_that_lacks_this_machine_is_not_believed() {
    let fixture = start(&[OWN, INSTANCE], &[], QUICK).await;
    fixture.looks(10).await;
    assert!(fixture.api.has_node(INSTANCE));
    assert!(fixture.lines.text().contains("no Node is removed"));
}

#[tokio::test]
async fn an_error_of_ec2_removes_nothing() {
    let fixture = start(&[OWN, INSTANCE], &[OWN, INSTANCE], QUICK).await;
    fixture.looks(1).await;
    fixture.aws.state().failing = Some((503, "Unavailable"));
    fixture.looks(1).await;
    assert!(fixture.api.has_node(INSTANCE));
}
