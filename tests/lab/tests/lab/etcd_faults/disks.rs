//! Disks that are full or slow for a while.

use super::super::etcd;
use super::kinds::choose_one;
use super::schedule::{Chance, Due, Fault};
use anyhow::{Result, ensure};
use lab::scenario::Lab;

/// The volume of a member of `main` has no free space for a while.
pub fn fill_volume(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let folder = etcd::mount_point(&etcd::find_volume(lab, victim.member)?);
    let after = chance.between(20.0, 60.0);
    Ok(Box::new(move |lab| {
        let fill = format!(
            "cd {folder}; fallocate --length \"$(df --output=avail -B1 . | tail -1)\" ballast 2>/dev/null || true
            dd if=/dev/zero of=rest bs=4k 2>/dev/null || true; df --output=avail . | tail -1"
        );
        let free = lab.run_script(&victim.id, &fill)?;
        ensure!(free == "0", "{free} KiB are still free on {folder}");
        Ok(vec![Due::once(after, move |lab| {
            lab.run_script(&victim.id, &format!("rm -f {folder}/ballast {folder}/rest"))
                .map(drop)
        })])
    }))
}

/// Folders on the root disk into which protokube, kubelet and containerd write. Mount points below them would be hidden.
const WRITTEN: &str = "/etc/kubernetes /var/lib/kctl /var/lib/containerd /var/log";

/// Nothing can be written to the root disk for a while, in which protokube and etcd have to start again. All hosts share the lab
/// machine's disk, so what is full is a file system in memory that takes all writes to these folders. Unlike on a disk, nothing
/// can be deleted there either.
pub fn fill_root(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let after = chance.between(20.0, 60.0);
    let fill = format!(
        "mkdir -p /run/full; mount -t tmpfs -o size=64k,nr_inodes=64 full /run/full
        for at in {WRITTEN}; do
            over=/run/full/$(echo $at | tr / _); mkdir $over $over/upper $over/work
            mount -t overlay full -o lowerdir=$at,upperdir=$over/upper,workdir=$over/work $at
        done
        n=0; while touch /run/full/$n 2>/dev/null; do n=$((n + 1)); done
        for at in {WRITTEN}; do if mkdir $at/full 2>/dev/null; then echo $at is not full; exit 1; fi; done
        systemctl kill --signal=KILL --kill-whom=main protokube; pkill -KILL -x etcd"
    );
    Ok(Box::new(move |lab| {
        lab.run_script(&victim.id, &fill)?;
        Ok(vec![Due::once(after, move |lab| {
            let free = format!(
                "for at in {WRITTEN} /run/full; do
                    ! mountpoint -q $at || [ \"$(findmnt -no SOURCE $at | tail -1)\" != full ] || umount -l $at
                done"
            );
            lab.run_script(&victim.id, &free).map(drop)
        })])
    }))
}

/// A disk that takes a few writes per second: each flush of the log needs at least one.
pub fn slow_down(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let (writes, after) = (
        chance.choose(vec![2, 4, 8, 16], 1),
        chance.between(20.0, 60.0),
    );
    Ok(Box::new(move |lab| {
        lab.limit_writes(&victim.id, writes.first().copied())?;
        Ok(vec![Due::once(after, move |lab| {
            lab.limit_writes(&victim.id, None)
        })])
    }))
}
