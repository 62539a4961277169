//! Instances that will get no Node any more are replaced.

use super::*;
use crate::{Action, Progress, Record, Settings, decide};
use etcd_rules::{MemberStatus, RunningMember, describe_members};
use fleet::{
    AwsFleet, BootSource, BootStage, Instance, RoleWait, ScalingGroup, check_health,
    instance_statuses,
};
use node::report::Status;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const NOW: i64 = 10_000;

/// The only instance of a group: `i-GROUP`.
fn launched_instance(group: &str, age: i64) -> Instance {
    Instance {
        id: format!("i-{group}"),
        scaling_group: Some(format!("{group}.demo")),
        instance_group: Some(group.to_owned()),
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

fn scaling_group(group: &str) -> ScalingGroup {
    ScalingGroup {
        name: format!("{group}.demo"),
        instance_group: Some(group.to_owned()),
        min: 1,
        desired: 1,
        max: 1,
        template: None,
        suspended: Vec::new(),
        target_groups: Vec::new(),
    }
}

/// A member of etcd for main, `etcd-GROUP`, that reports itself from the instance of its group.
fn report_member(group: &str) -> MemberStatus {
    MemberStatus {
        etcd: "main".to_owned(),
        instance: format!("i-{group}"),
        written: OffsetDateTime::from_unix_timestamp(NOW)
            .unwrap()
            .format(&Rfc3339)
            .unwrap(),
        running: Some(RunningMember {
            name: format!("etcd-{group}"),
            ..RunningMember::default()
        }),
        ..MemberStatus::default()
    }
}

/// What a rolling update sees of groups of one instance each, none of which has a Node.
fn observe_without_nodes(
    role: Role,
    names: &[&str],
    age: i64,
    (boot, waits): (&BootStage, &[RoleWait]),
    reports: Vec<MemberStatus>,
) -> Observed {
    let group = |name: &&str| fleet::Group {
        name: (*name).to_owned(),
        role: Some(role),
        min: None,
        max: None,
    };
    let limits = |name: &&str| GroupLimits {
        name: (*name).to_owned(),
        role,
        max_surge: None,
        max_unavailable: None,
    };
    let groups: Vec<fleet::Group> = names.iter().map(group).collect();
    let aws = AwsFleet {
        instances: { names.iter() }
            .map(|name| launched_instance(name, age))
            .collect(),
        scaling_groups: Vec::new(),
    };
    let mut instances = instance_statuses(&aws, &groups, Some(&[]));
    for status in &mut instances {
        status.boot = Some(boot.clone());
        status.waits = waits.to_vec();
    }
    let fleet = Fleet {
        scaling_groups: names.iter().map(|name| scaling_group(name)).collect(),
        instances,
        nodes: Ok(Vec::new()),
        pods: Vec::new(),
        launch_failures: BTreeMap::new(),
        gaps: Vec::new(),
    };
    let member = |name: &&str| (format!("etcd-{name}"), (*name).to_owned());
    let members = names.iter().map(member).collect();
    let now = OffsetDateTime::from_unix_timestamp(NOW).unwrap();
    observe(
        &ClusterState {
            now: NOW,
            fleet: &fleet,
            health: &check_health(&groups, &fleet),
            nodes: &[],
            pods: &[],
            etcd: &[("main".to_owned(), members)].into(),
            reports: &describe_members(reports, now),
            traffic: &BTreeMap::new(),
        },
        &Selection {
            groups: &names.iter().map(limits).collect::<Vec<_>>(),
            launched_before: None,
            only: None,
        },
    )
}

fn observe_one(role: Role, age: i64, boot: &BootStage, waits: &[RoleWait]) -> RollingInstance {
    let seen = observe_without_nodes(role, &["a"], age, (boot, waits), Vec::new());
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

#[test]
fn of_three_control_planes_without_nodes_one_goes_and_only_if_both_others_report_their_members() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let done = boot_stage("nodeup/apply", Status::Finished, None);
    for silent in [None, Some("b"), Some("c")] {
        let reporting = { NAMES.iter() }.filter(|name| Some(**name) != silent);
        let reports = reporting.map(|name| report_member(name)).collect();
        let seen = observe_without_nodes(Role::ControlPlane, &NAMES, 600, (&done, &[]), reports);
        for (instance, name) in seen.instances.iter().zip(NAMES) {
            assert!(instance.outdated.is_some() && instance.condition == Condition::Ready);
            let member = { seen.etcd[0].members.iter() }.find(|one| one.name.ends_with(name));
            assert_eq!(member.unwrap().problem.is_some(), silent == Some(name));
        }
        let settings = Settings::default();
        let decided = decide(
            &seen,
            &Record::default(),
            &settings,
            &mut Progress::default(),
        );
        let terminate = Action::Terminate {
            instance: "i-a".to_owned(),
        };
        let first = silent.is_none().then_some(terminate);
        assert_eq!(decided.actions, first.into_iter().collect::<Vec<_>>());
    }
}
