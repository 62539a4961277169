//! etcd's volumes are full: writes stop, and continue after the volumes have grown by `kctl update`, without access to the instances.
//! Growing a mounted file system needs CAP_SYS_RESOURCE. If the lab machine lacks it, the test checks that protokube tries, and then
//! frees space by hand.

use super::super::cluster::{self, CLUSTER};
use super::super::etcd_faults::disks;
use super::super::{PATIENCE, etcd};
use anyhow::{Context, Result, bail, ensure};
use lab::aws_state::Instance;
use lab::scenario::{LIMIT, Lab, Outcome, Writers, unix_time};

const LARGER: &str = "spec.etcdClusters[0].etcdMembers[*].volumeSize=2";

/// The bit of CAP_SYS_RESOURCE.
const SYS_RESOURCE: u64 = 1 << 24;

pub fn fill_volumes(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let mut all = Vec::new();
    for (instance, member) in cluster::control_planes(lab, 3)?
        .into_iter()
        .zip(["a", "b", "c"])
    {
        all.push((instance, etcd::find_volume(lab, member)?));
    }
    lab.run_kubectl(&["create", "namespace", "full"])?;
    let (first, others) = all.split_first().context("control planes")?;
    disks::fill(lab, &first.0.id, &etcd::mount_point(&first.1))?;
    writers.goes_on(lab, PATIENCE)?;
    read_uncached(lab).context("one volume of three is full")?;
    for (instance, volume) in others {
        disks::fill(lab, &instance.id, &etcd::mount_point(volume))?;
    }
    let tried = lab.fill_etcd("full")?;
    let done = tried.iter().filter(|one| one.outcome == Outcome::Done);
    let last = tried.last().context("nothing was tried")?;
    eprintln!("       {} MB were taken, then: {}", done.count(), last.why);
    ensure!(last.outcome != Outcome::Done, "etcd took all: {last:?}");
    match read_uncached(lab) {
        Ok(()) => eprintln!("       reads go on"),
        Err(failed) => eprintln!("       no reads: {failed:#}"),
    }
    let begun = unix_time()?;
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", LARGER])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    if !may_grow()? {
        eprintln!(
            "       NOT TESTED: that the file systems grow, because this machine lacks CAP_SYS_RESOURCE"
        );
        for (instance, volume) in &all {
            expect_attempt_to_grow(lab, instance, volume)?;
            lab.run_script(
                &instance.id,
                &format!("rm {}/ballast", etcd::mount_point(volume)),
            )?;
        }
    }
    writers.goes_on(lab, PATIENCE)?;
    let seconds = unix_time()? - begun;
    eprintln!("       writes are back {seconds:.1} s after the volumes were full");
    if may_grow()? {
        return cluster::expect_healthy(lab);
    }
    lab.wait_until("kctl validate names what cannot grow", LIMIT, |lab| {
        let said = lab.run_kctl(&["validate", CLUSTER, "-o", "json"]);
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

/// What protokube says about a file system that it could not grow.
fn not_grown(volume: &str) -> String {
    format!("could not grow the file system of {volume}")
}

/// Reads from etcd and not from the API server's cache: a list of the newest state.
fn read_uncached(lab: &Lab) -> Result<()> {
    lab.run_kubectl(&["get", "--raw", "/api/v1/namespaces?limit=1"])
        .map(drop)
}

/// Whether the kernel lets this machine grow mounted file systems.
pub fn may_grow() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let set = u64::from_str_radix(set.context("CapBnd")?.trim(), 16)?;
    Ok(set & SYS_RESOURCE != 0)
}

/// Waits until protokube has tried to grow the file system, though etcd is down.
fn expect_attempt_to_grow(lab: &Lab, instance: &Instance, volume: &str) -> Result<()> {
    let words = not_grown(volume);
    lab.wait_until("protokube tries to grow it", PATIENCE, |lab| {
        let stages = lab.read_stages(&instance.id)?;
        let tried = stages.iter().any(|one| one.detail.contains(&words));
        ensure!(tried, "it said {:?}", stages.last());
        Ok(())
    })
}
