//! Control planes crash like in a power failure, while a client writes.

use super::super::{PATIENCE, cluster, etcd};
use super::reboots;
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, describe_gaps, unix_time};
use serde_json::{Value, json};

/// One control plane crashes: writes continue, and nodeup changes nothing when it is back. Its volume has lost the data that was not
/// flushed and kept the rest; otherwise the test would say nothing about etcd.
pub fn crash_one(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let host = cluster::control_plane(lab, 1)?.id;
    let folder = etcd::mount_point(&etcd::find_volume(lab, "b")?);
    writers.goes_on(lab, PATIENCE)?;
    let write = format!(
        "cd {folder}; echo is there >flushed; sync flushed; echo is gone >unflushed; cat flushed unflushed"
    );
    ensure!(lab.run_script(&host, &write)? == "is there\nis gone");
    let begun = unix_time()?;
    reboots::expect_no_changes_after(lab, &host, |lab| {
        writers.acknowledged_just_before(lab, || lab.kill_host(&host))?;
        writers.goes_on(lab, PATIENCE)?;
        lab.start_host(&host)
    })?;
    let gaps = describe_gaps(&writers.read_attempts()?, begun, unix_time()?);
    eprintln!("       {gaps}");
    let left = format!("cd {folder}; cat flushed; cat unflushed 2>/dev/null || true");
    let left = lab.run_script(&host, &left)?;
    ensure!(left == "is there", "after the crash there is {left:?}");
    lab.run_script(&host, &format!("cd {folder}; rm -f flushed unflushed"))
        .map(drop)
}

/// EC2 answers only errors: control planes must start with the names and volumes that they have.
pub fn fail_ec2_calls() -> Value {
    json!([{"service": "ec2", "times": 1_000_000, "code": "Unavailable", "status": 503}])
}

/// All control planes crash at once, and come back while these AWS calls fail.
pub fn crash_all(lab: &mut Lab, writers: &Writers, faults: &Value) -> Result<()> {
    let hosts: Vec<String> = cluster::control_planes(lab, 3)?
        .into_iter()
        .map(|one| one.id)
        .collect();
    let ids: Vec<&str> = hosts.iter().map(String::as_str).collect();
    writers.goes_on(lab, PATIENCE)?;
    lab.set_faults(faults)?;
    let begun = unix_time()?;
    writers.acknowledged_just_before(lab, || lab.kill_all(&ids))?;
    let down = unix_time()?;
    for id in &ids {
        lab.start_host(id)?;
    }
    let back = lab.wait_until("writes are acknowledged again", PATIENCE, |_| {
        let all = writers.read_attempts()?;
        let mut after = all.iter().filter(|one| one.begun > down);
        let done = after.find(|one| one.is_acknowledged());
        Ok(done.with_context(|| format!("{:?}", all.last()))?.ended)
    });
    let healed = lab.set_faults(&json!([]));
    eprintln!("       writes are back after {:.1} s", back? - begun);
    healed?;
    for id in ids {
        lab.ready_again(id, PATIENCE)?;
    }
    cluster::expect_healthy(lab)
}

/// Ends the writers, checks what they recorded, and that the etcd members of these groups hold the same.
pub fn check_history(lab: &mut Lab, writers: Writers, groups: &[usize]) -> Result<()> {
    let tally = writers.check_history()?;
    ensure!(tally.acknowledged > 0 && tally.events > 0, "{tally:?}");
    eprintln!("       {tally:?}");
    etcd::expect_equal_hashes(lab, groups)
}
