//! nodeup is killed with -9 at random moments of its first run: the next run completes the work, and the host has the same files as
//! an undisturbed one.

use super::super::{PATIENCE, cluster, files, reports};
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::{LIMIT, Lab, number_from_environment, random_fraction};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Most kills on one host: each run of nodeup gets further than the one before.
const KILLS_OF_A_HOST: u64 = 6;

/// Assumed duration of an undisturbed run in seconds, until a run that was not killed shows the real one.
const LONGEST: f64 = 6.0;

/// Most hosts on which nodeup may finish before the first kill.
const ESCAPES: usize = 5;

pub fn kill_nodeup(lab: &mut Lab) -> Result<()> {
    let wanted = number_from_environment("KCTL_NODEUP_KILLS")?.unwrap_or(5);
    let seed = super::read_seed()?;
    eprintln!("       KCTL_LAB_SEED={seed} KCTL_NODEUP_KILLS={wanted}");
    let undisturbed = cluster::worker_instances(lab)?.remove(0);
    let expected = files::list_files(lab, &undisturbed)?;
    ensure!(expected.len() > 20, "nodeup made only {expected:?}");
    let mut position = 0;
    let mut moment = || {
        position += 1;
        random_fraction(seed, position)
    };
    let (mut kills, mut escapes) = (0, 0);
    let mut whole = LONGEST;
    while kills < wanted {
        let worker = replace_worker(lab, &undisturbed)?;
        let of_this = (wanted - kills).min(KILLS_OF_A_HOST);
        let done = kill_repeatedly(lab, &worker, of_this, whole, &mut moment)?;
        kills += done;
        escapes += usize::from(done == 0);
        ensure!(
            escapes <= ESCAPES,
            "{escapes} hosts were done before they were killed"
        );
        cluster::becomes_ready(lab, &worker.id)?;
        let report = reports::wait_for_report(lab, &worker.id)?;
        if done == 0 {
            whole = report.stages.iter().map(|stage| stage.seconds).sum();
        }
        eprintln!(
            "       killed {done} times, then {}",
            reports::format_figures(&report)
        );
        lab.wait_until("its files are those of the undisturbed", LIMIT, |lab| {
            let difference =
                files::describe_difference(&expected, &files::list_files(lab, &worker)?);
            ensure!(
                difference.is_empty(),
                "undisturbed, and killed:\n{difference}"
            );
            Ok(())
        })?;
    }
    eprintln!(
        "       {kills} kills, {} paths equal on each host",
        expected.len()
    );
    cluster::expect_healthy(lab)
}

/// Terminates the worker that is not `kept`, and returns its replacement.
pub fn replace_worker(lab: &Lab, kept: &Instance) -> Result<Instance> {
    let before = cluster::worker_instances(lab)?;
    let old = before.iter().find(|one| one.id != kept.id);
    let old = &old.context("there is no second worker")?.id;
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let known: BTreeSet<&str> = before.iter().map(|one| one.id.as_str()).collect();
    lab.wait_until("another worker runs", PATIENCE, |lab| {
        let mut now = cluster::worker_instances(lab)?;
        now.retain(|one| !known.contains(one.id.as_str()));
        now.pop().context("the group has launched none")
    })
}

/// Main process and state of nodeup's unit.
fn nodeup_unit(lab: &Lab, host: &str) -> Result<(u32, String)> {
    let show = "systemctl show --property=MainPID,ActiveState --value nodeup.service";
    let said = lab.run_script(host, show)?;
    let (pid, state) = said.split_once('\n').context("two lines")?;
    Ok((pid.parse()?, state.to_owned()))
}

/// Kills nodeup on a new host up to `times` times, or until it is done, and returns how often. An undisturbed run takes `whole` seconds.
fn kill_repeatedly(
    lab: &Lab,
    host: &Instance,
    times: u64,
    whole: f64,
    moment: &mut impl FnMut() -> f64,
) -> Result<u64> {
    let mut done = 0;
    while done < times {
        let pid = lab.wait_until("nodeup runs or is done", PATIENCE, |lab| {
            let (pid, state) = nodeup_unit(lab, &host.id)?;
            ensure!(state == "active" || pid > 0, "it is {state}");
            Ok(if state == "active" { 0 } else { pid })
        })?;
        if pid == 0 {
            break;
        }
        // Each run has less to do: extracted archives stay.
        let longest = whole / f64::from(u32::try_from(done + 1)?).powi(2);
        std::thread::sleep(Duration::from_secs_f64(longest * moment()));
        // nodeup may be done by now. systemd would restart it only after ten seconds.
        let kill = format!("kill -9 {pid} && systemctl start --no-block nodeup.service");
        if lab.run_script(&host.id, &kill).is_ok() {
            done += 1;
            eprintln!("       nodeup {pid} of {} killed", host.id);
            lab.wait_until("systemd sees it", LIMIT, |lab| {
                ensure!(nodeup_unit(lab, &host.id)?.0 != pid, "it does not");
                Ok(())
            })?;
        }
    }
    Ok(done)
}
