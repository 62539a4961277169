//! Members that leave the spec: `kctl update` has them removed before their groups go. A fake protokube changes the records; the real
//! one is tested in `protokube/tests/roles/removal_of_members.rs`. And members that are forgotten while a cluster is founded.

use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use etcd_rules::{FormationRecord, Generation, RecordedMember};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const ZONES: &str = "eu-west-1a,eu-west-1b,eu-west-1c";

/// A cluster with three control planes, whose machines the simulator does not run.
fn three_control_planes(simulator: &Simulator) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    kctl.run(&[
        "create",
        "cluster",
        NAME,
        "--zones",
        ZONES,
        "--control-plane-zones",
        ZONES,
        "--yes",
    ])
    .expect_success();
    kctl
}

fn read_record(simulator: &Simulator, etcd: &str) -> FormationRecord {
    let code = format!(
        "print(boto('s3').get_object(Bucket='state', Key='clusters/{NAME}/etcd/{etcd}.json')['Body'].read().decode())"
    );
    let text = simulator.run_python(REGION, &code);
    FormationRecord::parse(etcd, text.as_bytes()).expect("a record")
}

pub fn write_record(simulator: &Simulator, etcd: &str, record: &FormationRecord) {
    let text = serde_json::to_string(record).expect("JSON");
    let code = format!(
        "boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/etcd/{etcd}.json', Body={text:?}.encode())"
    );
    simulator.run_python(REGION, &code);
}

/// Ids of the volumes of etcd by name.
pub fn volume_ids(simulator: &Simulator) -> BTreeMap<String, String> {
    let code = "
for v in boto('ec2').describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['k8s.io/etcd/*']}])['Volumes']:
  print(next(t['Value'] for t in v['Tags'] if t['Key'] == 'Name'), v['VolumeId'])";
    let text = simulator.run_python(REGION, code);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

/// The record of three members.
fn record_of_three(
    volumes: &BTreeMap<String, String>,
    etcd: &str,
    generation: Generation,
) -> FormationRecord {
    let member = |name: &str| {
        let volume = &volumes[&format!("{name}.etcd-{etcd}.{NAME}")];
        let recorded = RecordedMember {
            member_id: Some(format!("1{name}")),
            ..RecordedMember::on_volume(volume, true)
        };
        (name.to_owned(), recorded)
    };
    FormationRecord::new(generation, ["a", "b", "c"].map(member).into())
}

/// What protokube on the instances of these members reports now. `leader`: they see a quorum. The clock of the operator is four minutes ahead
/// of theirs, which changes nothing.
fn report(
    simulator: &Simulator,
    volumes: &BTreeMap<String, String>,
    members: &[&str],
    leader: bool,
) {
    let volumes = serde_json::to_string(volumes).expect("JSON");
    let code = format!(
        "
import datetime, json
volumes = json.loads('{volumes}')
leader = '1a' if {leader} else None
for etcd in ['main', 'events']:
  for member in {members:?}:
    running = {{'name': 'etcd-' + member, 'id': '1' + member, 'clusterId': 'c1', 'leader': leader, 'term': 2, 'revision': 7, 'databaseBytes': 8192}}
    status = {{'format': 1, 'etcd': etcd, 'instance': 'i-' + member, 'volume': volumes[member + '.etcd-' + etcd + '.{NAME}'], 'running': running,
      'written': (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=4)).isoformat()}}
    key = 'clusters/{NAME}/etcd/' + etcd + '/i-' + member + '.status.json'
    boto('s3').put_object(Bucket='state', Key=key, Body=json.dumps(status).encode())",
        leader = if leader { "True" } else { "False" },
    );
    simulator.run_python(REGION, &code);
}

/// Returns the volumes.
fn form_etcd(simulator: &Simulator, leader: bool) -> BTreeMap<String, String> {
    let volumes = volume_ids(simulator);
    for etcd in ["main", "events"] {
        let record = record_of_three(&volumes, etcd, Generation::formed("c1", "t1"));
        write_record(simulator, etcd, &record);
    }
    report(simulator, &volumes, &["a", "b", "c"], leader);
    volumes
}

/// What protokube does, one step at a time.
fn remove_one(simulator: &Simulator, etcd: &str) {
    let mut record = read_record(simulator, etcd);
    let pending = record.pending_removals().next();
    let Some((member, leaving)) = pending.map(|(member, of)| (member.clone(), of.clone())) else {
        return;
    };
    if leaving.begun {
        let gone = record.members.remove(&member).expect("a member");
        record.retire_member(&member, &gone);
    } else {
        record.leaving.get_mut(&member).expect("it leaves").begun = true;
    }
    write_record(simulator, etcd, &record);
}

#[test]
fn members_that_leave_the_spec_are_removed_before_their_groups_go() {
    let simulator = Simulator::start_simulator();
    let kctl = three_control_planes(&simulator);
    let volumes = form_etcd(&simulator, true);
    let groups = ["control-plane-eu-west-1b", "control-plane-eu-west-1c"];
    // One of three would leave an even number.
    assert_eq!(kctl.run(&["delete", "ig", groups[0], "--yes"]).code, 2);
    let shown = kctl
        .run(&["delete", "ig", groups[0], groups[1]])
        .expect_success();
    assert!(
        shown.contains("with etcd members b and c of events, b and c of main"),
        "{shown}"
    );
    kctl.run(&["delete", "ig", groups[0], groups[1], "--yes"])
        .expect_success();
    let kept = volumes[&format!("c.etcd-main.{NAME}")].clone();
    report(&simulator, &volumes, &["a", "b", "c"], true);
    let preview = kctl.run(&["update", "--exit-code"]);
    assert_eq!(preview.code, 10, "{}", preview.all_output());
    let line = format!(
        "- etcd_member/main/c  (removed before anything else changes, one at a time; {kept} keeps its data)"
    );
    assert!(preview.out.contains(&line), "{}", preview.out);
    assert_eq!(preview.out.matches("- etcd_member/").count(), 4);
    assert!(
        read_record(&simulator, "main").leaving.is_empty(),
        "nothing is asked for yet"
    );
    report(&simulator, &volumes, &["a", "b", "c"], true);
    let json = kctl.run(&["update", "-o", "json"]).expect_success();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["etcd_members"].as_array().map(Vec::len),
        Some(4),
        "{json}"
    );
    report(&simulator, &volumes, &["a", "b", "c"], true);
    let over = AtomicBool::new(false);
    let applied = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(500));
                for etcd in ["main", "events"] {
                    remove_one(&simulator, etcd);
                }
            }
        });
        let applied = kctl.run(&["update", "--yes"]);
        over.store(true, Ordering::Relaxed);
        applied
    });
    assert_eq!(applied.code, 0, "{}", applied.all_output());
    // Which of its steps kctl sees depends on when it looks.
    let shown = applied.err.contains("member b of etcd main");
    assert!(shown, "{}", applied.err);
    for etcd in ["main", "events"] {
        let record = read_record(&simulator, etcd);
        assert!(record.members.keys().eq(["a"]) && record.has_left("b") && record.has_left("c"));
    }
    let listed = simulator.run_python(
        REGION,
        "print([g['AutoScalingGroupName'] for g in boto('autoscaling').describe_auto_scaling_groups()['AutoScalingGroups']])",
    );
    assert!(!listed.contains("control-plane-eu-west-1c"), "{listed}");
    let again = kctl.run(&["update", "--exit-code"]);
    assert_eq!(again.code, 0, "{}", again.all_output());
    assert!(
        again.out.contains(&kept),
        "the volume is kept: {}",
        again.out
    );
}

#[test]
fn nothing_is_removed_without_a_quorum_or_a_member_that_stays() {
    let simulator = Simulator::start_simulator();
    let kctl = three_control_planes(&simulator);
    let volumes = form_etcd(&simulator, false);
    let groups = ["control-plane-eu-west-1b", "control-plane-eu-west-1c"];
    kctl.run(&["delete", "ig", groups[0], groups[1], "--yes"])
        .expect_success();
    for command in [&["update"][..], &["update", "--yes"]] {
        let refused = kctl.run(command);
        assert_eq!(refused.code, 4, "{}", refused.all_output());
        let why = "no member has reported lately that it sees a leader";
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    let record = read_record(&simulator, "main");
    assert!(record.leaving.is_empty() && record.members.len() == 3);
    // The one that stays is not there.
    report(&simulator, &volumes, &["b"], true);
    let refused = kctl.run(&["update", "--yes"]);
    assert!(
        refused.err.contains("none of the members that stay"),
        "{}",
        refused.err
    );
}

#[test]
fn a_cluster_is_founded_without_a_member_whose_machine_does_not_come() {
    let simulator = Simulator::start_simulator();
    let kctl = three_control_planes(&simulator);
    let volumes = volume_ids(&simulator);
    for etcd in ["main", "events"] {
        let mut record = record_of_three(&volumes, etcd, Generation::forming("t1"));
        for (name, member) in &mut record.members {
            *member = RecordedMember::on_volume(&member.volume, name != "c");
        }
        write_record(&simulator, etcd, &record);
    }
    let seen = kctl.run(&["etcd", "forget", NAME, "a", "--etcd", "main", "--yes"]);
    assert_eq!(seen.code, 4, "{}", seen.all_output());
    assert!(
        seen.err.contains("an instance has taken vol-"),
        "{}",
        seen.err
    );
    let shown = kctl.run(&["etcd", "forget", NAME, "c"]).expect_success();
    assert!(
        shown.contains("etcd main: founded without member c, by a, b"),
        "{shown}"
    );
    assert!(shown.contains("of two members none may fail"), "{shown}");
    assert_eq!(read_record(&simulator, "main").members.len(), 3);
    kctl.run(&["etcd", "forget", NAME, "etcd-c", "--yes"])
        .expect_success();
    assert!(
        read_record(&simulator, "main")
            .members
            .keys()
            .eq(["a", "b"])
    );
    // The name of a member of events in etcd is another one.
    kctl.run(&["etcd", "forget", NAME, "c", "--yes"])
        .expect_success();
    assert!(
        read_record(&simulator, "events")
            .members
            .keys()
            .eq(["a", "b"])
    );
}

#[test]
fn events_without_a_quorum_are_given_up_and_main_never_is() {
    let simulator = Simulator::start_simulator();
    let kctl = three_control_planes(&simulator);
    form_etcd(&simulator, true);
    let give_up = |etcd: &str, yes: &[&str]| {
        kctl.run(&[&["etcd", "forget", NAME, "--etcd", etcd, "--all"], yes].concat())
    };
    let refused = give_up("main", &["--yes"]);
    assert_eq!(refused.code, 2, "{}", refused.all_output());
    assert!(
        refused.err.contains("it is not given up"),
        "{}",
        refused.err
    );
    let refused = give_up("events", &["--yes"]);
    assert_eq!(refused.code, 4, "{}", refused.all_output());
    assert!(
        refused.err.contains("etcd events has a leader"),
        "{}",
        refused.err
    );
    form_etcd(&simulator, false);
    let before = read_record(&simulator, "events");
    give_up("events", &[]).expect_success();
    assert_eq!(read_record(&simulator, "events"), before);
    give_up("events", &["--yes"]).expect_success();
    let after = read_record(&simulator, "events");
    assert!(after.is_forming() && after.has_given_up("c1"));
    for (name, member) in &before.members {
        assert!(after.retired_members(name).eq([member]));
    }
    assert!(after.unseen_members().count() == 3 && after.members.len() == 3);
}
