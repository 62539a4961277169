//! etcd reaches its quota: it accepts no writes, but reads continue, and kubelet does not restart etcd. Once objects are deleted,
//! protokube compacts, defragments and disarms the alarm, and writes go on.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, etcd};
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{LIMIT, Lab, Outcome, Writers, unix_time};
use serde_json::Value;

/// How often a deletion is tried. The API server gives etcd about seven seconds each time.
const TRIES: u32 = 20;

pub fn reach_quota(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let before = etcd::count_restarts(lab)?;
    lab.run_kubectl(&["create", "namespace", "quota"])?;
    let tried = lab.fill_etcd("quota")?;
    let last = tried.last().context("nothing was tried")?;
    ensure!(
        last.outcome != Outcome::Done && last.why.contains("database space exceeded"),
        "{last:?}"
    );
    let done = tried.iter().filter(|one| one.outcome == Outcome::Done);
    eprintln!("       {} MB were taken, then: {}", done.count(), last.why);
    let read = "/api/v1/namespaces/quota/configmaps?limit=1";
    let read: Value = serde_json::from_str(&lab.run_kubectl(&["get", "--raw", read])?)?;
    ensure!(read["items"][0].is_object(), "{read}");
    expect_probes_to_pass(lab)?;
    lab.wait_until("kctl validate names the alarm", LIMIT, |lab| {
        let said = lab.run_kctl(&["validate", CLUSTER]);
        let said = said.unwrap_or_else(|failed| format!("{failed:#}"));
        ensure!(said.contains("alarm NOSPACE, raised for etcd-"), "{said}");
        Ok(())
    })?;
    let begun = unix_time()?;
    // A deletion writes no key, so etcd accepts it.
    let filled = "/api/v1/namespaces/quota/configmaps";
    for one in tried.iter().filter(|one| one.outcome == Outcome::Done) {
        delete_object(lab, &format!("{filled}/{}", one.name))?;
    }
    // Of the clients' writes, deletions went on all the time.
    lab.wait_until("etcd accepts writes", PATIENCE, |lab| {
        lab.run_kubectl(&["create", "namespace", "quota-over"])
    })?;
    writers.goes_on(lab, PATIENCE)?;
    eprintln!(
        "       writes are back {:.1} s after objects were deleted",
        unix_time()? - begun
    );
    lab.run_kubectl(&["delete", "namespace", "quota", "quota-over"])?;
    cluster::expect_healthy(lab)?;
    let after = etcd::count_restarts(lab)?;
    ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}

/// What the API server says of a deletion that etcd may have done. etcd is busy with what filled it.
const TIMED_OUT: &str = "request timed out";

/// What it says of one that etcd has not done, because its leader hands the lead over (raft: `ErrProposalDropped`): protokube moves it from
/// a member that it defragments.
const DROPPED: &str = "raft proposal dropped";

/// Deletes an object. What failed for a moment is repeated.
fn delete_object(lab: &Lab, path: &str) -> Result<()> {
    let mut timed_out = false;
    for _ in 0..TRIES {
        let Err(error) = lab.run_kubectl(&["delete", "--raw", path]) else {
            return Ok(());
        };
        let why = format!("{error:#}");
        if timed_out && why.contains("(NotFound)") {
            return Ok(());
        }
        ensure!(why.contains(TIMED_OUT) || why.contains(DROPPED), "{why}");
        timed_out |= why.contains(TIMED_OUT);
    }
    bail!("the deletion of {path} failed {TRIES} times");
}

/// The startup and liveness probes of the members pass.
fn expect_probes_to_pass(lab: &Lab) -> Result<()> {
    let pods = lab.get_objects(&["pods", "--namespace=kube-system"])?;
    let pods = pods["items"].as_array().context("pods")?;
    // The member of the second group may have lost its log.
    let instances = [
        cluster::control_plane(lab, 0)?,
        cluster::control_plane(lab, 2)?,
    ];
    let mut asked = 0;
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let own = instances.iter().any(|one| one.id == node);
        if !(own && name.starts_with("etcd-main-")) {
            continue;
        }
        let container = &pod["spec"]["containers"][0];
        for probe in ["livenessProbe", "startupProbe"] {
            let get = &container[probe]["httpGet"];
            let (path, port) = (get["path"].as_str(), get["port"].as_i64());
            let (path, port) = path.zip(port).context("a probe")?;
            let url = format!("http://127.0.0.1:{port}{path}");
            let said = lab.wait_until(&format!("{probe} of {name}"), LIMIT, |lab| {
                lab.run_script(
                    node,
                    &format!("curl -sS --max-time 15 -w '\\n%{{http_code}}' '{url}'"),
                )
            })?;
            ensure!(said.ends_with("\n200"), "{probe} of {name}, {url}: {said}");
            asked += 1;
        }
    }
    ensure!(asked == 4, "{asked} probes of two members");
    Ok(())
}
