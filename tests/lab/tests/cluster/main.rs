//! A cluster that kctl makes, on machines: from launch to nodeup, replacement, AWS's refusals, faults. One lab for all of it,
//! since a boot costs seconds. It needs root, kctl (`KCTL_BIN`), and nodeup as hosts can run it (`KCTL_ASSETS`).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test"
)]

mod faults;
mod figures;
mod launch;
mod names;
mod refusals;
mod replacement;
mod volumes;

use anyhow::Result;
use lab::scenario::{self, Lab, Settings};
use std::time::Duration;

/// Its name.
pub const CLUSTER: &str = "demo.example.com";

/// Control planes, one in each zone.
pub const CONTROL_PLANES: [&str; 3] = [
    "control-plane-us-east-1a.masters.demo.example.com",
    "control-plane-us-east-1b.masters.demo.example.com",
    "control-plane-us-east-1c.masters.demo.example.com",
];

/// Workers, one in each of two zones.
pub const WORKERS: [&str; 2] = [
    "nodes-us-east-1a.demo.example.com",
    "nodes-us-east-1b.demo.example.com",
];

/// How long credentials of instances hold: everything that asks for them lives with their end.
const SESSION: Duration = Duration::from_mins(1);

type Step = (&'static str, fn(&mut Lab) -> Result<()>);

const STEPS: [Step; 18] = [
    ("cloud-init found EC2", launch::cloud_init_found_ec2),
    (
        "a host has the launch template's user data",
        launch::user_data_is_the_templates,
    ),
    ("a wrong signature is refused", refusals::wrong_signature),
    (
        "an action the role lacks is refused",
        refusals::lacking_action,
    ),
    (
        "a volume without the cluster's tag is refused",
        refusals::missing_tag,
    ),
    (
        "a closed port is silent, an open one answers",
        refusals::closed_port,
    ),
    (
        "a name asked for before it exists stays away for its time",
        names::asked_too_early,
    ),
    (
        "a volume comes and goes in the host",
        volumes::comes_and_goes,
    ),
    ("a volume has one machine at a time", volumes::second_attach),
    ("a volume grows while it is attached", volumes::grows),
    (
        "a crash loses what was not flushed, and nothing else",
        volumes::crash_loses_what_was_not_flushed,
    ),
    ("a volume stays in its zone", volumes::other_zone),
    ("a reboot keeps the disk", faults::reboot),
    ("a killed host starts again", faults::kill),
    (
        "a volume attached to a killed host is there when it starts",
        faults::attach_to_killed,
    ),
    (
        "a host that is cut off is unhealthy until healed",
        faults::partition,
    ),
    (
        "a new template and a terminated instance bring a new host",
        replacement::terminated,
    ),
    (
        "a machine waits for its lifecycle hook on its way out",
        replacement::hook,
    ),
];

#[test]
fn a_cluster_lives_on_machines() -> Result<()> {
    if scenario::skipped("a_cluster_lives_on_machines") {
        return Ok(());
    }
    let mut lab = Lab::up(&Settings {
        session: SESSION,
        negative_ttl: names::KEPT,
        ..Settings::new("t-cluster", env!("CARGO_BIN_EXE_lab"))
    })?;
    lab.step("kctl makes a cluster", launch::make)?;
    lab.step(
        "five hosts run its user data, to nodeup started",
        launch::hosts_run_user_data,
    )?;
    let early = lab.step("a host has credentials", refusals::early)?;
    for (title, step) in STEPS {
        lab.step(title, step)?;
    }
    lab.step("an expired credential is refused", |lab| {
        refusals::expired_credential(lab, &early)
    })?;
    lab.down()
}

/// The one member of a group.
pub fn only(lab: &Lab, group: &str) -> Result<lab::world::Instance> {
    let mut members = lab.members(group, 1)?;
    Ok(members.remove(0))
}
