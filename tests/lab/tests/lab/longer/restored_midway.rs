//! etcd is restored in the middle of an upgrade from 3.5 to 3.6: all members serve the snapshot, whatever minor their instances have, and the
//! upgrade goes on.

use super::super::cluster::{self, CLUSTER};
use super::super::faults::replaced::wait_for_replacement;
use super::super::{PATIENCE, etcd};
use super::etcd_upgraded::{NEW, OLD, expect_version, list_versions, make_cluster, set_version};
use super::restored::{expect_before, expect_snapshot, make_configmap, snapshot};
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use serde_json::json;

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster with etcd 3.5", make_cluster)?;
    lab.run_step("a snapshot is stored", |lab| {
        make_configmap(lab, "before")?;
        snapshot(lab, &["save", "asked"])?;
        make_configmap(lab, "after")
    })?;
    lab.run_step("one control plane gets etcd 3.6", upgrade_one)?;
    lab.run_step("the snapshot takes the place of the data", |lab| {
        lab.run_kctl(&["etcd", "restore", CLUSTER, "--snapshot", "asked", "--yes"])?;
        expect_before(lab)?;
        etcd::expect_three_voters(lab)
    })?;
    lab.run_step("the upgrade goes on", |lab| {
        lab.run_kctl(&["rolling-update", CLUSTER, "--yes"])?;
        expect_snapshot(lab)?;
        etcd::expect_reported(lab)?;
        expect_version(lab, NEW)
    })
}

fn upgrade_one(lab: &mut Lab) -> Result<()> {
    set_version(lab, NEW)?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let old = cluster::control_plane(lab, 0)?.id;
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let new = wait_for_replacement(lab, 0, &old)?;
    etcd::expect_serving(lab, &new.id)?;
    lab.wait_until("one member of each etcd cluster has 3.6", PATIENCE, |lab| {
        let versions = list_versions(lab)?;
        let count = |version: &str| versions.iter().filter(|one| *one == version).count();
        ensure!((count(NEW), count(OLD)) == (2, 4), "{versions:?}");
        Ok(())
    })
}
