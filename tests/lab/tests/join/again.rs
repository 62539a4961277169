//! Machines that have joined run nodeup again: by hand, after a reboot, after a crash.

use super::{PATIENCE, cluster, reports};
use anyhow::{Result, ensure};
use lab::scenario::{Lab, Stage};
use model::report::BootReport;
use serde_json::json;

pub fn second_run(lab: &mut Lab) -> Result<()> {
    for machine in [
        cluster::workers(lab)?.remove(0),
        cluster::control_plane(lab)?,
    ] {
        let before = reports::told(lab, &machine.id)?;
        lab.sh(&machine.id, "systemctl restart nodeup.service")?;
        let after = reports::after(lab, &machine.id, &before.started)?;
        ensure!(after.changes == 0, "{}", told(lab, &after)?);
        eprintln!("       {}", reports::figures(&after));
    }
    Ok(())
}

pub fn reboot(lab: &mut Lab) -> Result<()> {
    let worker = cluster::workers(lab)?.remove(1);
    comes_back(lab, &worker.id, |lab| {
        let asked = json!({"InstanceIds": [worker.id]});
        lab.aws("ec2", "RebootInstances", &asked).map(drop)
    })
}

pub fn crash(lab: &mut Lab) -> Result<()> {
    let control = cluster::control_plane(lab)?;
    lab.sh(&control.id, "sync")?;
    comes_back(lab, &control.id, |lab| {
        lab.kill(&control.id)?;
        lab.start(&control.id)
    })
}

/// The machine boots, nodeup reports that it had nothing to change, the cluster is healthy.
fn comes_back(lab: &mut Lab, id: &str, happens: impl FnOnce(&Lab) -> Result<()>) -> Result<()> {
    let (boot, before) = (lab.boot(id)?, reports::told(lab, id)?);
    happens(lab)?;
    lab.booted_again(id, &boot)?;
    let after = reports::after(lab, id, &before.started)?;
    eprintln!("       {}", told(lab, &after)?);
    lab.ready_again(id, PATIENCE)?;
    cluster::healthy(lab)?;
    ensure!(after.changes == 0, "{}", told(lab, &after)?);
    Ok(())
}

/// Figures of a run, and what its apply said on the console.
fn told(lab: &Lab, report: &BootReport) -> Result<String> {
    let stages = lab.stages(&report.instance)?;
    let said = |stage: &&Stage| stage.time >= report.started && !stage.detail.is_empty();
    let lines: Vec<String> = stages
        .iter()
        .filter(said)
        .map(|stage| format!("\n         {}: {}", stage.words(), stage.detail))
        .collect();
    Ok(format!("{}{}", reports::figures(report), lines.concat()))
}
