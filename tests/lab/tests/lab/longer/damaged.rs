//! The quorum is lost while the file system of another member needs a person: kctl names its volume, the recovery does not wait for it once the
//! operator has given up what it may hold, and nothing that was acknowledged is lost.

use super::super::cluster::{self, CLUSTER, CONTROL_PLANES};
use super::super::etcd_faults::{self, back::members_are_back};
use super::super::faults::{crashes, quorum_lost};
use super::super::{PATIENCE, etcd};
use super::restored::delete_volume;
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{Lab, Writers};
use serde_json::{Value, json};

const RECOVER: [&str; 5] = ["etcd", "recover", CLUSTER, "--from", "a"];

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster", etcd_faults::make_cluster)?;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    let volume = etcd::find_volume(lab, "b")?;
    lab.run_step("a file system is damaged beyond automatic repair", |lab| {
        damage(lab, &volume)?;
        writers.goes_on(lab, PATIENCE)
    })?;
    lab.run_step("another member is lost, and the quorum with it", |lab| {
        lose_other(lab, &writers)
    })?;
    lab.run_step("kctl names the volume that may hold more", |lab| {
        expect_named(lab, &volume)
    })?;
    lab.run_step("the recovery does not wait for it", |lab| {
        lab.run_kctl(&[&RECOVER[..], &["--force", "--yes"]].concat())?;
        writers.goes_on(lab, PATIENCE)
    })?;
    lab.run_step("the others come back, on new volumes", |lab| {
        end_instance(lab, 1)?;
        delete_volume(lab, &volume)?;
        quorum_lost::bring_back(lab)?;
        lab.wait_until("all members are back", PATIENCE, members_are_back)?;
        etcd::expect_reported(lab)
    })?;
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

/// Member b's volume loses its root folder while nothing uses it, and the host reboots. What e2fsck repairs by itself differs from version
/// to version: 1.47.2 a superblock whose checksum is wrong, 1.47.0 not; none a root that is gone. A clean file system it does not check.
fn damage(lab: &Lab, volume: &str) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let (boot, folder) = (lab.boot_id(&host)?, etcd::mount_point(volume));
    let overwrite = format!(
        "systemctl stop kubelet protokube; pkill -KILL -x etcd || true
        device=$(findmnt --noheadings --output SOURCE {folder})
        timeout 60 sh -c 'until umount {folder}; do sleep 0.2; done'
        for change in 'clri <2>' 'set_super_value state 0'; do debugfs -w -R \"$change\" \"$device\"; done
        sync
        if fsck.ext4 -n \"$device\" >/dev/null 2>&1; then echo \"$device is not damaged\" >&2; exit 1; fi"
    );
    lab.run_script(&host, &overwrite)?;
    lab.call_aws("ec2", "RebootInstances", &json!({"InstanceIds": [host]}))?;
    lab.booted_again(&host, &boot)?;
    lab.wait_until("kctl says that it has errors", PATIENCE, |lab| {
        let said = lab.run_kctl(&["etcd", "status", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let problems = said["problems"].as_array().context("problems")?;
        let mut told = problems.iter().filter_map(Value::as_str);
        let told = told.find(|one| one.contains(volume) && one.contains("has errors"));
        eprintln!("       {}", told.with_context(|| said.to_string())?);
        Ok(())
    })
}

/// Member a leads before, so that it has every acknowledged write.
fn lose_other(lab: &Lab, writers: &Writers) -> Result<()> {
    etcd::make_leader(lab, "main", 0)?;
    quorum_lost::set_launches(lab, "SuspendProcesses")?;
    let volume = etcd::find_volume(lab, "c")?;
    writers.goes_on(lab, PATIENCE)?;
    writers.acknowledged_just_before(lab, || end_instance(lab, 2))?;
    delete_volume(lab, &volume)
}

fn end_instance(lab: &Lab, group: usize) -> Result<()> {
    let instances = lab.group_instances(CONTROL_PLANES[group])?;
    let ids: Vec<&String> = instances.iter().map(|one| &one.id).collect();
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": ids}))
        .map(drop)
}

/// Without force kctl begins nothing, because the volume may hold newer data.
fn expect_named(lab: &Lab, volume: &str) -> Result<()> {
    lab.wait_until("kctl refuses because of the volume", PATIENCE, |lab| {
        let Err(why) = lab.run_kctl(&RECOVER) else {
            bail!("nothing is refused");
        };
        let why = format!("{why:#}");
        let is_named = why.contains(volume) && why.contains("--force");
        ensure!(is_named, "{why}");
        eprintln!("       {why}");
        Ok(())
    })
}
