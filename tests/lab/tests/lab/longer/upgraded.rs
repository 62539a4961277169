//! Kubernetes upgrades: the gate, the order in which instances are replaced, and how long the API is away.

use super::super::cluster::{self, CLUSTER};
use super::super::dumps;
use super::super::faults::crashes;
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Writers, describe_gaps, unix_time};
use serde_json::Value;

/// Label of Nodes of control planes.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// An upgrade of a cluster with two workers.
pub struct Upgrade {
    /// Versions without `v`.
    pub from: &'static str,
    pub to: &'static str,
    /// 1 or 3.
    pub control_planes: usize,
}

impl Upgrade {
    /// From the creation of the cluster to its end.
    pub fn run(&self, lab: &mut Lab) -> Result<()> {
        lab.run_step(&format!("kctl makes a cluster of {}", self.from), |lab| {
            self.make_cluster(lab)
        })?;
        lab.run_step("its instances become Ready nodes", |lab| {
            cluster::expect_ready(lab, self.control_planes)
        })?;
        lab.run_step("kctl says that it is healthy", cluster::expect_healthy)?;
        lab.run_step("all of it has that version", |lab| {
            expect_versions(lab, self.from)
        })?;
        let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
        let title = format!("the cluster is ready for {}, which the spec gets", self.to);
        lab.run_step(&title, |lab| self.change_spec(lab))?;
        lab.run_step("the preview names control planes only", |lab| {
            self.preview(lab)
        })?;
        lab.run_step("kctl replaces every instance", |lab| {
            replace_all(lab, &writers, "reconcile")
        })?;
        lab.run_step(
            "all of it has the new version, control planes first",
            |lab| {
                // The cloud controller manager removes the Node of an instance that has ended once it is not Ready.
                lab.wait_until("all Nodes are new", LIMIT, |lab| {
                    expect_versions(lab, self.to)
                })?;
                expect_ended(lab)
            },
        )?;
        lab.run_step("a dump has everything but secrets", dumps::expect_dump)?;
        lab.run_step(
            "all that clients did and saw fits one order of writes",
            |lab| crashes::check_history(lab, writers, &[0, 1, 2][..self.control_planes]),
        )
    }

    pub(super) fn make_cluster(&self, lab: &Lab) -> Result<()> {
        let version = format!("--kubernetes-version={}", self.from);
        let mut words = vec!["--networking=flannel", "--dns=none", &version];
        if self.control_planes == 3 {
            words.push("--control-plane-zones=us-east-1a,us-east-1b,us-east-1c");
        }
        cluster::create_cluster(lab, &words)
    }

    pub(super) fn change_spec(&self, lab: &Lab) -> Result<()> {
        let upgrade = ["upgrade", CLUSTER, "--kubernetes-version", self.to];
        lab.wait_until("kctl finds nothing in the way", LIMIT, |lab| {
            let said = lab.run_kctl(&[&upgrade[..], &["-o", "json"]].concat())?;
            let said: Value = serde_json::from_str(&said)?;
            ensure!(said["ready"] == true, "{said}");
            Ok(())
        })?;
        lab.run_kctl(&[&upgrade[..], &["--no-emulation", "--yes"]].concat())?;
        lab.run_kctl(&["update", CLUSTER, "--yes"]).map(drop)
    }

    /// Workers keep their launch templates until the control planes are replaced. The outage of an only control plane is announced.
    fn preview(&self, lab: &Lab) -> Result<()> {
        let preview = lab.run_kctl(&["rolling-update", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&preview)?;
        let instances = said["instances"].as_array().context("instances")?;
        let mut ids: Vec<&str> = instances
            .iter()
            .filter_map(|one| one["id"].as_str())
            .collect();
        ids.sort_unstable();
        let all = cluster::control_planes(lab, self.control_planes)?;
        let mut control_planes: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
        control_planes.sort_unstable();
        ensure!(ids == control_planes, "{said}");
        let announced = preview.contains("the only control plane, is replaced");
        ensure!(announced == (self.control_planes == 1), "{said}");
        Ok(())
    }
}

/// Runs the kctl command that replaces every instance, and prints how long writes were away meanwhile.
pub(super) fn replace_all(lab: &Lab, writers: &Writers, command: &str) -> Result<()> {
    let begun = unix_time()?;
    lab.run_kctl(&[command, CLUSTER, "--yes"])?;
    let ended = unix_time()?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, ended);
    eprintln!(
        "       every instance was replaced in {:.1} s; {gaps}",
        ended - begun
    );
    Ok(())
}

/// Every kubelet, and the API server that answers, have this version.
pub(super) fn expect_versions(lab: &Lab, version: &str) -> Result<()> {
    let wanted = format!("v{version}");
    let api: Value = serde_json::from_str(&lab.run_kubectl(&["get", "--raw=/version"])?)?;
    ensure!(api["gitVersion"] == wanted.as_str(), "{api}");
    expect_kubelets(lab, version)
}

/// Every kubelet has this version.
pub(super) fn expect_kubelets(lab: &Lab, version: &str) -> Result<()> {
    let wanted = format!("v{version}");
    for node in list_nodes(lab)? {
        let info = &node["status"]["nodeInfo"];
        ensure!(info["kubeletVersion"] == wanted.as_str(), "{info}");
    }
    Ok(())
}

/// Control planes were replaced first, the cluster is healthy, and nothing is left to do.
pub(super) fn expect_ended(lab: &mut Lab) -> Result<()> {
    expect_order(lab)?;
    cluster::expect_healthy(lab)?;
    let plan = lab.run_kctl(&["update", CLUSTER])?;
    ensure!(plan.contains("No changes."), "{plan}");
    Ok(())
}

/// A kubelet is never newer than an API server: every worker joined after the last control plane.
fn expect_order(lab: &Lab) -> Result<()> {
    let nodes = list_nodes(lab)?;
    let is_control_plane = |node: &&Value| node["metadata"]["labels"].get(CONTROL_PLANE).is_some();
    let created = |node: &Value| {
        node["metadata"]["creationTimestamp"]
            .as_str()
            .map(str::to_owned)
    };
    let last = nodes
        .iter()
        .filter(is_control_plane)
        .filter_map(created)
        .max();
    let workers = nodes.iter().filter(|node| !is_control_plane(node));
    let first = workers.filter_map(created).min();
    ensure!(
        last < first,
        "the last control plane is of {last:?}, the first worker of {first:?}"
    );
    Ok(())
}

fn list_nodes(lab: &Lab) -> Result<Vec<Value>> {
    let nodes = lab.get_objects(&["nodes"])?;
    nodes["items"].as_array().context("nodes").cloned()
}
