//! nodeup killed with -9 while it makes a node: the next run goes on, and the host is what it would have been.

use super::{PATIENCE, cluster, files, reports};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, fraction, number};
use lab::world::Instance;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// At most so many in the life of one host: it comes closer to its end each time.
const KILLS_OF_A_HOST: u64 = 6;

/// Seconds that nodeup takes undisturbed; one that escapes its kills tells how long it took here.
const LONGEST: f64 = 6.0;

/// How many hosts may escape all their kills by being done before.
const ESCAPES: usize = 5;

pub fn killed(lab: &mut Lab) -> Result<()> {
    let wanted = number("KCTL_NODEUP_KILLS")?.unwrap_or(10);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = number("KCTL_LAB_SEED")?.unwrap_or(now.as_secs());
    eprintln!("       KCTL_LAB_SEED={seed} KCTL_NODEUP_KILLS={wanted}");
    let undisturbed = cluster::workers(lab)?.remove(0);
    let expected = files::of(lab, &undisturbed)?;
    ensure!(expected.len() > 20, "nodeup made only {expected:?}");
    let mut position = 0;
    let mut moment = || {
        position += 1;
        fraction(seed, position)
    };
    let (mut kills, mut escapes) = (0, 0);
    let mut whole = LONGEST;
    while kills < wanted {
        let worker = another(lab, &undisturbed)?;
        let of_this = (wanted - kills).min(KILLS_OF_A_HOST);
        let done = kill(lab, &worker, of_this, whole, &mut moment)?;
        kills += done;
        escapes += usize::from(done == 0);
        ensure!(
            escapes <= ESCAPES,
            "{escapes} hosts were done before they were killed"
        );
        cluster::becomes_ready(lab, &worker.id)?;
        let report = reports::told(lab, &worker.id)?;
        if done == 0 {
            whole = report.stages.iter().map(|stage| stage.seconds).sum();
        }
        eprintln!(
            "       killed {done} times, then {}",
            reports::figures(&report)
        );
        lab.until("its files are those of the undisturbed", LIMIT, |lab| {
            let difference = files::difference(&expected, &files::of(lab, &worker)?);
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
    cluster::healthy(lab)
}

/// Ends the worker that is not `kept`; the one that the group launches for it.
pub fn another(lab: &Lab, kept: &Instance) -> Result<Instance> {
    let before = cluster::workers(lab)?;
    let old = before.iter().find(|one| one.id != kept.id);
    let old = &old.context("there is no second worker")?.id;
    lab.aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
    let known: BTreeSet<&str> = before.iter().map(|one| one.id.as_str()).collect();
    lab.until("another worker runs", PATIENCE, |lab| {
        let mut now = cluster::workers(lab)?;
        now.retain(|one| !known.contains(one.id.as_str()));
        now.pop().context("the group has launched none")
    })
}

/// Main process of nodeup's unit, and its state.
fn nodeup(lab: &Lab, host: &str) -> Result<(u32, String)> {
    let show = "systemctl show --property=MainPID,ActiveState --value nodeup.service";
    let said = lab.sh(host, show)?;
    let (pid, state) = said.split_once('\n').context("two lines")?;
    Ok((pid.parse()?, state.to_owned()))
}

/// Kills nodeup in a new host so often, or until it is done; how often. `whole` seconds is what it takes undisturbed.
fn kill(
    lab: &Lab,
    host: &Instance,
    times: u64,
    whole: f64,
    moment: &mut impl FnMut() -> f64,
) -> Result<u64> {
    let mut done = 0;
    while done < times {
        let pid = lab.until("nodeup runs or is done", PATIENCE, |lab| {
            let (pid, state) = nodeup(lab, &host.id)?;
            ensure!(state == "active" || pid > 0, "it is {state}");
            Ok(if state == "active" { 0 } else { pid })
        })?;
        if pid == 0 {
            break;
        }
        // What is left gets shorter with each kill: archives that are unpacked stay so.
        let longest = whole / f64::from(u32::try_from(done + 1)?).powi(2);
        std::thread::sleep(Duration::from_secs_f64(longest * moment()));
        // It may be done by now, and is nobody's then. systemd would start it in ten seconds.
        let kill = format!("kill -9 {pid} && systemctl start --no-block nodeup.service");
        if lab.sh(&host.id, &kill).is_ok() {
            done += 1;
            eprintln!("       nodeup {pid} of {} killed", host.id);
            lab.until("systemd sees it", LIMIT, |lab| {
                ensure!(nodeup(lab, &host.id)?.0 != pid, "it does not");
                Ok(())
            })?;
        }
    }
    Ok(done)
}
