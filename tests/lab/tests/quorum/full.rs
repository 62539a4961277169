//! Volumes that are full: writes stop, and come back when the spec's size has grown, without anybody on the machines. The kernel
//! lets nobody without CAP_SYS_RESOURCE grow a mounted file system. Where the machine of the lab lacks it, protokube has to try
//! all the same, and then the room is made by hand.

use super::{CLUSTER, PATIENCE, cluster, crashes, etcd};
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{LIMIT, Lab, Outcome, Writer};
use lab::world::Instance;

const LARGER: &str = "spec.etcdClusters[0].etcdMembers[*].volumeSize=2";

/// CAP_SYS_RESOURCE in a set of capabilities.
const SYS_RESOURCE: u64 = 1 << 24;

pub fn full(lab: &mut Lab, writer: &Writer) -> Result<()> {
    let mut all = Vec::new();
    for (machine, member) in cluster::control_planes(lab)?
        .into_iter()
        .zip(["a", "b", "c"])
    {
        all.push((machine, etcd::volume(lab, member)?));
    }
    lab.kubectl(&["create", "namespace", "full"])?;
    let (first, others) = all.split_first().context("control planes")?;
    fill(lab, &first.0, &first.1)?;
    writer.goes_on(lab, PATIENCE)?;
    read(lab).context("one volume of three is full")?;
    for (machine, volume) in others {
        fill(lab, machine, volume)?;
    }
    let tried = lab.fill("full")?;
    let done = tried.iter().filter(|one| one.outcome == Outcome::Done);
    let last = tried.last().context("nothing was tried")?;
    eprintln!("       {} MB were taken, then: {}", done.count(), last.why);
    ensure!(last.outcome != Outcome::Done, "etcd took all: {last:?}");
    match read(lab) {
        Ok(()) => eprintln!("       reads go on"),
        Err(failed) => eprintln!("       no reads: {failed:#}"),
    }
    let begun = crashes::now()?;
    lab.kctl(&["edit", "cluster", CLUSTER, "--set", LARGER])?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    if !may_grow()? {
        eprintln!(
            "       NOT TESTED: that the file systems grow, for which this machine lacks CAP_SYS_RESOURCE"
        );
        for (machine, volume) in &all {
            tried_to_grow(lab, machine, volume)?;
            lab.sh(&machine.id, &format!("rm {}/ballast", etcd::folder(volume)))?;
        }
    }
    writer.goes_on(lab, PATIENCE)?;
    let seconds = crashes::now()? - begun;
    eprintln!("       writes are back {seconds:.1} s after the volumes were full");
    if may_grow()? {
        return cluster::healthy(lab);
    }
    lab.until("kctl validate names what cannot grow", LIMIT, |lab| {
        let said = lab.kctl(&["validate", CLUSTER, "-o", "json"]);
        let Err(said) = said else {
            bail!("it says that the cluster is healthy");
        };
        let said = format!("{said:#}");
        let named = all
            .iter()
            .all(|(_, volume)| said.contains(&not_grown(volume)));
        ensure!(named, "{said}");
        Ok(())
    })
}

/// How protokube names a file system that stays smaller than its volume.
fn not_grown(volume: &str) -> String {
    format!("could not grow the file system of {volume}")
}

/// Reads what no cache of the API server has: a list of the newest state.
fn read(lab: &Lab) -> Result<()> {
    lab.kubectl(&["get", "--raw", "/api/v1/namespaces?limit=1"])
        .map(drop)
}

/// Takes all that is free.
fn fill(lab: &Lab, machine: &Instance, volume: &str) -> Result<()> {
    let folder = etcd::folder(volume);
    let fill = format!(
        "cd {folder}; fallocate --length \"$(df --output=avail -B1 . | tail -1)\" ballast 2>/dev/null || true
        dd if=/dev/zero of=rest bs=4k 2>/dev/null || true; df --output=avail . | tail -1"
    );
    let free = lab.sh(&machine.id, &fill)?;
    ensure!(free == "0", "{free} KiB are still free on {folder}");
    Ok(())
}

fn may_grow() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let set = u64::from_str_radix(set.context("CapBnd")?.trim(), 16)?;
    Ok(set & SYS_RESOURCE != 0)
}

/// protokube found that the volume is larger than its file system, though etcd is down, and was not let.
fn tried_to_grow(lab: &Lab, machine: &Instance, volume: &str) -> Result<()> {
    let words = not_grown(volume);
    lab.until("protokube tries to grow it", PATIENCE, |lab| {
        let stages = lab.stages(&machine.id)?;
        let tried = stages.iter().any(|one| one.detail.contains(&words));
        ensure!(tried, "it said {:?}", stages.last());
        Ok(())
    })
}
