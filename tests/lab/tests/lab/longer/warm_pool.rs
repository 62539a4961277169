//! A warm pool: an instance prepares, stops without having been a Node, and becomes one when its group grows; one of the pool is
//! replaced without a drain.

use super::super::cluster::{self, CLUSTER, WORKERS};
use super::super::{PATIENCE, Step};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};

const GROUP: &str = "nodes-us-east-1a";

pub const STEPS: [Step; 7] = [
    (
        "kctl makes a cluster whose workers have a warm pool",
        make_cluster,
    ),
    ("an instance prepares and stops", |lab| {
        wait_for_warm(lab).map(drop)
    }),
    ("the other instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    (
        "kctl says that it is healthy, and shows the pool",
        expect_no_node,
    ),
    ("the group grows by the instance of the pool", grow),
    ("the instance of the pool is replaced by name", replace_warm),
    (
        "a pool that leaves the spec takes its instances along",
        remove_pool,
    ),
];

fn make_cluster(lab: &mut Lab) -> Result<()> {
    let words = [
        "--networking=flannel",
        "--dns=none",
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
        "--set=spec.warmPool.enableLifecycleHook=true",
        "--set=spec.warmPool.maxSize=3",
    ];
    cluster::create_cluster(lab, &words)
}

/// The lifecycle states in the pool, by instance.
fn pool(lab: &Lab) -> Result<Vec<(String, String)>> {
    let group = json!({"AutoScalingGroupName": WORKERS});
    let answer = lab.call_aws("autoscaling", "DescribeWarmPool", &group)?;
    let instances = answer["Instances"].as_array().context("instances")?;
    let text = |one: &Value, field: &str| one[field].as_str().map(str::to_owned);
    let read = |one: &Value| text(one, "InstanceId").zip(text(one, "LifecycleState"));
    let found: Option<Vec<_>> = instances.iter().map(read).collect();
    found.context("an instance without id or state")
}

/// Waits until one instance is in the pool, ready.
fn wait_for_warm(lab: &Lab) -> Result<String> {
    lab.wait_until("an instance of the pool is ready", PATIENCE, |lab| {
        let pool = pool(lab)?;
        match pool.as_slice() {
            [(id, state)] if state == "Warmed:Stopped" => Ok(id.clone()),
            other => anyhow::bail!("the pool is {other:?}"),
        }
    })
}

fn node_names(lab: &Lab) -> Result<Vec<String>> {
    let nodes = lab.get_objects(&["nodes"])?;
    let nodes = nodes["items"].as_array().context("Nodes")?;
    let names = nodes
        .iter()
        .filter_map(|node| node["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

fn expect_no_node(lab: &mut Lab) -> Result<()> {
    cluster::expect_healthy(lab)?;
    let warm = wait_for_warm(lab)?;
    ensure!(!lab.is_on(&warm)?, "{warm} runs");
    ensure!(!node_names(lab)?.contains(&warm), "{warm} is a Node");
    let shown = lab.run_kctl(&["get", "instances", CLUSTER])?;
    let mut lines = shown.lines().filter(|line| line.contains(&warm));
    let line = lines.next().with_context(|| shown.clone())?;
    ensure!(line.contains("warmed"), "{line}");
    let preview = lab.run_kctl(&["rolling-update", CLUSTER, "-o", "json"])?;
    let preview: Value = serde_json::from_str(&preview)?;
    ensure!(preview["instances"] == json!([]), "{preview}");
    Ok(())
}

fn grow(lab: &mut Lab) -> Result<()> {
    let warm = wait_for_warm(lab)?;
    let sizes = ["--set=spec.minSize=3", "--set=spec.maxSize=3"];
    let group = ["edit", "ig", GROUP, "--name", CLUSTER];
    lab.run_kctl(&[&group[..], &sizes].concat())?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    cluster::becomes_ready(lab, &warm)?;
    let asked = json!({"InstanceIds": [&warm]});
    lab.wait_until("its launch is complete", PATIENCE, |lab| {
        let answer = lab.call_aws("autoscaling", "DescribeAutoScalingInstances", &asked)?;
        let state = &answer["AutoScalingInstances"][0]["LifecycleState"];
        ensure!(*state == "InService", "{answer}");
        Ok(())
    })?;
    let workers = lab.wait_for_members(WORKERS, 3)?;
    ensure!(workers.iter().any(|one| one.id == warm), "{workers:?}");
    ensure!(pool(lab)?.is_empty(), "{:?}", pool(lab)?);
    Ok(())
}

fn replace_warm(lab: &mut Lab) -> Result<()> {
    let size = "--set=spec.warmPool.maxSize=4";
    lab.run_kctl(&["edit", "cluster", CLUSTER, size])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let old = wait_for_warm(lab)?;
    let before = node_names(lab)?;
    let words = ["delete", "instance", &old, "--name", CLUSTER, "--yes"];
    lab.run_kctl(&words)?;
    let new = lab.wait_until("another instance is in the pool", PATIENCE, |lab| {
        let new = wait_for_warm(lab)?;
        ensure!(new != old, "{old} is still there");
        Ok(new)
    })?;
    ensure!(!lab.is_on(&new)?, "{new} runs");
    let after = node_names(lab)?;
    ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}

fn remove_pool(lab: &mut Lab) -> Result<()> {
    let warm = wait_for_warm(lab)?;
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--unset=spec.warmPool"])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    lab.wait_until("the instance of the pool is gone", PATIENCE, |lab| {
        let world = lab.fetch_world()?;
        let left = world.instances.iter().find(|one| one.id == warm);
        let gone = left.is_none_or(|one| one.state == lab::aws_state::InstanceState::Terminated);
        ensure!(gone, "{left:?}");
        Ok(())
    })?;
    lab.wait_for_members(WORKERS, 3).map(drop)
}
