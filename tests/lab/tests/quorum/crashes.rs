//! Power failures of control planes, under writes.

use super::{PATIENCE, cluster, etcd};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Outcome, Writer, longest_gap};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

/// One: writes go on. What was not flushed to its volume is lost, what was is there: else the steps after this one would show
/// nothing of etcd.
pub fn one(lab: &mut Lab, writer: &Writer) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let folder = etcd::folder(&etcd::volume(lab, "b")?);
    writer.goes_on(lab, PATIENCE)?;
    let boot = lab.boot(&host)?;
    let write = format!(
        "cd {folder}; echo is there >flushed; sync flushed; echo is gone >unflushed; cat flushed unflushed"
    );
    ensure!(lab.sh(&host, &write)? == "is there\nis gone");
    let begun = now()?;
    lab.kill(&host)?;
    writer.goes_on(lab, PATIENCE)?;
    lab.start(&host)?;
    lab.booted_again(&host, &boot)?;
    lab.ready_again(&host, PATIENCE)?;
    let gap = longest_gap(&writer.all()?, begun, now()?);
    eprintln!("       the longest gap in writes: {gap:.1} s");
    let left = format!("cd {folder}; cat flushed; cat unflushed 2>/dev/null || true");
    let left = lab.sh(&host, &left)?;
    ensure!(left == "is there", "after the crash there is {left:?}");
    lab.sh(&host, &format!("cd {folder}; rm -f flushed unflushed"))?;
    cluster::healthy(lab)
}

/// EC2 answers nothing but errors: names and volumes are what the machines kept.
pub fn no_ec2() -> Value {
    json!([{"service": "ec2", "times": 1_000_000, "code": "Unavailable", "status": 503}])
}

/// All at once, while AWS calls fail like that.
pub fn all(lab: &mut Lab, writer: &Writer, faults: &Value) -> Result<()> {
    let hosts: Vec<String> = cluster::control_planes(lab)?
        .into_iter()
        .map(|one| one.id)
        .collect();
    let ids: Vec<&str> = hosts.iter().map(String::as_str).collect();
    writer.goes_on(lab, PATIENCE)?;
    lab.faults(faults)?;
    let begun = now()?;
    lab.kill_all(&ids)?;
    let down = now()?;
    for id in &ids {
        lab.start(id)?;
    }
    let back = lab.until("writes are acknowledged again", PATIENCE, |_| {
        let all = writer.all()?;
        let mut after = all.iter().filter(|one| one.begun > down);
        let done = after.find(|one| one.outcome == Outcome::Done);
        Ok(done.with_context(|| format!("{:?}", all.last()))?.ended)
    });
    let healed = lab.faults(&json!([]));
    eprintln!("       writes are back after {:.1} s", back? - begun);
    healed?;
    for id in ids {
        lab.ready_again(id, PATIENCE)?;
    }
    cluster::healthy(lab)
}

/// What was acknowledged until now is there.
pub fn checked(lab: &mut Lab, writer: Writer) -> Result<()> {
    let tally = writer.check(lab)?;
    ensure!(tally.acknowledged > 0, "{tally:?}");
    eprintln!("       {tally:?}");
    Ok(())
}
