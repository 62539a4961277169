//! Kubernetes, etcd and containerd of the lab, started by hand on two of its machines: user data of the test's own
//! (`by-hand.sh`), no kctl, no nodeup. So what later fails there is theirs. docs/lab/by-hand.md tells the story. It needs
//! root, and everything that `lab content` builds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test"
)]

mod content;
mod machines;
mod network;
mod nodes;
mod pods;

use anyhow::{Context, Result};
use lab::scenario::{self, Lab, Settings};
use machines::Machines;
use network::Network;
use nodes::Nodes;
use std::time::{Duration, Instant};

/// Three agents on a machine of two cores take their time, the more so when it is busy with other things.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// What the steps leave to each other.
struct Cluster {
    network: Network,
    machines: Machines,
    nodes: Nodes,
}

const TEST: &str = "a_cluster_starts_by_hand";

#[test]
fn a_cluster_starts_by_hand() -> Result<()> {
    if scenario::skipped(TEST) {
        return Ok(());
    }
    let Some(served) = scenario::built(TEST)? else {
        return Ok(());
    };
    let mut lab = Lab::up(&Settings {
        content: Some(served.clone()),
        ..Settings::new("t-kube", env!("CARGO_BIN_EXE_lab"))
    })?;
    let network = lab.step("a network, by AWS's API", network::make)?;
    let begun = Instant::now();
    let machines = lab.step("two instances with a script as user data", |lab| {
        machines::launch(lab, &network, &served)
    })?;
    lab.step("etcd's volume is attached", |lab| {
        machines::attach_volume(lab, &machines)
    })?;
    let nodes = lab.step("the API answers from outside", |lab| {
        nodes::admin(lab, &machines)
    })?;
    let cluster = Cluster {
        network,
        machines,
        nodes,
    };
    let figures = lab.step("both nodes are Ready", |lab| {
        nodes::ready(lab, &cluster.nodes, &served, begun)
    })?;
    checks(&mut lab, &cluster)?;
    eprintln!("{figures}");
    if std::env::var_os("KCTL_LAB_KEEP").is_some() {
        eprintln!("kept: `lab --name t-kube down` removes it");
        return lab.keep();
    }
    lab.down()
}

type Check = fn(&Lab, &Cluster) -> Result<()>;

fn checks(lab: &mut Lab, cluster: &Cluster) -> Result<()> {
    let checks: [(&str, Check); 9] = [
        ("nodes are what EC2 says of them", nodes::known_to_the_cloud),
        ("etcd's data is on the volume", machines::data_on_volume),
        ("two pods run, one on each node", pods::run),
        ("programs and images came under public names", content::came),
        ("logs can be read", pods::logs),
        (
            "cluster DNS answers, and passes on what is not its own",
            pods::names,
        ),
        (
            "no pod reaches another node's while the VPC has no route",
            pods::no_route,
        ),
        (
            "nor with a route while the source is checked",
            pods::checked_source,
        ),
        (
            "pods reach each other, and services, from node to node",
            pods::reach,
        ),
    ];
    for (title, check) in checks {
        lab.step(title, |lab| check(lab, cluster))
            .context("a cluster by hand")?;
    }
    Ok(())
}
