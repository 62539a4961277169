//! How long things take, for docs/specification.md; nothing is asserted of it: `cargo test -p lab --test cluster --
//! --ignored --nocapture figures`.

use super::{CONTROL_PLANES, WORKERS, launch, only};
use anyhow::{Context, Result};
use lab::host;
use lab::scenario::{LIMIT, Lab, Settings, stages};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
#[ignore = "prints figures; wants a quiet machine"]
fn figures() -> Result<()> {
    let begun = Instant::now();
    let mut lab = Lab::up(&Settings::new("t-figures", env!("CARGO_BIN_EXE_lab")))?;
    eprintln!(
        "up                         {:5.1} s",
        begun.elapsed().as_secs_f64()
    );
    let begun = Instant::now();
    lab.step("kctl create cluster, update --yes", launch::make)?;
    let groups: Vec<&str> = CONTROL_PLANES.iter().chain(&WORKERS).copied().collect();
    let mut ids = Vec::new();
    for group in &groups {
        ids.push(lab.group(group)?.first().context("a member")?.id.clone());
    }
    let launched = launched(&lab, &ids)?;
    let seconds = first_lines(&lab, &ids, launched)?;
    eprintln!(
        "five, launch to user data  {seconds:5.1?} s (update began {:.1} s ago)",
        begun.elapsed().as_secs_f64()
    );
    // One alone: the others are idle by then.
    std::thread::sleep(Duration::from_secs(5));
    for _ in 0..3 {
        let group = WORKERS[0];
        let old = only(&lab, group)?.id;
        lab.aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
        let new = lab.until("another instance", LIMIT, |lab| {
            let members = lab.group(group)?;
            let new = members.into_iter().find(|one| one.id != old);
            Ok(new.context("none yet")?.id)
        })?;
        let seconds = first_lines(&lab, &[new], Instant::now())?;
        eprintln!("one, launch to user data   {seconds:5.1?} s");
        std::thread::sleep(Duration::from_secs(3));
    }
    let begun = Instant::now();
    lab.down()?;
    eprintln!(
        "down                       {:5.1} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// When AWS launched the first of them, on this process's clock.
fn launched(lab: &Lab, ids: &[String]) -> Result<Instant> {
    let told = lab.aws("ec2", "DescribeInstances", &json!({"InstanceIds": ids}))?;
    let mut ages = Vec::new();
    for reservation in told["Reservations"].as_array().context("reservations")? {
        let time = reservation["Instances"][0]["LaunchTime"]
            .as_str()
            .context("a time")?;
        let format = &time::format_description::well_known::Rfc3339;
        ages.push(time::OffsetDateTime::now_utc() - time::OffsetDateTime::parse(time, format)?);
    }
    let oldest = ages.into_iter().max().context("an instance")?;
    Ok(Instant::now() - oldest.try_into().unwrap_or(Duration::ZERO))
}

/// Seconds from then until each said its first line of user data, looked for every few milliseconds.
fn first_lines(lab: &Lab, ids: &[String], since: Instant) -> Result<Vec<f64>> {
    let mut seconds: Vec<Option<f64>> = vec![None; ids.len()];
    while seconds.contains(&None) {
        for (id, seconds) in ids.iter().zip(&mut seconds) {
            let console = host::console(lab.place(), id).unwrap_or_default();
            if seconds.is_none() && !stages(&console).is_empty() {
                *seconds = Some(since.elapsed().as_secs_f64());
            }
        }
        anyhow::ensure!(since.elapsed() < LIMIT, "not all said one: {seconds:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(seconds.into_iter().flatten().collect())
}
