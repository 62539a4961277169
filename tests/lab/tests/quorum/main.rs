//! Three control planes and two workers: what may happen to some or all of them, to their volumes, to etcd's size and to the
//! spec, and what a stolen worker tries. No acknowledged write is lost, and no volume. One cluster for all of it. It needs
//! root, kctl (`KCTL_BIN`), nodeup and protokube as hosts can run them (`KCTL_ASSETS`), and everything that `lab content`
//! builds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test"
)]

mod attacks;
mod cluster;
mod crashes;
mod etcd;
mod full;
mod lost_log;
mod members;
mod quota;
mod replaced;

use anyhow::Result;
use lab::scenario::{self, Lab, Settings};
use serde_json::json;
use std::time::Duration;

/// Its name.
pub const CLUSTER: &str = "demo.example.com";
/// Auto Scaling groups of the control planes, of one machine each.
pub const CONTROL_PLANES: [&str; 3] = [
    "control-plane-us-east-1a.masters.demo.example.com",
    "control-plane-us-east-1b.masters.demo.example.com",
    "control-plane-us-east-1c.masters.demo.example.com",
];
/// Auto Scaling group of both workers.
pub const WORKERS: &str = "nodes-us-east-1a.demo.example.com";

/// Machines on a busy machine of two cores take their time.
pub const PATIENCE: Duration = Duration::from_mins(15);

#[test]
fn three_control_planes_lose_nothing() -> Result<()> {
    scenario("three_control_planes_lose_nothing", "t-quorum", "none")
}

#[test]
#[ignore = "eleven minutes more: make soak"]
fn three_control_planes_with_a_zone_lose_nothing() -> Result<()> {
    scenario(
        "three_control_planes_with_a_zone_lose_nothing",
        "t-quorumzone",
        "public",
    )
}

/// A lab of that name, and in it one step after the other.
fn scenario(test: &str, lab: &str, dns: &str) -> Result<()> {
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
    if dns != "none" {
        lab.step("a hosted zone", |lab| {
            let asked = json!({"Name": "example.com", "CallerReference": "quorum"});
            lab.aws("route53", "CreateHostedZone", &asked).map(drop)
        })?;
    }
    lab.step("kctl makes a cluster", |lab| cluster::make(lab, dns))?;
    lab.step("five machines become Ready nodes", cluster::ready)?;
    lab.step("kctl says that it is healthy", cluster::healthy)?;
    crashes(&mut lab)?;
    stays(&mut lab)?;
    lab.down()
}

/// What machines survive, under writes.
fn crashes(lab: &mut Lab) -> Result<()> {
    let writer = lab.step("writes begin", |lab| lab.writer("crashes"))?;
    lab.step("one control plane crashes", |lab| {
        crashes::one(lab, &writer)
    })?;
    lab.step("all control planes crash", |lab| {
        crashes::all(lab, &writer, &json!([]))
    })?;
    lab.step("all control planes crash, and EC2 fails", |lab| {
        crashes::all(lab, &writer, &crashes::no_ec2())
    })?;
    lab.step("one control plane is replaced", |lab| {
        replaced::terminated(lab, &writer)
    })?;
    lab.step("every acknowledged write is there", |lab| {
        crashes::checked(lab, writer)
    })
}

/// What a spec, a thief, full volumes and a lost log do not change; from the lost log on one member is out for good.
fn stays(lab: &mut Lab) -> Result<()> {
    lab.step("the members of the spec change", members::edited)?;
    lab.step("a volume has a double", members::doubled)?;
    lab.step(
        "a stolen worker asks for another's certificate",
        attacks::certificates,
    )?;
    lab.step(
        "a stolen worker uses flannel's token",
        attacks::flannel_token,
    )?;
    let writer = lab.step("writes begin again", |lab| lab.writer("volumes"))?;
    lab.step("full volumes are enlarged", |lab| full::full(lab, &writer))?;
    lab.step("a member's log is gone", |lab| {
        lost_log::removed(lab, &writer)
    })?;
    lab.step("every acknowledged write is there still", |lab| {
        crashes::checked(lab, writer)
    })?;
    lab.step("etcd is at its quota", quota::reached)
}
