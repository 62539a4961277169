//! The record of etcd from before a restore is put back, as when a bucket is rolled back: no member stops, writes go on, and protokube on
//! each control plane says what is wrong.

use super::super::cluster::{self, CLUSTER};
use super::super::etcd_faults::{self, back::members_are_back};
use super::super::faults::crashes;
use super::super::reports::{read_object, store_key};
use super::super::{PATIENCE, etcd};
use super::restored::snapshot;
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, describe_gaps, unix_time};
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

const RECORD: &str = "etcd/main.json";

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster", etcd_faults::make_cluster)?;
    let old = lab.run_step("a snapshot is restored", restore)?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    let new = read_object(lab, &store_key(RECORD))?;
    // kubelet writes the ids of containers into the pods' status once the API server is back.
    let before = lab.wait_until("the API shows every container", PATIENCE, |lab| {
        let all = etcd::list_containers(lab)?;
        ensure!(all.values().all(Value::is_string), "{all:?}");
        Ok(all)
    })?;
    lab.run_step("the record of before is put back", |lab| {
        put_record(lab, &old)?;
        expect_said(lab, &writers, &old)
    })?;
    lab.run_step("a protokube starts again meanwhile", |lab| {
        let host = cluster::control_plane(lab, 1)?.id;
        lab.run_script(&host, "systemctl restart protokube")?;
        expect_said(lab, &writers, &old)
    })?;
    lab.run_step("the newest record is put back", |lab| {
        put_record(lab, &new)?;
        lab.wait_until("all members are there", PATIENCE, members_are_back)?;
        etcd::expect_reported(lab)
    })?;
    let after = etcd::list_containers(lab)?;
    ensure!(after == before, "{before:?} became {after:?}");
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

/// Returns the record of before.
fn restore(lab: &mut Lab) -> Result<String> {
    snapshot(lab, &["save", "asked"])?;
    let old = read_object(lab, &store_key(RECORD))?;
    lab.run_kctl(&["etcd", "restore", CLUSTER, "--snapshot", "asked", "--yes"])?;
    lab.wait_until("all members are back", PATIENCE, members_are_back)?;
    etcd::expect_reported(lab)?;
    Ok(old)
}

fn put_record(lab: &Lab, text: &str) -> Result<()> {
    let key = store_key(RECORD);
    let object = json!({"Bucket": lab.store_bucket(), "Key": key, "Body": text});
    lab.call_aws("s3", "PutObject", &object).map(drop)
}

/// A minute from now every control plane says that the record is of the etcd cluster that was given up, its member still follows a leader, and
/// writes are acknowledged.
fn expect_said(lab: &Lab, writers: &Writers, record: &str) -> Result<()> {
    let record: Value = serde_json::from_str(record)?;
    let given_up = record["generation"]["clusterId"].as_str();
    let given_up = given_up.with_context(|| record.to_string())?;
    let begun = unix_time()?;
    // What protokube writes once a minute is of after that.
    let later = OffsetDateTime::now_utc() + Duration::MINUTE;
    let said = lab.wait_until("every protokube says it", PATIENCE, |lab| {
        let said = lab.run_kctl(&["etcd", "status", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let members = said["members"].as_array().context("members")?;
        let main = members.iter().filter(|one| one["etcd"] == "main");
        let main: Vec<&Value> = main.collect();
        ensure!(main.len() == 3, "{said}");
        for one in &main {
            let written = one["written"].as_str().context("a time")?;
            let is_late = OffsetDateTime::parse(written, &Rfc3339)? > later;
            let problem = one["problem"].as_str().unwrap_or_default();
            let follows = one["role"] == "leader" || one["role"] == "follower";
            ensure!(
                is_late && follows && problem.contains(given_up),
                "not so of {given_up}: {one}"
            );
        }
        Ok(said["problems"].to_string())
    })?;
    eprintln!("       {said}");
    ensure!(said.contains(given_up), "no problem of {given_up}: {said}");
    writers.goes_on(lab, PATIENCE)?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, unix_time()?);
    eprintln!("       {gaps}");
    Ok(())
}
