//! Nodes run nodeup again, by hand, after a reboot and after a crash: it changes nothing, but that hooks run once in every boot.

use super::super::users_files::DUE_IN_EVERY_BOOT;
use super::super::{PATIENCE, cluster, reports};
use anyhow::{Result, ensure};
use lab::scenario::{Lab, Stage};
use node::report::BootReport;
use serde_json::json;

pub fn run_nodeup_again(lab: &mut Lab) -> Result<()> {
    for instance in [
        cluster::worker_instances(lab)?.remove(0),
        cluster::control_plane(lab, 0)?,
    ] {
        let before = reports::wait_for_report(lab, &instance.id)?;
        lab.run_script(&instance.id, "systemctl restart nodeup.service")?;
        let after = reports::wait_for_later_report(lab, &instance.id, &before.started)?;
        ensure!(after.changes == 0, "{}", describe_run(lab, &after)?);
        eprintln!("       {}", reports::format_figures(&after));
    }
    Ok(())
}

pub fn reboot_worker(lab: &mut Lab) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(1);
    expect_no_changes_after(lab, &worker.id, |lab| {
        let asked = json!({"InstanceIds": [worker.id]});
        lab.call_aws("ec2", "RebootInstances", &asked).map(drop)
    })
}

pub fn crash_control_plane(lab: &mut Lab) -> Result<()> {
    let control = cluster::control_plane(lab, 0)?;
    lab.run_script(&control.id, "sync")?;
    expect_no_changes_after(lab, &control.id, |lab| {
        lab.kill_host(&control.id)?;
        lab.start_host(&control.id)
    })
}

/// Something makes the instance boot: nodeup then reports no change but the hook, and the cluster is healthy.
pub fn expect_no_changes_after(
    lab: &mut Lab,
    id: &str,
    happens: impl FnOnce(&Lab) -> Result<()>,
) -> Result<()> {
    let (boot, before) = (lab.boot_id(id)?, reports::wait_for_report(lab, id)?);
    happens(lab)?;
    lab.booted_again(id, &boot)?;
    let after = reports::wait_for_later_report(lab, id, &before.started)?;
    eprintln!("       {}", describe_run(lab, &after)?);
    lab.ready_again(id, PATIENCE)?;
    cluster::expect_healthy(lab)?;
    let is_due = |one: &&String| DUE_IN_EVERY_BOOT.contains(&one.as_str());
    let due = after.changed.iter().filter(is_due);
    ensure!(
        after.changes == due.count(),
        "{}: {:?}",
        describe_run(lab, &after)?,
        after.changed
    );
    Ok(())
}

/// Figures of a run, and its console lines.
fn describe_run(lab: &Lab, report: &BootReport) -> Result<String> {
    let stages = lab.read_stages(&report.instance)?;
    let said = |stage: &&Stage| stage.time >= report.started && !stage.detail.is_empty();
    let lines: Vec<String> = stages
        .iter()
        .filter(said)
        .map(|stage| format!("\n         {}: {}", stage.to_words(), stage.detail))
        .collect();
    Ok(format!(
        "{}{}",
        reports::format_figures(report),
        lines.concat()
    ))
}
