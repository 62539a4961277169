//! How long things take, for docs/specification.md; nothing is asserted of it: `cargo test -p lab --test cluster --
//! --ignored --nocapture figures`.

use super::{CONTROL_PLANES, WORKERS, launch, only};
use anyhow::{Context, Result, ensure};
use lab::daemon::begin;
use lab::host;
use lab::scenario::{LIMIT, Lab, Settings, stages};
use lab::world::InstanceState;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[test]
#[ignore = "prints figures; wants a quiet machine"]
fn figures() -> Result<()> {
    let begun = Instant::now();
    let mut lab = Lab::up(&Settings::new("t-figures", env!("CARGO_BIN_EXE_lab")))?;
    eprintln!(
        "up                         {:5.1} s",
        begun.elapsed().as_secs_f64()
    );
    lab.step("kctl create cluster, update --yes", launch::make)?;
    let groups: Vec<&str> = CONTROL_PLANES.iter().chain(&WORKERS).copied().collect();
    let mut ids = Vec::new();
    for group in &groups {
        ids.push(lab.group(group)?.first().context("a member")?.id.clone());
    }
    let seconds = first_lines(&lab, &ids)?;
    eprintln!("five, launch to user data  {seconds:5.1?} s");
    // One alone: the others are idle by then.
    sleep(Duration::from_secs(15));
    for _ in 0..3 {
        let group = WORKERS[0];
        let old = only(&lab, group)?.id;
        lab.aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
        lab.reaches(&old, InstanceState::Terminated)?;
        let new = lab.until("another instance", LIMIT, |lab| {
            let members = lab.group(group)?;
            let new = members.into_iter().find(|one| one.id != old);
            Ok(new.context("none yet")?.id)
        })?;
        let seconds = first_lines(&lab, &[new])?;
        eprintln!("one, launch to user data   {seconds:5.1?} s");
        sleep(Duration::from_secs(5));
    }
    let begun = Instant::now();
    lab.down()?;
    eprintln!(
        "down                       {:5.1} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Seconds from when the daemon saw each launch, a moment after it, until the first line of user data.
fn first_lines(lab: &Lab, ids: &[String]) -> Result<Vec<f64>> {
    let begun = Instant::now();
    let mut said: Vec<Option<OffsetDateTime>> = vec![None; ids.len()];
    while said.contains(&None) {
        for (id, said) in ids.iter().zip(&mut said) {
            let console = host::console(lab.place(), id).unwrap_or_default();
            if said.is_none() && !stages(&console).is_empty() {
                *said = Some(OffsetDateTime::now_utc());
            }
        }
        ensure!(begun.elapsed() < LIMIT, "not all said one: {said:?}");
        sleep(Duration::from_millis(10));
    }
    let log = std::fs::read_to_string(begin::log_path(lab.place()))?;
    let seconds = ids.iter().zip(said).map(|(id, said)| {
        let mut lines = log.lines();
        let line = lines.find(|line| line.contains("begin") && line.contains(id.as_str()));
        let time = line.and_then(|line| line.split_whitespace().next());
        let launched = OffsetDateTime::parse(time.context("no launch in the log")?, &Rfc3339)?;
        Ok((said.context("no line")? - launched).as_seconds_f64())
    });
    seconds.collect()
}
