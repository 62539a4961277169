//! Data that is gone for good: a member of `main` loses its log or its volume, and never votes again under its id.

use super::super::cluster::CLUSTER;
use super::super::faults::lost_data;
use super::super::{PATIENCE, etcd};
use super::back::ask_member;
use super::kinds::{choose_one, end_instance};
use super::schedule::{Chance, Due, Fault};
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use serde_json::json;

pub fn remove_log(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let volume = etcd::find_volume(lab, victim.member)?;
    let old = ask_member(lab, &victim.id)?.id;
    Ok(Box::new(move |lab| {
        lost_data::remove_log_of(lab, &victim.id, &volume)?;
        Ok(vec![Due::once(0.0, move |lab| {
            let now = ask_member(lab, &victim.id)?.id;
            ensure!(now != old, "{} has member {old} again", victim.id);
            Ok(())
        })])
    }))
}

pub fn delete_volume(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let volume = etcd::find_volume(lab, victim.member)?;
    // The group launches no replacement until the volume is gone, so that none takes it first.
    let launches = json!({"AutoScalingGroupName": victim.group, "ScalingProcesses": ["Launch"]});
    lab.call_aws("autoscaling", "SuspendProcesses", &launches)?;
    Ok(Box::new(move |lab| {
        end_instance(lab, &victim.id)?;
        lab.wait_until("the volume is deleted", PATIENCE, |lab| {
            lab.call_aws("ec2", "DeleteVolume", &json!({"VolumeId": volume}))
                .map(drop)
        })?;
        lab.call_aws("autoscaling", "ResumeProcesses", &launches)?;
        Ok(vec![Due::once(0.0, |lab| {
            lab.run_kctl(&["update", CLUSTER, "--yes"]).map(drop)
        })])
    }))
}
