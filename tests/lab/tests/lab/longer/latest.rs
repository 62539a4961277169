//! All control planes and volumes are destroyed under writes, and the cluster is made again from the backup store with what was
//! acknowledged until ten seconds before. Then a restore to a time, while etcd serves, ends with the writes until that time.

use super::super::cluster::{self, CLUSTER};
use super::super::reports::{read_object, store_key};
use super::super::{PATIENCE, etcd};
use super::restored::{list_configmaps, lose_all, make_cluster, restore_lost};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Attempt, History, Lab, Writers, unix_time};
use serde_json::Value;
use std::collections::BTreeMap;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Seconds of acknowledged writes that may be lost: by default changes are stored every five.
const LOST: f64 = 10.0;

/// Times of objects in S3 are whole seconds.
const SECOND: f64 = 1.0;

pub fn run(lab: &mut Lab) -> Result<()> {
    lose_and_restore(lab, 3)?;
    etcd::expect_equal_hashes(lab, &[0, 1, 2])?;
    let (history, moment) = lab.run_step("clients write before and after a moment", write_on)?;
    lab.run_step("etcd is restored to that moment while it serves", |lab| {
        restore_to(lab, history, moment)
    })
}

/// Nobody else has the data of the only control plane.
pub fn run_with_one_control_plane(lab: &mut Lab) -> Result<()> {
    lose_and_restore(lab, 1)
}

fn lose_and_restore(lab: &mut Lab, count: usize) -> Result<()> {
    lab.run_step("kctl makes a cluster", |lab| make_cluster(lab, count, &[]))?;
    lab.run_step(
        "each etcd cluster has a verified snapshot",
        etcd::expect_snapshots,
    )?;
    let writers = lab.run_step("writes begin, and are stored", |lab| {
        let writers = lab.start_writers("latest")?;
        expect_stored(lab)?;
        Ok(writers)
    })?;
    let history = lab.run_step("all control planes and volumes are destroyed", |lab| {
        destroy_all(lab, writers, count)
    })?;
    lab.run_step("the documented commands bring it back", |lab| {
        restore_lost(lab, count, &["--latest"])
    })?;
    lab.run_step("all writes but the last ones are there", |lab| {
        let acknowledged = history.attempts.iter().filter(|one| one.is_acknowledged());
        let last = acknowledged.map(|one| one.ended).fold(0.0, f64::max);
        expect_restored(lab, history, "latest", last).map(drop)
    })
}

/// Waits until what the API shows now is in parts of the changes, as protokube says once a minute.
fn expect_stored(lab: &Lab) -> Result<()> {
    let (_, revision) = list_configmaps(lab)?;
    lab.wait_until("the changes until now are stored", PATIENCE, |lab| {
        let state: Value =
            serde_json::from_str(&read_object(lab, &store_key("etcd/main/backups.json"))?)?;
        let stored = state["changes"]["revision"].as_u64();
        ensure!(stored >= Some(revision), "not up to {revision}: {state}");
        Ok(())
    })
}

/// All machines crash at most 100 ms after an acknowledged write, and are terminated; their volumes are deleted. Clients go on.
fn destroy_all(lab: &mut Lab, writers: Writers, count: usize) -> Result<History> {
    let planes = cluster::control_planes(lab, count)?;
    let ids: Vec<&str> = planes.iter().map(|one| one.id.as_str()).collect();
    writers.goes_on(lab, PATIENCE)?;
    writers.acknowledged_just_before(lab, || lab.kill_all(&ids))?;
    let lost = unix_time()?;
    lose_all(lab, count)?;
    // By then every call that was under way is recorded.
    lab.wait_until("clients go on", PATIENCE, |_| {
        let all = writers.read_attempts()?;
        let later = all.iter().any(|one| one.begun > lost + LOST);
        ensure!(later, "the last attempt: {:?}", all.last());
        Ok(())
    })?;
    writers.stop()
}

/// Returns what clients did, and a time before and after which some of it is stored.
fn write_on(lab: &mut Lab) -> Result<(History, f64)> {
    let writers = lab.start_writers("again")?;
    expect_stored(lab)?;
    let moment = unix_time()?.floor();
    lab.wait_until("clients write on for a while", PATIENCE, |_| {
        let all = writers.read_attempts()?;
        let mut done = all.iter().filter(|one| one.is_acknowledged());
        let later = done.any(|one| one.begun > moment + LOST);
        ensure!(later, "the last attempt: {:?}", all.last());
        Ok(())
    })?;
    expect_stored(lab)?;
    Ok((writers.end()?, moment))
}

fn restore_to(lab: &mut Lab, history: History, moment: f64) -> Result<()> {
    let time = OffsetDateTime::UNIX_EPOCH + Duration::seconds_f64(moment);
    let time = time.format(&Rfc3339)?;
    let words = ["etcd", "restore", CLUSTER, "--time", &time, "--yes"];
    lab.run_kctl(&words)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_three_voters(lab)?;
    let lost = expect_restored(lab, history, "again", moment)?;
    let later = lost.iter().filter(|one| one.begun > moment + SECOND);
    let count = later.count();
    eprintln!("       {count} acknowledged writes after {time} are given up");
    ensure!(count > 0, "nothing was written after {time}");
    etcd::expect_equal_hashes(lab, &[0, 1, 2])
}

/// The namespace has what was acknowledged up to the revision with which the restored data ends, in that order, and nothing else; this revision
/// is one of the last seconds before the moment. Returns the acknowledged writes that are lost.
fn expect_restored(
    lab: &Lab,
    history: History,
    namespace: &str,
    moment: f64,
) -> Result<Vec<Attempt>> {
    let items = list_items(lab, namespace)?;
    let (history, lost) = history.restored_at(read_revision(lab)?, items);
    let tally = history.judge()?;
    let ages = lost.iter().map(|one| moment - one.ended);
    let missing: Vec<f64> = ages.filter(|age| *age >= 0.0).collect();
    let seconds = missing.iter().copied().fold(0.0, f64::max);
    eprintln!(
        "       {} acknowledged writes of the last {seconds:.1} s are missing; {tally:?}",
        missing.len()
    );
    ensure!(
        seconds <= LOST,
        "the first one that is lost: {:?}",
        lost.first()
    );
    ensure!(tally.acknowledged > 0, "nothing was acknowledged");
    let mut kept = history.attempts.iter().filter(|one| one.is_acknowledged());
    let early = kept.find(|one| one.begun > moment + SECOND);
    ensure!(early.is_none(), "it is of later: {early:?}");
    Ok(lost)
}

/// The revision with which the data ends that etcd began with.
fn read_revision(lab: &Lab) -> Result<u64> {
    let record: Value = serde_json::from_str(&read_object(lab, &store_key("etcd/main.json"))?)?;
    let restored = &record["generation"]["restored"];
    let changed = restored["changes"]["revision"].as_u64();
    let revision = changed.or_else(|| restored["revision"].as_u64());
    revision.with_context(|| record.to_string())
}

/// What clients of [`Writers`] have in a namespace: by name, value and version.
fn list_items(lab: &Lab, namespace: &str) -> Result<BTreeMap<String, (String, u64)>> {
    let all = lab.get_objects(&["configmaps", "--namespace", namespace])?;
    let mut items = BTreeMap::new();
    for one in all["items"].as_array().context("items")? {
        // The one with the cluster's certificates has none.
        if let Some(value) = one["data"]["value"].as_str() {
            let text = |key: &str| one["metadata"][key].as_str().context("metadata");
            let version = text("resourceVersion")?.parse()?;
            items.insert(text("name")?.to_owned(), (value.to_owned(), version));
        }
    }
    Ok(items)
}
