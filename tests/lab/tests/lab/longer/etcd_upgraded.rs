//! etcd goes from 3.5 to 3.6 by an edit of the spec and a rolling update, while clients write.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use super::super::etcd;
use super::super::faults::crashes;
use super::restored;
use super::upgraded::replace_all;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;

pub const OLD: &str = "3.5.31";
pub const NEW: &str = "3.6.12";

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster with etcd 3.5", make_cluster)?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    lab.run_step("every control plane gets etcd 3.6", |lab| {
        set_version(lab, NEW)?;
        lab.run_kctl(&["update", CLUSTER, "--yes"])?;
        replace_all(lab, &writers, "rolling-update")
    })?;
    lab.run_step("every member runs etcd 3.6 and reports no problem", |lab| {
        cluster::expect_healthy(lab)?;
        etcd::expect_reported(lab)?;
        etcd::expect_three_voters(lab)?;
        expect_version(lab, NEW)
    })?;
    lab.run_step("each volume has the data of before", |lab| {
        expect_data_of_before(lab, NEW)
    })?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

pub fn make_cluster(lab: &mut Lab) -> Result<()> {
    let version = format!("--set=spec.etcdClusters[*].version={OLD}");
    // etcd 3.5 does not report its quota, so members are not expected to report all.
    restored::make_cluster(lab, 3, &[&version])?;
    expect_version(lab, OLD)
}

/// Each volume has a copy of the data before this version, and its marker names the version.
pub fn expect_data_of_before(lab: &Lab, version: &str) -> Result<()> {
    for instance in cluster::control_planes(lab, 3)? {
        let list =
            format!("ls -d /mnt/master-*/var/etcd*/data.before-{version}/member/wal | wc -l");
        let copies = lab.run_script(&instance.id, &list)?;
        ensure!(copies == "2", "{copies} copies on {}", instance.id);
        let marker = "grep -h etcdVersion /mnt/master-*/k8s.io/etcd-member.json | sort -u";
        let marked = lab.run_script(&instance.id, marker)?;
        ensure!(
            marked.contains(version) && marked.lines().count() == 1,
            "{marked}"
        );
    }
    Ok(())
}

pub fn set_version(lab: &Lab, version: &str) -> Result<()> {
    let set = format!("--set=spec.etcdClusters[*].version={version}");
    lab.run_kctl(&["edit", "cluster", CLUSTER, &set]).map(drop)
}

/// `kctl etcd status` shows this version of every member.
pub fn expect_version(lab: &Lab, version: &str) -> Result<()> {
    lab.wait_until("every member reports its version", PATIENCE, |lab| {
        let versions = list_versions(lab)?;
        let all = versions.iter().all(|one| one == version);
        ensure!(all && versions.len() == 6, "{versions:?}");
        Ok(())
    })
}

/// The versions of all members, as `kctl etcd status` shows them; empty for one that does not run.
pub fn list_versions(lab: &Lab) -> Result<Vec<String>> {
    let said = lab.run_kctl(&["etcd", "status", CLUSTER, "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let members = said["members"].as_array().context("members")?;
    let version = |one: &Value| one["running"]["version"].as_str().map(str::to_owned);
    let versions = members.iter().map(|one| version(one).unwrap_or_default());
    Ok(versions.collect())
}
