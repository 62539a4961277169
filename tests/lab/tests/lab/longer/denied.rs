//! S3 denies the snapshot that is to be restored: until it is ready no member stops, control planes that are replaced meanwhile serve with
//! the data that they had, and the restore can be called off.

use super::super::cluster::CLUSTER;
use super::super::etcd_faults::{self, back::members_are_back};
use super::super::faults::{crashes, replaced::terminate_and_serve};
use super::super::reports::{read_object, store_key};
use super::super::{PATIENCE, etcd};
use super::backups_stopped::{allow_again, refuse};
use super::restored::snapshot;
use anyhow::{Result, bail, ensure};
use lab::scenario::{Attempt, Lab, Writers};
use serde_json::Value;

const RESTORE: [&str; 3] = ["etcd", "restore", CLUSTER];

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster", etcd_faults::make_cluster)?;
    lab.run_step("a snapshot is stored, and S3 denies it", |lab| {
        snapshot(lab, &["save", "asked"])?;
        let objects = "backups/etcd/main/asked/etcd.backup.gz";
        refuse(lab, "s3:GetObject", objects)
    })?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    let before = read_record(lab)?;
    lab.run_step("a restore waits for the snapshot", |lab| {
        begin_restore(lab, &writers)
    })?;
    // The first one is the member that restores.
    for (group, member) in [(0, "a"), (2, "c")] {
        let title = format!("the control plane of member {member} is replaced, and serves");
        lab.run_step(&title, |lab| replace_one(lab, &writers, group))?;
    }
    lab.run_step("the restore is called off", |lab| {
        lab.run_kctl(&[&RESTORE[..], &["--call-off"]].concat())?;
        allow_again(lab)?;
        let is = read_record(lab)?;
        let is_same = |key: &str| is["generation"][key] == before["generation"][key];
        let is_same = is_same("clusterId") && is_same("token") && is["next"].is_null();
        ensure!(is_same, "{before} is {is}");
        lab.wait_until("all members are there", PATIENCE, members_are_back)?;
        etcd::expect_reported(lab)
    })?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

fn read_record(lab: &Lab) -> Result<Value> {
    Ok(serde_json::from_str(&read_object(
        lab,
        &store_key("etcd/main.json"),
    )?)?)
}

fn begin_restore(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let words = ["--snapshot", "asked", "--on", "a", "--yes", "--timeout=2m"];
    let Err(why) = lab.run_kctl(&[&RESTORE[..], &words].concat()) else {
        bail!("a snapshot that S3 denies was restored");
    };
    let why = format!("{why:#}");
    eprintln!("       {why}");
    ensure!(why.contains("is denied"), "{why}");
    expect_unstopped(lab, writers)
}

/// The restore is under way, and has stopped nobody.
fn expect_unstopped(lab: &Lab, writers: &Writers) -> Result<()> {
    let record = read_record(lab)?;
    let next = &record["next"];
    let has_stopped = next["ready"] == true || !next["stopped"].is_null();
    ensure!(next.is_object() && !has_stopped, "{record}");
    writers.goes_on(lab, PATIENCE)
}

/// Both members and the API server of the replacement serve, and all others as before.
fn replace_one(lab: &mut Lab, writers: &Writers, group: usize) -> Result<()> {
    let new = terminate_and_serve(lab, writers, group, |lab| {
        lab.wait_until("all members are back", PATIENCE, members_are_back)
    })?;
    lab.wait_until("its API server acknowledges writes", PATIENCE, |_| {
        let all = writers.read_attempts()?;
        let mut own = all.iter().filter(|one| one.client == new.id);
        let acknowledged = own.clone().any(Attempt::is_acknowledged);
        ensure!(acknowledged, "the last attempt: {:?}", own.next_back());
        Ok(())
    })?;
    expect_unstopped(lab, writers)
}
