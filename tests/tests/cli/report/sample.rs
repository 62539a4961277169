//! Reports of clusters, made by hand. Every text that AWS, the cluster or a user may have written goes through `say`.

use aws_client::store::Version;
use cli::state::{ListedOperation, LockKind, ObservedLock};
use cli::ui::etcd::RestorableRow;
use cli::ui::health::Warning;
use cli::ui::report::{Report, SeenLock};
use etcd_rules::backup::{BackupDrill, BackupFailure, BackupState, LastSnapshot};
use etcd_rules::{MemberStatus, ReportedMember, RunningMember, describe_members};
use fleet::{
    BootSource, BootStage, Finding, FindingKind, GroupHealth, Health, Instance, InstanceStatus,
    Membership, Node, TemplateVersion, UpToDate,
};
use node::config::Role;
use node::report::{BootReport, REPORT_FORMAT, Stage, Status};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use time::macros::datetime;

pub type Say = fn(&str) -> String;

const NOW: OffsetDateTime = datetime!(2026-11-21 10:05 UTC);

/// When instances were launched: 10:00 of the same day.
const LAUNCHED: i64 = 1_795_255_200;

const SNAPSHOT: &str = "20261121T100000Z";

/// Three instances: one that is well, one that did not boot, and one that is being replaced.
pub fn small_report(say: Say) -> Report {
    let control_plane = instance("i-1", "control-plane-a", Role::ControlPlane, say);
    let failed = failed_instance("i-2", "nodes-a", say);
    let mut leaving = instance("i-3", "nodes-a", Role::Node, say);
    if let Some(node) = &mut leaving.node {
        node.unschedulable = true;
    }
    leaving.up_to_date = UpToDate::NeedsUpdate {
        launched_from: template("1", say),
        group_launches: template("2", say),
    };
    let boots = [
        boot_report("i-1", "10:00:40", &[("fetch", 1.5), ("apply", 60.25)], say),
        failed_boot("i-2", say),
    ];
    Report {
        cluster: say("demo.example.com"),
        at: NOW,
        health: health(
            vec![
                group("control-plane-a", "ControlPlane", 1, say),
                group("nodes-a", "Node", 2, say),
            ],
            vec![failed_finding("i-2", "nodes-a", say)],
        ),
        warnings: vec![Warning {
            topic: "etcd",
            message: say("etcd-a waits long for its disk"),
        }],
        gaps: vec![say("nodes/i-3.json is not a boot report")],
        instances: vec![control_plane, failed, leaving],
        boots: boots.into(),
        members: members(say),
        backups: backups(say),
        restorable: vec![RestorableRow {
            etcd: say("main"),
            until: Some(say("2026-11-21T10:04:55Z")),
            age_seconds: Some(5),
            snapshot: say(SNAPSHOT),
            parts: 59,
            clock: None,
        }],
        operations: operations(say),
        locks: vec![held_lock(say)],
    }
}

/// One with so many instances in three groups, of which every 34th did not boot.
pub fn large_report(count: usize) -> Report {
    let say = str::to_owned;
    let names = ["nodes-a", "nodes-b", "nodes-c"];
    let each = count / names.len();
    let (mut instances, mut boots, mut findings) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (of, name) in names.into_iter().enumerate() {
        for number in 0..each {
            let id = format!("i-{:017x}", of * each + number);
            if number.is_multiple_of(34) {
                instances.push(failed_instance(&id, name, say));
                boots.extend([failed_boot(&id, say)]);
                findings.push(failed_finding(&id, name, say));
            } else {
                let stages = [("fetch", 1.5), ("apply", 60.0)];
                instances.push(instance(&id, name, Role::Node, say));
                boots.extend([boot_report(&id, "10:00:40", &stages, say)]);
            }
        }
    }
    let wanted = i32::try_from(each).expect("a number");
    let groups = names.map(|name| group(name, "Node", wanted, say));
    Report {
        instances,
        boots,
        health: health(groups.into(), findings),
        ..small_report(say)
    }
}

fn instance(id: &str, group: &str, role: Role, say: Say) -> InstanceStatus {
    InstanceStatus {
        instance: Instance {
            id: say(id),
            instance_group: Some(say(group)),
            zone: say("eu-west-1a"),
            machine_type: say("t3.medium"),
            state: say("running"),
            lifecycle: Some(say("InService")),
            launched: Some(LAUNCHED),
            ..Instance::default()
        },
        role: Some(role),
        up_to_date: UpToDate::Current,
        membership: Membership::Ready,
        node: Some(Node {
            name: say(id),
            ready: true,
            ..Node::default()
        }),
        boot: None,
        waits: Vec::new(),
    }
}

/// One that has no Node, because nodeup failed.
fn failed_instance(id: &str, group: &str, say: Say) -> InstanceStatus {
    InstanceStatus {
        membership: Membership::NotJoined,
        node: None,
        boot: Some(BootStage {
            stage: say("nodeup/apply"),
            status: Some(Status::Failed),
            at: Some(say("2026-11-21T10:01:00Z")),
            error: Some(say("exit code 1")),
            note: None,
            next: Some(say("see journalctl -u nodeup")),
            changes: Some(3),
            changed: vec![say("unit/containerd.service")],
            known_from: BootSource::Report,
        }),
        ..instance(id, group, Role::Node, say)
    }
}

fn failed_finding(id: &str, group: &str, say: Say) -> Finding {
    Finding {
        kind: FindingKind::Instance,
        name: say(id),
        message: say(&format!("the instance of {group} has not joined")),
        next: Some(say("see journalctl -u nodeup")),
    }
}

fn template(version: &str, say: Say) -> TemplateVersion {
    TemplateVersion {
        id: say("lt-1"),
        version: say(version),
    }
}

fn group(name: &str, role: &'static str, desired: i32, say: Say) -> GroupHealth {
    GroupHealth {
        name: say(name),
        role,
        min: Some(1),
        desired: Some(desired),
        max: Some(300),
        instances: 1,
        ready: Some(1),
    }
}

fn health(groups: Vec<GroupHealth>, findings: Vec<Finding>) -> Health {
    Health {
        healthy: false,
        api_error: None,
        groups,
        nodes: Vec::new(),
        not_joined: Vec::new(),
        findings,
        ignored: Vec::new(),
    }
}

/// An instance, and the report of a run that began at this time of the day.
fn boot_report(id: &str, started: &str, stages: &[(&str, f64)], say: Say) -> (String, BootReport) {
    let stages = stages.iter().map(|(name, seconds)| Stage {
        name: say(name),
        status: Status::Finished,
        seconds: *seconds,
    });
    let report = BootReport {
        format: REPORT_FORMAT,
        instance: say(id),
        cluster: say("demo.example.com"),
        group: say("nodes-a"),
        release: say("0.1.0"),
        fips: false,
        node_config: say("00"),
        started: format!("2026-11-21T{started}Z"),
        stages: stages.collect(),
        changes: 3,
        changed: Vec::new(),
        error: None,
    };
    (say(id), report)
}

fn failed_boot(id: &str, say: Say) -> (String, BootReport) {
    let stages = [("fetch", 2.0), ("apply", 4.0)];
    let (id, mut report) = boot_report(id, "10:01:00", &stages, say);
    report.stages[1].status = Status::Failed;
    report.error = Some(say("exit code 1"));
    (id, report)
}

fn members(say: Say) -> Vec<ReportedMember> {
    let member = MemberStatus {
        etcd: say("main"),
        instance: say("i-1"),
        written: "2026-11-21T10:04:40Z".to_owned(),
        volume: Some(say("vol-1")),
        free_bytes: Some(18 << 30),
        running: Some(RunningMember {
            name: say("etcd-a"),
            id: say("8e"),
            leader: Some(say("8e")),
            term: 4,
            revision: 2700,
            version: say("3.6.5"),
            database_bytes: 20 << 20,
            quota_bytes: Some(8 << 30),
            fsync_p99_seconds: Some(0.008),
            ..RunningMember::default()
        }),
        ..MemberStatus::default()
    };
    describe_members(vec![member], NOW)
}

fn backups(say: Say) -> BTreeMap<String, BackupState> {
    let last = LastSnapshot {
        name: say(SNAPSHOT),
        store: say("s3://b/x"),
        instance: say("i-1"),
        cluster_id: None,
        revision: 2600,
        compressed_bytes: 1 << 20,
        taken_at: say("2026-11-21T10:00:00Z"),
        cluster_state_problem: None,
    };
    let events = BackupState {
        last: Some(last.clone()),
        failure: Some(BackupFailure {
            reason: say("the root disk is full"),
            instance: say("i-1"),
            at: say("2026-11-21T10:01:00Z"),
            count: 2,
            age_seconds: 0,
        }),
        ..BackupState::default()
    };
    let main = BackupState {
        last: Some(last),
        drill: Some(BackupDrill {
            name: say(SNAPSHOT),
            instance: say("i-1"),
            at: say("2026-11-21T09:00:00Z"),
            seconds: 9,
            found: say("900 keys"),
            failed: false,
        }),
        ..BackupState::default()
    };
    [(say("events"), events), (say("main"), main)].into()
}

fn operations(say: Say) -> Vec<ListedOperation> {
    let (user, hour) = (say("jane@laptop"), "2026-11-21T09:50:00.5Z");
    let running = json!({"format": 1, "command": "rolling-update", "version": "0.1.0", "who": user, "process": 7,
        "started": "2026-11-21T10:02:00Z", "outcome": "running"});
    let ended = json!({"format": 1, "command": say("update"), "version": "0.1.0", "who": user, "process": 6,
        "started": hour, "outcome": say("done"), "took_ms": 61_000});
    let all = [
        ("20261121T100200Z-00000002", true, running),
        ("20261121T095000Z-00000001", false, ended),
    ];
    let all = all.map(|(id, runs, record)| ListedOperation {
        id: say(id),
        record: Ok(serde_json::from_value(record).expect("an operation")),
        runs,
    });
    all.into()
}

fn held_lock(say: Say) -> SeenLock {
    let holder = json!({"who": say("jane@laptop"), "host": say("laptop"), "process": 7, "what": say("rolling-update"),
        "since": "2026-11-21T10:02:00Z", "renewed": 3});
    SeenLock {
        kind: LockKind::RollingUpdate,
        lock: ObservedLock {
            holder: serde_json::from_value(holder).ok(),
            version: Version("1".to_owned()),
            age: Some(Duration::from_secs(5)),
        },
    }
}
