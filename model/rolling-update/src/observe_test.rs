//! Instances that will get no Node any more are replaced.

use super::*;
use fleet::{AwsFleet, BootSource, BootStage, Instance, RoleWait, check_health, instance_statuses};
use node::report::Status;

const NOW: i64 = 10_000;

fn launched_instance(age: i64) -> Instance {
    Instance {
        id: "i-1".to_owned(),
        scaling_group: Some("group.a".to_owned()),
        instance_group: Some("group".to_owned()),
        state: "running".to_owned(),
        lifecycle: Some("InService".to_owned()),
        launched: Some(NOW - age),
        ..Instance::default()
    }
}

fn boot_stage(stage: &str, status: Status, error: Option<&str>) -> BootStage {
    BootStage {
        stage: stage.to_owned(),
        status: Some(status),
        at: None,
        error: error.map(str::to_owned),
        note: None,
        next: None,
        changes: None,
        changed: Vec::new(),
        known_from: BootSource::Report,
    }
}

fn failed_wait() -> RoleWait {
    RoleWait {
        role: "etcd-main".to_owned(),
        about: String::new(),
        status: Status::Failed,
        message: "its log is gone".to_owned(),
        since: String::new(),
        next: None,
        seconds: Some(600),
    }
}

/// What a rolling update sees of the only instance, which has no Node.
fn observe_one(role: Role, age: i64, boot: &BootStage, waits: &[RoleWait]) -> RollingInstance {
    let aws = AwsFleet {
        instances: vec![launched_instance(age)],
        scaling_groups: Vec::new(),
    };
    let group = fleet::Group {
        name: "group".to_owned(),
        role: Some(role),
        min: None,
        max: None,
    };
    let mut instances = instance_statuses(&aws, std::slice::from_ref(&group), Some(&[]));
    for status in &mut instances {
        status.boot = Some(boot.clone());
        status.waits = waits.to_vec();
    }
    let fleet = Fleet {
        scaling_groups: Vec::new(),
        instances,
        nodes: Ok(Vec::new()),
        pods: Vec::new(),
        launch_failures: BTreeMap::new(),
        gaps: Vec::new(),
    };
    let limits = GroupLimits {
        name: "group".to_owned(),
        role,
        max_surge: None,
        max_unavailable: None,
    };
    let seen = observe(
        &ClusterState {
            now: NOW,
            fleet: &fleet,
            health: &check_health(&[group], &fleet),
            nodes: &[],
            pods: &[],
            etcd: &BTreeMap::new(),
            reports: &[],
            traffic: &BTreeMap::new(),
        },
        &Selection {
            groups: &[limits],
            launched_before: None,
            only: None,
        },
    );
    seen.instances.into_iter().next().unwrap()
}

#[test]
fn an_instance_that_is_up_for_ten_minutes_without_a_node_is_replaced() {
    let done = || boot_stage("nodeup/apply", Status::Finished, None);
    for role in [Role::ControlPlane, Role::Node] {
        let lost = observe_one(role, 600, &done(), &[]);
        assert!(lost.outdated.is_some_and(|why| why.contains("no Node")));
        let condition = match role {
            // It serves, and goes only while etcd keeps its quorum.
            Role::ControlPlane => Condition::Ready,
            _ => Condition::NotReady,
        };
        assert_eq!(lost.condition, condition);

        let failed = boot_stage("nodeup/apply", Status::Failed, Some("no space"));
        let going = boot_stage("nodeup/apply", Status::Started, None);
        for (age, boot) in [(599, done()), (600, failed), (600, going)] {
            let seen = observe_one(role, age, &boot, &[]);
            assert_eq!((seen.outdated, seen.condition), (None, Condition::Booting));
        }
    }
    // The console's last failure of a role may be of the time when etcd was restored.
    let serving = boot_stage("protokube/removal", Status::Failed, Some("refused"));
    let seen = observe_one(Role::ControlPlane, 600, &serving, &[]);
    assert!(seen.outdated.is_some());
    let seen = observe_one(Role::ControlPlane, 600, &serving, &[failed_wait()]);
    assert_eq!((seen.outdated, seen.condition), (None, Condition::Booting));
}
