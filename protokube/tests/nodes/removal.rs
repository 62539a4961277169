//! Nodes are removed if their instance does not exist any more, and only then.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, LogLines, control_plane, running_instance};
use protokube::removal::RemovalPace;
use std::time::Duration;

/// Id of the instance on which protokube runs.
const OWN: &str = "i-0fedcba9876543210";
const GHOST: &str = "i-0123456789abcdef1";

struct RemovalFixture {
    api: FakeApi,
    aws: FakeAws,
    lines: LogLines,
}

const QUICK: RemovalPace = RemovalPace {
    interval: Duration::from_millis(20),
    missing_for: Duration::from_millis(100),
};

/// Starts the role with ready Nodes of these names and an EC2 with these instances.
async fn start_removal(nodes: &[&str], instances: &[&str], pace: RemovalPace) -> RemovalFixture {
    let (api, aws, lines) = (FakeApi::new(), FakeAws::default(), LogLines::default());
    let url = aws.start().await;
    let instance = control_plane(&aws, &url).await;
    for node in nodes {
        api.put_node(node, "True");
    }
    aws.lock_state().instances = instances.iter().map(|id| running_instance(id)).collect();
    let (client, log) = (api.new_client().await, lines.new_log());
    tokio::spawn(async move {
        protokube::removal::remove_stale_nodes(client, instance, OWN, pace, &log).await
    });
    RemovalFixture { api, aws, lines }
}

impl RemovalFixture {
    /// Waits for this number of further calls of DescribeInstances.
    async fn wait_for_rounds(&self, more: usize) {
        let before = self.aws.count_calls("DescribeInstances");
        self.api
            .wait_until(|_| self.aws.count_calls("DescribeInstances") >= before + more)
            .await;
    }
}

#[tokio::test]
async fn a_node_that_says_it_is_ready_goes_with_its_instance() {
    let fixture = start_removal(&[OWN, INSTANCE, GHOST, "by-hand"], &[OWN, INSTANCE], QUICK).await;
    fixture.api.wait_until(|api| !api.has_node(GHOST)).await;
    let terminated = |state: &mut crate::fakes::aws::AwsState| {
        "terminated".clone_into(&mut state.instances[1].state);
    };
    terminated(&mut fixture.aws.lock_state());
    fixture.api.wait_until(|api| !api.has_node(INSTANCE)).await;
    tokio::time::sleep(5 * QUICK.interval).await;
    assert!(fixture.api.has_node(OWN) && fixture.api.has_node("by-hand"));
    let lines = fixture.lines.json_lines();
    let logged_instances: Vec<_> = lines.iter().map(|line| line["instance"].as_str()).collect();
    assert_eq!(logged_instances, [Some(GHOST), Some(INSTANCE)]);
}

#[tokio::test]
async fn finalizers_of_a_gone_instances_node_keep_it_no_longer() {
    let pace = RemovalPace {
        missing_for: Duration::from_millis(500),
        ..QUICK
    };
    let fixture = start_removal(&[OWN, INSTANCE, GHOST], &[OWN, INSTANCE], pace).await;
    for node in [INSTANCE, GHOST] {
        let keep = |node: &mut serde_json::Value| {
            node["metadata"]["finalizers"] = serde_json::json!(["thief.example.com/keep"]);
        };
        fixture
            .api
            .change_object(&format!("/api/v1/nodes/{node}"), keep);
    }
    fixture.api.wait_until(|api| !api.has_node(GHOST)).await;
    // Other Nodes keep their finalizers.
    let own = fixture.api.node_object(INSTANCE);
    assert_eq!(own["metadata"]["finalizers"][0], "thief.example.com/keep");
    let is_logged = |_: &FakeApi| fixture.lines.all_text().contains("thief.example.com/keep");
    fixture.api.wait_until(is_logged).await;
}

#[tokio::test]
async fn a_node_that_cannot_be_removed_keeps_no_other() {
    let fixture = start_removal(&[OWN, INSTANCE, GHOST], &[OWN], QUICK).await;
    let stuck = INSTANCE.to_owned();
    fixture.api.lock_objects().stuck.insert(stuck);
    fixture.api.wait_until(|api| !api.has_node(GHOST)).await;
    assert!(fixture.api.has_node(INSTANCE));
    assert!(fixture.lines.all_text().contains("not removed: "));
    fixture.api.lock_objects().stuck.clear();
    fixture.api.wait_until(|api| !api.has_node(INSTANCE)).await;
}

#[tokio::test]
async fn one_look_removes_nothing() {
    let patient = RemovalPace {
        missing_for: Duration::from_hours(1),
        ..QUICK
    };
    let fixture = start_removal(&[OWN, INSTANCE], &[OWN], patient).await;
    fixture.wait_for_rounds(5).await;
    assert!(fixture.api.has_node(INSTANCE));
}

#[tokio::test]
async fn an_instance_that_was_missing_for_a_moment_keeps_its_node() {
    let pace = RemovalPace {
        missing_for: Duration::from_secs(1),
        ..QUICK
    };
    let fixture = start_removal(&[OWN, INSTANCE], &[OWN], pace).await;
    fixture.wait_for_rounds(2).await;
    // The instance reappears in time, so its earlier absence does not count.
    fixture
        .aws
        .lock_state()
        .instances
        .push(running_instance(INSTANCE));
    fixture.wait_for_rounds(2).await;
    tokio::time::sleep(pace.missing_for).await;
    fixture.aws.lock_state().instances.pop();
    fixture.wait_for_rounds(2).await;
    assert!(fixture.api.has_node(INSTANCE));
    fixture.api.wait_until(|api| !api.has_node(INSTANCE)).await;
}

#[tokio::test]
async fn stopped_and_rebooting_instances_keep_their_nodes() {
    for state in ["pending", "shutting-down", "stopping", "stopped"] {
        let fixture = start_removal(&[OWN, INSTANCE], &[OWN, INSTANCE], QUICK).await;
        state.clone_into(&mut fixture.aws.lock_state().instances[1].state);
        fixture.wait_for_rounds(10).await;
        assert!(fixture.api.has_node(INSTANCE), "{state}");
    }
}

#[tokio::test]
async fn an_answer_that_lacks_this_instance_is_not_believed() {
    let fixture = start_removal(&[OWN, INSTANCE], &[], QUICK).await;
    fixture.wait_for_rounds(10).await;
    assert!(fixture.api.has_node(INSTANCE));
    assert!(fixture.lines.all_text().contains("no Node is removed"));
}

#[tokio::test]
async fn an_error_of_ec2_removes_nothing() {
    let fixture = start_removal(&[OWN, INSTANCE], &[OWN, INSTANCE], QUICK).await;
    fixture.wait_for_rounds(1).await;
    fixture.aws.lock_state().failing = Some((503, "Unavailable"));
    fixture.wait_for_rounds(1).await;
    assert!(fixture.api.has_node(INSTANCE));
}
