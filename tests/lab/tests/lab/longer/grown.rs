//! etcd grows from one member to three and to five by edits of the spec, and shrinks to three, while clients write. Between, the control
//! plane from before is replaced.

use super::super::cluster::{self, CLUSTER};
use super::super::etcd;
use super::super::faults::crashes;
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, describe_gaps, unix_time};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The spec with three control planes, from which the one with a single one is made: their subnets are equal.
const SPEC: [&str; 4] = [
    "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c",
    "--networking=flannel",
    "--dns=none",
    "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
];

/// Names of the control planes' groups that are added begin with it, and end with the zone.
const GROUP: &str = "control-plane-us-east-1";

pub fn run(lab: &mut Lab) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [one, three, five] = lab.run_step("specs with one, three and five", |lab| {
        write_specs(lab, folder.path())
    })?;
    lab.run_step("kctl makes a cluster of one control plane", |lab| {
        lab.run_kctl(&["create", "-f", path_text(&one)?])?;
        lab.run_kctl(&["update", CLUSTER, "--yes"])?;
        lab.run_kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])?;
        cluster::expect_ready(lab, 1)?;
        cluster::expect_healthy(lab)
    })?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    lab.run_step("two control planes are added", |lab| {
        grow(lab, path_text(&three)?, &writers)
    })?;
    lab.run_step("the first control plane is replaced", |lab| {
        replace_first(lab, &writers)
    })?;
    lab.run_step("two more control planes are added", |lab| {
        grow_to_five(lab, path_text(&five)?, &writers)
    })?;
    lab.run_step("the two leave again", |lab| shrink(lab, &writers))?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

fn write_specs(lab: &Lab, folder: &Path) -> Result<[PathBuf; 3]> {
    lab.create_store()?;
    let words = [
        "--zones=us-east-1a",
        "--node-count=2",
        "--dry-run",
        "-o",
        "json",
    ];
    let said = lab.create_cluster(CLUSTER, &[&words[..], &SPEC].concat())?;
    let three: Vec<Value> = serde_json::from_str(&said)?;
    let one = with_one_control_plane(&three)?;
    let five = with_five_control_planes(&three)?;
    let files = ["one.yaml", "three.yaml", "five.yaml"].map(|name| folder.join(name));
    for (file, objects) in files.iter().zip([one, three, five]) {
        std::fs::write(file, to_documents(&objects))?;
    }
    Ok(files)
}

/// The groups d and e are like a and b, in their zones.
fn with_five_control_planes(three: &[Value]) -> Result<Vec<Value>> {
    let mut objects = three.to_vec();
    for (like, added) in [("a", "d"), ("b", "e")] {
        let (like_group, added_group) = (format!("{GROUP}{like}"), format!("{GROUP}{added}"));
        let group = three
            .iter()
            .find(|object| object["metadata"]["name"] == like_group.as_str());
        let text = group.context("a group")?.to_string();
        objects.push(serde_json::from_str(
            &text.replace(&like_group, &added_group),
        )?);
        for object in &mut objects {
            let etcds = object.pointer_mut("/spec/etcdClusters");
            for etcd in etcds.and_then(Value::as_array_mut).into_iter().flatten() {
                let members = etcd["etcdMembers"].as_array_mut().context("members")?;
                let own = members.iter().find(|one| one["name"] == like);
                let mut member = own.context("a member")?.clone();
                member["name"] = added.into();
                member["instanceGroup"] = added_group.as_str().into();
                members.push(member);
            }
        }
    }
    Ok(objects)
}

/// Documents of YAML, of which JSON is a part.
fn to_documents(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

fn with_one_control_plane(three: &[Value]) -> Result<Vec<Value>> {
    let is_added = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.starts_with(GROUP) && !name.ends_with('a')
    };
    let mut objects = three.to_vec();
    objects.retain(|object| !is_added(&object["metadata"]["name"]));
    for object in &mut objects {
        let etcds = object.pointer_mut("/spec/etcdClusters");
        for etcd in etcds.and_then(Value::as_array_mut).into_iter().flatten() {
            let members = etcd["etcdMembers"].as_array_mut().context("members")?;
            members.retain(|member| !is_added(&member["instanceGroup"]));
            ensure!(members.len() == 1, "{members:?}");
        }
    }
    Ok(objects)
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

fn grow(lab: &mut Lab, three: &str, writers: &Writers) -> Result<()> {
    let begun = unix_time()?;
    lab.run_kctl(&["replace", "-f", three, "--force"])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    etcd::expect_three_voters(lab)?;
    print_times("three members vote", writers, begun)?;
    for instance in cluster::control_planes(lab, 3)? {
        cluster::becomes_ready(lab, &instance.id)?;
    }
    cluster::expect_healthy(lab)?;
    etcd::expect_reported(lab)
}

fn replace_first(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let begun = unix_time()?;
    let roles = ["--instance-group-roles", "control-plane", "--yes"];
    lab.run_kctl(&[&["rolling-update", CLUSTER], &roles[..]].concat())?;
    print_times("the control plane from before is replaced", writers, begun)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_reported(lab)
}

/// The groups that are added last, without the cluster's name.
const ADDED: [&str; 2] = ["control-plane-us-east-1d", "control-plane-us-east-1e"];

fn grow_to_five(lab: &mut Lab, five: &str, writers: &Writers) -> Result<()> {
    let begun = unix_time()?;
    lab.run_kctl(&["replace", "-f", five, "--force"])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    etcd::expect_voters(lab, 5)?;
    print_times("five members vote", writers, begun)?;
    for group in ADDED {
        let name = format!("{group}.masters.{CLUSTER}");
        let instance = lab.wait_for_members(&name, 1)?.remove(0);
        cluster::becomes_ready(lab, &instance.id)?;
    }
    Ok(())
}

fn shrink(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let begun = unix_time()?;
    let [one, other] = ADDED;
    lab.run_kctl(&["delete", "ig", one, other, "--name", CLUSTER, "--yes"])?;
    let preview = lab.run_kctl(&["update", CLUSTER])?;
    for member in ["main/d", "main/e", "events/d", "events/e"] {
        let line = format!("- etcd_member/{member}  ");
        ensure!(preview.contains(&line), "{preview}");
    }
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    print_times(
        "two members and their control planes are gone",
        writers,
        begun,
    )?;
    etcd::expect_three_voters(lab)?;
    cluster::expect_healthy(lab)
}

fn print_times(what: &str, writers: &Writers, begun: f64) -> Result<()> {
    let now = unix_time()?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, now);
    eprintln!("       {what} after {:.1} s; {gaps}", now - begun);
    Ok(())
}
