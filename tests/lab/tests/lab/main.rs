//! Scenarios: what kctl promises about a cluster, tested in a lab; and the few properties of the lab itself that scenarios depend on.
//! They need root; a test that cannot run says that it is skipped. docs/lab/scenarios.md lists what `make test` and `make soak` run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test"
)]

mod attacks;
mod birth;
mod cluster;
mod dns;
mod downs;
mod dumps;
mod etcd;
mod etcd_faults;
mod faults;
mod files;
mod identity;
mod longer;
mod network;
mod pods;
mod reports;
mod users_files;
mod volumes;
mod world;

use anyhow::Result;
use lab::content::Versions;
use lab::scenario::{self, Lab, Settings};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limit for anything that a cluster does. It leaves room for a busy lab machine with two cores.
const PATIENCE: Duration = Duration::from_mins(15);

/// Title and function of a part of a scenario.
type Step = (&'static str, fn(&mut Lab) -> Result<()>);

/// Clusters of `make test` run one after the other: a machine with two cores is busy with one.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other cluster of `make test` runs.
fn wait_for_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the lab `name` with room for `hosts`, and with the content that they download. `None`: this is not possible here, and the
/// reason was printed.
fn start_lab(test: &str, name: &str, hosts: usize) -> Result<Option<Lab>> {
    start_lab_with(test, name, hosts, Versions::Newest)
}

/// The same with these versions of Kubernetes.
fn start_lab_with(test: &str, name: &str, hosts: usize, versions: Versions) -> Result<Option<Lab>> {
    if scenario::is_skipped(test) {
        return Ok(None);
    }
    let Some(served) = scenario::built_content(test, versions)? else {
        return Ok(None);
    };
    let settings = Settings {
        content: Some(served),
        hosts,
        ..Settings::new(name, env!("CARGO_BIN_EXE_lab"))
    };
    Lab::start_lab(&settings).map(Some)
}

/// Runs the steps in a lab with room for three hosts.
fn run_steps(test: &str, name: &str, steps: &[Step]) -> Result<()> {
    run_steps_with(test, name, Versions::Newest, steps)
}

/// The same with this content.
fn run_steps_with(test: &str, name: &str, versions: Versions, steps: &[Step]) -> Result<()> {
    let Some(mut lab) = start_lab_with(test, name, 3, versions)? else {
        return Ok(());
    };
    for (title, step) in steps {
        lab.run_step(title, step)?;
    }
    lab.take_down()
}
