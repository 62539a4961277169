//! Launched machines become Ready nodes, on every way there is: undisturbed, run twice, rebooted, crashed, nodeup killed,
//! and what operators are told of those that cannot. One cluster for all of it. It needs root, kctl (`KCTL_BIN`), nodeup and
//! protokube as hosts can run them (`KCTL_ASSETS`), and everything that `lab content` builds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test"
)]

mod again;
mod cluster;
mod figures;
mod files;
mod identity;
mod kills;
mod pods;
mod refusals;
mod renewals;
mod reports;
mod theft;
mod unrolled;
mod zone;

use anyhow::Result;
use lab::scenario::{self, Lab, Settings};
use std::time::Duration;

/// Its name.
pub const CLUSTER: &str = "demo.example.com";
/// Auto Scaling group of the control plane.
pub const CONTROL_PLANE: &str = "control-plane-us-east-1a.masters.demo.example.com";
/// Auto Scaling group of both workers.
pub const WORKERS: &str = "nodes-us-east-1a.demo.example.com";

/// Machines on a busy machine of two cores take their time.
pub const PATIENCE: Duration = Duration::from_mins(15);

type Step = (&'static str, fn(&mut Lab) -> Result<()>);

const STEPS: [Step; 22] = [
    ("kctl makes a cluster", |lab| {
        cluster::make(lab, &["--networking=flannel", "--dns=none"])
    }),
    ("three machines become Ready nodes", cluster::ready),
    ("kctl says that it is healthy", cluster::healthy),
    ("six pods run, on both workers", pods::run),
    (
        "pods reach each other across nodes, and services by name",
        pods::reach,
    ),
    ("logs, exec and port-forward", pods::operator),
    ("nodeup's second run changes nothing", again::second_run),
    ("a rebooted worker comes back", again::reboot),
    ("a changed flag restarts nothing", unrolled::flag),
    ("a crashed control plane comes back", again::crash),
    ("with the flags it had", unrolled::still_old),
    ("a worker's role reads nothing but assets", identity::store),
    (
        "a worker's flannel token labels no Node and reads no Secret",
        theft::flannel_token,
    ),
    (
        "a new key is refused to a machine that has a Node",
        identity::new_key,
    ),
    (
        "the control plane may not join as a worker",
        identity::other_role,
    ),
    (
        "nor an instance of another cluster",
        identity::other_cluster,
    ),
    (
        "nodeup killed while it works ends with the same files",
        kills::killed,
    ),
    (
        "a worker whose port 3988 is closed says so",
        refusals::closed_port,
    ),
    (
        "a worker whose nodeup has another hash says so",
        refusals::wrong_hash,
    ),
    (
        "a worker whose NodeConfig is missing says so",
        refusals::missing_object,
    ),
    (
        "a worker whose image cannot boot is named",
        refusals::broken_image,
    ),
    (
        "pods run on the new machines too, and reach each other",
        pods::again,
    ),
];

#[test]
fn launched_machines_become_nodes() -> Result<()> {
    scenario("launched_machines_become_nodes", "t-join", &STEPS)
}

#[test]
#[ignore = "prints figures: make bench"]
fn figures() -> Result<()> {
    scenario("figures", "t-joining", &figures::STEPS)
}

#[test]
#[ignore = "twenty minutes, mostly waiting: make soak"]
fn kubelets_renew_their_certificates() -> Result<()> {
    scenario(
        "kubelets_renew_their_certificates",
        "t-renewals",
        &renewals::STEPS,
    )
}

#[test]
#[ignore = "four minutes more: make soak"]
fn names_and_routes_follow_machines() -> Result<()> {
    scenario("names_and_routes_follow_machines", "t-zone", &zone::STEPS)
}

#[test]
#[ignore = "two minutes more: make soak"]
fn names_may_be_private() -> Result<()> {
    scenario("names_may_be_private", "t-private", &zone::PRIVATE_STEPS)
}

/// A lab of that name, and in it one step after the other.
fn scenario(test: &str, lab: &str, steps: &[Step]) -> Result<()> {
    if scenario::skipped(test) {
        return Ok(());
    }
    let Some(served) = scenario::built(test)? else {
        return Ok(());
    };
    let mut lab = Lab::up(&Settings {
        content: Some(served),
        ..Settings::new(lab, env!("CARGO_BIN_EXE_lab"))
    })?;
    for (title, step) in steps {
        lab.step(title, step)?;
    }
    lab.down()
}
