//! etcd is restored in the middle of an upgrade from 3.5 to 3.6: all members serve the snapshot, whatever minor their instances have, and the
//! upgrade goes on. Instances that joined after the snapshot are replaced.

use super::super::cluster::{self, CLUSTER};
use super::super::faults::{kills, replaced::wait_for_replacement};
use super::super::{PATIENCE, etcd};
use super::etcd_upgraded::{NEW, OLD, expect_version, list_versions, make_cluster, set_version};
use super::restored::{expect_before, expect_snapshot, make_configmap, snapshot};
use anyhow::{Result, ensure};
use lab::aws_state::InstanceState;
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
    lab.run_step("a worker is replaced", replace_worker)?;
    lab.run_step("the snapshot takes the place of the data", |lab| {
        lab.run_kctl(&["etcd", "restore", CLUSTER, "--snapshot", "asked", "--yes"])?;
        expect_before(lab)?;
        etcd::expect_three_voters(lab)
    })?;
    lab.run_step(
        "the upgrade goes on, and replaces what joined after the snapshot",
        |lab| {
            let lost = instances_without_node(lab)?;
            ensure!(lost.len() == 2, "{lost:?}");
            lab.run_kctl(&["rolling-update", CLUSTER, "--yes"])?;
            for id in &lost {
                lab.wait_for_instance_state(id, InstanceState::Terminated)?;
            }
            cluster::expect_healthy(lab)?;
            expect_snapshot(lab)?;
            etcd::expect_reported(lab)?;
            expect_version(lab, NEW)
        },
    )
}

fn instances_without_node(lab: &Lab) -> Result<Vec<String>> {
    let all = [
        cluster::control_planes(lab, 3)?,
        cluster::worker_instances(lab)?,
    ];
    let nodes = lab.get_objects(&["nodes"])?["items"].to_string();
    let ids = all.concat().into_iter().map(|instance| instance.id);
    Ok(ids.filter(|id| !nodes.contains(id.as_str())).collect())
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

fn replace_worker(lab: &mut Lab) -> Result<()> {
    let kept = cluster::worker_instances(lab)?.remove(0);
    let new = kills::replace_worker(lab, &kept)?;
    cluster::becomes_ready(lab, &new.id)
}
