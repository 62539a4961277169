//! A cluster as people have them: roles of pods, claims, a chart, metrics, a group of several instance types. All of it goes on while every
//! instance is replaced under load.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, pods, volumes};
use super::{charts, metrics, roles, rolled};
use anyhow::{Result, ensure};
use lab::host::Release;
use lab::scenario::Lab;
use serde_json::Value;

/// A group of two instance types.
const MIXED: &str = "
apiVersion: kops.k8s.io/v1alpha2
kind: InstanceGroup
metadata:
  name: mixed
  labels: {kops.k8s.io/cluster: demo.example.com}
spec:
  role: Node
  image: @IMAGE@
  machineType: m5.large
  minSize: 1
  maxSize: 1
  subnets: [us-east-1a]
  mixedInstancesPolicy:
    instances: [m5.large, m5a.large]
    onDemandAboveBase: 0
    spotAllocationStrategy: capacity-optimized
";

const MIXED_GROUP: &str = "mixed.demo.example.com";

/// One control plane, two workers, and one of [`MIXED`].
const NODES: usize = 4;

/// From the creation of the cluster to its end.
pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster", |lab| {
        roles::make_cluster_with(lab, &metrics::SETTINGS)
    })?;
    lab.run_step("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    })?;
    lab.run_step("a pod writes to a volume", volumes::use_claim)?;
    lab.run_step("a pod gets its role and no more", roles::use_role)?;
    lab.run_step("a chart is installed", charts::install)?;
    lab.run_step("with bad values it says why it fails", charts::spoil)?;
    lab.run_step("mended it heals", charts::mend)?;
    lab.run_step("six pods run on the workers", pods::run_pods)?;
    lab.run_step("a group of two instance types has a node", add_mixed_group)?;
    lab.run_step("kubectl top shows what nodes and pods use", |lab| {
        metrics::show_usage(lab, NODES)
    })?;
    lab.run_step("an autoscaler follows the usage", metrics::scale_by_usage)?;
    lab.run_step("kctl says that it is healthy", expect_healthy)?;
    let calls = lab.run_step("two pods call the service", |lab| {
        lab.start_service_calls(PATIENCE)
    })?;
    lab.run_step("kctl replaces every instance", replace_all)?;
    lab.run_step(
        "pods reach each other and services",
        pods::expect_connections,
    )?;
    lab.run_step("no call of the service failed", |_| {
        rolled::check_calls(calls)
    })?;
    lab.run_step("kubectl top shows the new nodes", |lab| {
        metrics::show_usage(lab, NODES)
    })?;
    lab.run_step("a pod writes to a volume again", volumes::use_claim)?;
    lab.run_step(
        "the chart leaves, and helm-controller after it",
        charts::remove,
    )?;
    lab.run_step("metrics-server leaves", metrics::remove_server)?;
    lab.run_step("kctl says that it is healthy", expect_healthy)
}

fn expect_healthy(lab: &mut Lab) -> Result<()> {
    cluster::expect_healthy_with(lab, &[MIXED_GROUP])
}

fn add_mixed_group(lab: &mut Lab) -> Result<()> {
    let file = lab.place().run().join("mixed.yaml");
    let text = MIXED.replace("@IMAGE@", &Release::Trixie.spec_image());
    std::fs::write(&file, text)?;
    lab.run_kctl(&["create", "--filename", &file.display().to_string()])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    for instance in lab.wait_for_members(MIXED_GROUP, 1)? {
        cluster::becomes_ready(lab, &instance.id)?;
    }
    Ok(())
}

fn replace_all(lab: &mut Lab) -> Result<()> {
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", rolled::SETTING])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let done = lab.run_kctl(&["rolling-update", CLUSTER, "--yes", "-o", "json"])?;
    let done: Value = serde_json::from_str(&done)?;
    ensure!(done["outcome"] == "done", "{done}");
    let left = rolled::outdated(lab)?;
    ensure!(left.is_empty(), "{left:?}");
    expect_healthy(lab)
}
