//! etcd grows from one member to three by an edit of the spec, while clients write; the control plane from before is then replaced.

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
    let (one, three) = lab.run_step("specs with one and three control planes", |lab| {
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
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

fn write_specs(lab: &Lab, folder: &Path) -> Result<(PathBuf, PathBuf)> {
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
    let files = (folder.join("one.yaml"), folder.join("three.yaml"));
    std::fs::write(&files.0, to_documents(&one))?;
    std::fs::write(&files.1, to_documents(&three))?;
    Ok(files)
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

fn print_times(what: &str, writers: &Writers, begun: f64) -> Result<()> {
    let now = unix_time()?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, now);
    eprintln!("       {what} after {:.1} s; {gaps}", now - begun);
    Ok(())
}
