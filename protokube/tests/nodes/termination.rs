//! Nodes are drained before AWS ends their instances, and Auto Scaling then waits no longer.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::{FakeAws, FakeInstance};
use crate::fakes::{INSTANCE, LogLines, NAME, control_plane, running_instance};
use crate::store::store_in;
use full::nodes::node_config;
use node::config::{EtcdMember, NodeConfig, Rebalance, Termination};
use node::names::{INSTANCE_GROUP_TAG, TERMINATION_ANNOTATION};
use protokube::termination::{TerminationPace, TerminationRole};
use serde_json::{Value, json};
use std::time::Duration;
use test_support::{expanded_spec, made_up_agents};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const GROUP: &str = "nodes";
const OTHER: &str = "i-0123456789abcdef1";
const THIRD: &str = "i-0123456789abcdef2";
const PACE: TerminationPace = TerminationPace {
    wait: Duration::ZERO,
    again: Duration::ZERO,
};

struct Fixture {
    /// The state store.
    folder: tempfile::TempDir,
    api: FakeApi,
    aws: FakeAws,
    lines: LogLines,
}

fn settings() -> Termination {
    Termination {
        account: "123456789012".to_owned(),
        queue: "queue".to_owned(),
        spot_interruption: true,
        scheduled_events: true,
        rebalance: Rebalance::Cordon,
        exclude_from_load_balancers: true,
        taint: false,
        pod_grace_seconds: None,
    }
}

/// The NodeConfig of a control plane in an etcd cluster of three.
fn three_control_planes() -> NodeConfig {
    let full = &expanded_spec().full;
    let group = full
        .groups
        .iter()
        .find(|group| group.role == node::config::Role::ControlPlane);
    let config = node_config(full, &group.unwrap().name, "", &made_up_agents());
    let mut config = config.unwrap().unwrap();
    for etcd in &mut config.control_plane.as_mut().unwrap().etcd {
        etcd.members = ["a", "b", "c"]
            .map(|name| EtcdMember {
                name: name.to_owned(),
                group: format!("control-plane-{name}"),
            })
            .to_vec();
    }
    config
}

fn instance(id: &str, state: &str, role: &str) -> FakeInstance {
    let mut instance = running_instance(id);
    instance.state = state.to_owned();
    instance
        .tags
        .insert(INSTANCE_GROUP_TAG.to_owned(), GROUP.to_owned());
    instance
        .tags
        .insert(format!("k8s.io/role/{role}"), "1".to_owned());
    instance
}

/// The role with these instances of the cluster. A ready Node for each that runs.
async fn start(instances: Vec<FakeInstance>, settings: Termination) -> Fixture {
    let (api, aws, lines) = (FakeApi::new(), FakeAws::default(), LogLines::default());
    let url = aws.start().await;
    let ec2 = control_plane(&aws, &url).await;
    for instance in &instances {
        if instance.state == "running" {
            api.put_node(&instance.id, "True");
            if instance.tags.contains_key("k8s.io/role/control-plane") {
                let path = format!("/api/v1/nodes/{}", instance.id);
                api.change_object(&path, |node| {
                    node["metadata"]["labels"] =
                        json!({"node-role.kubernetes.io/control-plane": ""});
                });
            }
        }
    }
    aws.lock_state().instances = instances;
    let (client, log) = (api.new_client().await, lines.new_log());
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(folder.path()).await;
    tokio::spawn(async move {
        let config = three_control_planes();
        let role = TerminationRole {
            client,
            ec2: &ec2,
            config: &config,
            store: &store,
            settings: &settings,
            pace: PACE,
            clock: OffsetDateTime::now_utc,
            log: &log,
        };
        let ended = role.handle_messages().await;
        panic!("the role ended: {ended:?}");
    });
    Fixture {
        folder,
        api,
        aws,
        lines,
    }
}

impl Fixture {
    /// What the record or an instance says in the state store.
    fn store(&self, key: &str, content: &Value) {
        let path = self.folder.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.to_string()).unwrap();
    }

    fn store_report(&self, instance: &str, member: &str, learner: bool) {
        let running = json!({"name": format!("etcd-{member}"), "clusterId": "c1", "leader": "1", "learner": learner});
        let status = json!({"format": 1, "etcd": "main", "instance": instance, "volume": format!("vol-{member}"), "running": running});
        self.store(&format!("etcd/main/{instance}.status.json"), &status);
    }

    fn send(&self, source: &str, kind: &str, detail: &Value, age: Duration) {
        let time = (OffsetDateTime::now_utc() - age).format(&Rfc3339).unwrap();
        self.aws.send_message(&json!({"id": "e", "source": source, "detail-type": kind, "time": time, "detail": detail}));
    }

    /// Auto Scaling terminates an instance, and waits.
    fn terminate_by_group(&self, id: &str, hook: &str, age: Duration) {
        self.set_scaling_state(id, "Terminating:Wait");
        self.announce_hook(id, hook, age);
    }

    fn set_scaling_state(&self, id: &str, state: &'static str) {
        let member = (format!("{GROUP}.{NAME}"), state);
        self.aws.lock_state().scaling.insert(id.to_owned(), member);
    }

    fn announce_hook(&self, id: &str, hook: &str, age: Duration) {
        let detail = json!({"AutoScalingGroupName": format!("{GROUP}.{NAME}"), "LifecycleHookName": hook,
            "EC2InstanceId": id, "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"});
        self.send(
            "aws.autoscaling",
            "EC2 Instance-terminate Lifecycle Action",
            &detail,
            age,
        );
    }

    /// Interrupts an instance, which is a spot instance.
    fn interrupt_spot(&self, id: &str) {
        for instance in &mut self.aws.lock_state().instances {
            instance.spot |= instance.id == id;
        }
        let detail = json!({"instance-id": id, "instance-action": "terminate"});
        self.send(
            "aws.ec2",
            "EC2 Spot Instance Interruption Warning",
            &detail,
            Duration::ZERO,
        );
    }

    fn has_no_messages(&self) -> bool {
        let state = self.aws.lock_state();
        state.messages.iter().all(|(body, _)| body.is_empty())
    }

    /// Waits until the queue is empty.
    async fn wait_until_done(&self) {
        self.api.wait_until(|_| self.has_no_messages()).await;
    }

    /// Waits for further receptions.
    async fn wait_for_rounds(&self, more: usize) {
        let before = self.aws.count_calls("ReceiveMessage");
        self.api
            .wait_until(|_| self.aws.count_calls("ReceiveMessage") >= before + more)
            .await;
    }

    fn completed(&self) -> Vec<String> {
        let state = self.aws.lock_state();
        state
            .completed_hooks
            .iter()
            .map(|(instance, _)| instance.clone())
            .collect()
    }

    fn details(&self) -> Vec<String> {
        let lines = self.lines.json_lines();
        lines
            .iter()
            .map(|line| line["detail"].as_str().unwrap().to_owned())
            .collect()
    }
}

const HOOK: &str = "nodes-NTHLifecycleHook";

#[tokio::test]
async fn a_hook_is_completed_once_the_pods_have_ended() {
    let fixture = start(vec![instance(INSTANCE, "running", "node")], settings()).await;
    let api = &fixture.api;
    for (pod, node, controller) in [
        ("going", INSTANCE, "ReplicaSet"),
        ("web", INSTANCE, "ReplicaSet"),
        ("kept", INSTANCE, "ReplicaSet"),
        ("agent", INSTANCE, "DaemonSet"),
        ("elsewhere", OTHER, "ReplicaSet"),
    ] {
        api.put_pod(pod, node, controller);
    }
    api.lock_objects().kept_pods.insert("kept".to_owned());
    api.lock_objects().going_pods.insert("going".to_owned());
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::ZERO);
    fixture.wait_for_rounds(10).await;
    let node = api.node_object(INSTANCE);
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(
        node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"],
        "termination"
    );
    let note = node["metadata"]["annotations"][TERMINATION_ANNOTATION]
        .as_str()
        .unwrap();
    assert!(
        note.starts_with("Auto Scaling terminates the instance, 20"),
        "{note}"
    );
    assert_eq!(
        api.lock_objects().evictions,
        ["web"],
        "once, and not those that stay"
    );
    // The budget allows it, and the kubelet has ended the first pod but not the second.
    api.lock_objects().kept_pods.clear();
    api.end_pod("going");
    api.end_pod("web");
    api.wait_until(|api| api.lock_objects().evictions == ["web", "kept"])
        .await;
    fixture.wait_for_rounds(10).await;
    assert_eq!(fixture.completed(), Vec::<String>::new());
    api.end_pod("kept");
    fixture.wait_until_done().await;
    assert_eq!(
        fixture.aws.lock_state().completed_hooks,
        [(INSTANCE.to_owned(), HOOK.to_owned())]
    );
    assert_eq!(
        fixture.details(),
        [
            "Auto Scaling terminates the instance: cordoned",
            "Auto Scaling terminates the instance: drained"
        ]
    );
}

#[tokio::test]
async fn a_drain_ends_when_its_time_is_over() {
    let fixture = start(vec![instance(INSTANCE, "running", "node")], settings()).await;
    fixture.api.put_pod("kept", INSTANCE, "ReplicaSet");
    fixture
        .api
        .lock_objects()
        .kept_pods
        .insert("kept".to_owned());
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::from_secs(278));
    fixture.wait_for_rounds(5).await;
    assert!(fixture.completed().is_empty());
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), [INSTANCE]);
    let details = fixture.details();
    assert!(
        details[1].contains("its time is over, and 1 pods could not be evicted: default/kept"),
        "{details:?}"
    );
}

#[tokio::test]
async fn an_instance_that_has_ended_or_never_joined_is_not_waited_for() {
    let instances = vec![
        instance(INSTANCE, "terminated", "node"),
        instance(OTHER, "pending", "node"),
    ];
    let fixture = start(instances, settings()).await;
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::ZERO);
    fixture.terminate_by_group(OTHER, HOOK, Duration::ZERO);
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), [INSTANCE, OTHER]);
    assert!(
        fixture.api.lock_objects().patches.is_empty(),
        "the API is not needed"
    );
}

#[tokio::test]
async fn other_clusters_and_other_hooks_are_left_alone() {
    let mut foreign = instance(OTHER, "running", "node");
    foreign
        .tags
        .insert("KubernetesCluster".to_owned(), "b.example.com".to_owned());
    let fixture = start(
        vec![instance(INSTANCE, "running", "node"), foreign],
        settings(),
    )
    .await;
    fixture.terminate_by_group(INSTANCE, "backup-before-the-end", Duration::ZERO);
    fixture.terminate_by_group(OTHER, HOOK, Duration::ZERO);
    fixture.interrupt_spot(OTHER);
    fixture.interrupt_spot("i-0aaaaaaaaaaaaaaa0");
    fixture.send(
        "aws.ec2",
        "EC2 Instance State-change Notification",
        &json!({"instance-id": INSTANCE, "state": "running"}),
        Duration::ZERO,
    );
    fixture.aws.send_message(&json!("not an event"));
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), Vec::<String>::new());
    assert!(fixture.api.lock_objects().patches.is_empty());
    assert_eq!(fixture.details().len(), 1, "{:?}", fixture.details());
}

#[tokio::test]
async fn settings_say_which_events_drain() {
    let rebalance = |fixture: &Fixture| {
        fixture.aws.lock_state().instances[0].spot = true;
        let detail = json!({"instance-id": INSTANCE});
        fixture.send(
            "aws.ec2",
            "EC2 Instance Rebalance Recommendation",
            &detail,
            Duration::ZERO,
        );
    };
    let maintenance = |fixture: &Fixture| {
        let detail = json!({"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": INSTANCE}]});
        fixture.send("aws.health", "AWS Health Event", &detail, Duration::ZERO);
    };
    let spot = |fixture: &Fixture| fixture.interrupt_spot(INSTANCE);
    let off = Termination {
        spot_interruption: false,
        scheduled_events: false,
        rebalance: Rebalance::Ignore,
        ..settings()
    };
    let drains = Termination {
        rebalance: Rebalance::Drain,
        ..settings()
    };
    type Case<'a> = (&'a dyn Fn(&Fixture), Termination, bool, usize);
    let cases: [Case<'_>; 7] = [
        (&spot, settings(), true, 1),
        (&spot, off.clone(), false, 0),
        (&maintenance, settings(), true, 1),
        (&maintenance, off.clone(), false, 0),
        (&rebalance, settings(), true, 0),
        (&rebalance, drains, true, 1),
        (&rebalance, off, false, 0),
    ];
    for (send, settings, cordoned, evicted) in cases {
        let fixture = start(
            vec![instance(INSTANCE, "running", "node")],
            settings.clone(),
        )
        .await;
        fixture.api.put_pod("web", INSTANCE, "ReplicaSet");
        send(&fixture);
        fixture.wait_until_done().await;
        let node = fixture.api.node_object(INSTANCE);
        assert_eq!(
            node["spec"]["unschedulable"] == true,
            cordoned,
            "{settings:?}"
        );
        assert_eq!(
            fixture.api.lock_objects().evictions.len(),
            evicted,
            "{settings:?}"
        );
    }
}

#[tokio::test]
async fn control_planes_end_one_after_the_other() {
    let ids = [INSTANCE, OTHER, THIRD];
    let instances = ids
        .map(|id| instance(id, "running", "control-plane"))
        .to_vec();
    let fixture = start(instances, settings()).await;
    fixture.terminate_by_group(OTHER, HOOK, Duration::ZERO);
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::ZERO);
    fixture.wait_for_rounds(10).await;
    assert_eq!(fixture.completed(), [OTHER], "the other one is still ready");
    let node = |id: &str| format!("/api/v1/nodes/{id}");
    fixture.api.change_object(&node(OTHER), |node| {
        node["status"]["conditions"][0]["status"] = json!("Unknown");
    });
    fixture.wait_for_rounds(10).await;
    assert_eq!(fixture.completed(), [OTHER], "two of three are needed");
    let replacement = "i-0123456789abcdef3";
    fixture.api.put_node(replacement, "True");
    fixture.api.change_object(&node(replacement), |node| {
        node["metadata"]["labels"] = json!({"node-role.kubernetes.io/control-plane": ""});
    });
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), [OTHER, INSTANCE]);
}

/// kubelet needs no etcd: a Node is Ready while the member on it is a learner, or waits for a volume.
#[tokio::test]
async fn a_control_plane_stays_while_etcd_has_no_quorum_without_its_member() {
    let ids = [INSTANCE, OTHER, THIRD];
    let instances = ids
        .map(|id| instance(id, "running", "control-plane"))
        .to_vec();
    let fixture = start(instances, settings()).await;
    let members = ["a", "b", "c"].map(|name| {
        let recorded =
            json!({"volume": format!("vol-{name}"), "blank": true, "memberId": format!("1{name}")});
        (name, recorded)
    });
    let members: Value = members.into_iter().collect();
    let generation = json!({"clusterId": "c1", "token": "t1"});
    let record = json!({"format": 1, "generation": generation, "members": members});
    fixture.store("etcd/main.json", &record);
    fixture.store_report(INSTANCE, "a", false);
    fixture.store_report(OTHER, "b", false);
    fixture.store_report(THIRD, "c", true);
    fixture.terminate_by_group(OTHER, HOOK, Duration::ZERO);
    fixture.wait_for_rounds(10).await;
    assert_eq!(fixture.completed(), Vec::<String>::new(), "c does not vote");
    let extended = fixture.aws.lock_state().extended_hooks.clone();
    assert!(extended.len() > 1 && extended.iter().all(|id| id == OTHER));
    fixture.store_report(THIRD, "c", false);
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), [OTHER]);
}

#[tokio::test]
async fn one_node_that_cannot_be_changed_holds_up_no_other() {
    let instances = [INSTANCE, OTHER].map(|id| instance(id, "running", "node"));
    let fixture = start(instances.to_vec(), settings()).await;
    fixture.api.lock_objects().stuck.insert(INSTANCE.to_owned());
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::ZERO);
    fixture.terminate_by_group(OTHER, HOOK, Duration::ZERO);
    fixture
        .api
        .wait_until(|_| fixture.completed() == [OTHER])
        .await;
    fixture.api.lock_objects().stuck.clear();
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), [OTHER, INSTANCE]);
}

/// Nothing was done to any Node, and nothing was completed.
fn assert_nothing_happened(fixture: &Fixture, what: &str) {
    let objects = fixture.api.lock_objects();
    assert!(objects.patches.is_empty(), "{what}: {:?}", objects.patches);
    assert!(objects.evictions.is_empty(), "{what}");
    drop(objects);
    assert_eq!(fixture.completed(), Vec::<String>::new(), "{what}");
}

#[tokio::test]
async fn aws_is_believed_and_not_the_message() {
    let minute = Duration::from_mins(1);
    let state = |fixture: &Fixture, state: &str| {
        let detail = json!({"instance-id": INSTANCE, "state": state});
        let kind = "EC2 Instance State-change Notification";
        fixture.send("aws.ec2", kind, &detail, minute);
    };
    let stopping = |fixture: &Fixture| state(fixture, "stopping");
    let ending = |fixture: &Fixture| state(fixture, "shutting-down");
    let spot = |fixture: &Fixture| {
        let detail = json!({"instance-id": INSTANCE, "instance-action": "terminate"});
        let kind = "EC2 Spot Instance Interruption Warning";
        fixture.send("aws.ec2", kind, &detail, Duration::ZERO);
    };
    let rebalance = |fixture: &Fixture| {
        let detail = json!({"instance-id": INSTANCE});
        let kind = "EC2 Instance Rebalance Recommendation";
        fixture.send("aws.ec2", kind, &detail, Duration::ZERO);
    };
    let in_service = |fixture: &Fixture| {
        fixture.set_scaling_state(INSTANCE, "InService");
        fixture.announce_hook(INSTANCE, HOOK, minute);
    };
    let in_no_group = |fixture: &Fixture| fixture.announce_hook(INSTANCE, HOOK, minute);
    let of_another = |fixture: &Fixture| {
        let member = (format!("other.{NAME}"), "Terminating:Wait");
        let mut aws = fixture.aws.lock_state();
        aws.scaling.insert(INSTANCE.to_owned(), member);
        drop(aws);
        fixture.announce_hook(INSTANCE, HOOK, minute);
    };
    type Case<'a> = (&'a str, &'a dyn Fn(&Fixture));
    let cases: [Case<'_>; 7] = [
        ("stopping", &stopping),
        ("shutting-down", &ending),
        ("spot", &spot),
        ("rebalance", &rebalance),
        ("a hook in service", &in_service),
        ("a hook without a group", &in_no_group),
        ("a hook of another group", &of_another),
    ];
    for (what, send) in cases {
        let drains = Termination {
            rebalance: Rebalance::Drain,
            ..settings()
        };
        let fixture = start(vec![instance(INSTANCE, "running", "node")], drains).await;
        fixture.api.put_pod("web", INSTANCE, "ReplicaSet");
        send(&fixture);
        fixture.wait_until_done().await;
        assert_nothing_happened(&fixture, what);
        assert_eq!(fixture.details().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn an_event_that_is_not_of_now_is_dropped_and_ends_nothing() {
    let fixture = start(vec![instance(INSTANCE, "running", "node")], settings()).await;
    fixture.api.put_pod("web", INSTANCE, "ReplicaSet");
    fixture.set_scaling_state(INSTANCE, "Terminating:Wait");
    let hook = json!({"AutoScalingGroupName": format!("{GROUP}.{NAME}"), "LifecycleHookName": HOOK, "EC2InstanceId": INSTANCE});
    for time in [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "0000-01-01T00:00:00+23:59",
        "2026-01-01T00:00:00Z",
        "now",
    ] {
        fixture
            .aws
            .send_message(&json!({"source": "aws.autoscaling", "time": time,
            "detail-type": "EC2 Instance-terminate Lifecycle Action", "detail": hook}));
    }
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::from_hours(1));
    fixture.wait_until_done().await;
    assert_nothing_happened(&fixture, "times");
}

#[tokio::test]
async fn a_control_plane_that_etcd_needs_is_not_let_go_however_old_a_message_is() {
    let ids = [INSTANCE, OTHER, THIRD];
    let instances = ids.map(|id| instance(id, "running", "control-plane"));
    let fixture = start(instances.to_vec(), settings()).await;
    fixture
        .api
        .change_object(&format!("/api/v1/nodes/{OTHER}"), |node| {
            node["status"]["conditions"][0]["status"] = json!("Unknown");
        });
    fixture.terminate_by_group(INSTANCE, HOOK, Duration::from_secs(299));
    fixture.wait_for_rounds(20).await;
    assert_eq!(fixture.completed(), Vec::<String>::new());
    // Auto Scaling's own time is over.
    fixture.set_scaling_state(INSTANCE, "Terminating:Proceed");
    fixture.wait_until_done().await;
    assert_eq!(fixture.completed(), Vec::<String>::new());
}

#[tokio::test]
async fn one_message_about_all_instances_takes_one_control_plane_and_a_tenth_of_the_workers() {
    let id = |number: usize| format!("i-{number:017x}");
    let mut instances: Vec<FakeInstance> = (0..23)
        .map(|number| instance(&id(number), "running", "node"))
        .collect();
    instances.extend((23..26).map(|number| instance(&id(number), "running", "control-plane")));
    let fixture = start(instances, settings()).await;
    let entities: Vec<Value> = (0..26)
        .map(|number| json!({"entityValue": id(number)}))
        .collect();
    let detail = json!({"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": entities});
    fixture.send("aws.health", "AWS Health Event", &detail, Duration::ZERO);
    fixture.wait_for_rounds(5).await;
    let cordoned = || -> Vec<usize> {
        let all = 0..26;
        all.filter(|number| fixture.api.node_object(&id(*number))["spec"]["unschedulable"] == true)
            .collect()
    };
    assert_eq!(cordoned(), [0, 1, 23]);
    // Once one is back, the next one goes.
    fixture
        .api
        .change_object(&format!("/api/v1/nodes/{}", id(0)), |node| {
            node["metadata"]["annotations"] = Value::Null;
            node["spec"] = json!({});
        });
    fixture.api.wait_until(|_| cordoned().len() == 3).await;
    fixture.wait_for_rounds(5).await;
    let now = cordoned();
    assert!(
        now.len() == 3 && !now.contains(&0) && now.contains(&23),
        "{now:?}"
    );
}
