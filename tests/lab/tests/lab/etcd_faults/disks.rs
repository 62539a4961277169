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
        fill(lab, &victim.id, &folder)?;
        Ok(vec![Due::once(after, move |lab| {
            free(lab, &victim.id, &folder)
        })])
    }))
}

/// Leaves no free space on the file system of a folder.
pub fn fill(lab: &Lab, instance: &str, folder: &str) -> Result<()> {
    let fill = format!(
        "cd {folder}; fallocate --length \"$(df --output=avail -B1 . | tail -1)\" ballast 2>/dev/null || true
        dd if=/dev/zero of=rest bs=4k 2>/dev/null || true; df --output=avail . | tail -1"
    );
    let free = lab.run_script(instance, &fill)?;
    ensure!(free == "0", "{free} KiB are still free on {folder}");
    Ok(())
}

/// Undoes [`fill`].
fn free(lab: &Lab, instance: &str, folder: &str) -> Result<()> {
    lab.run_script(instance, &format!("cd {folder}; rm -f ballast rest"))
        .map(drop)
}

/// The root disk has no free space for a while, in which protokube and etcd have to start again. kubelet's thresholds for eviction
/// lie above.
pub fn fill_root(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let after = chance.between(20.0, 60.0);
    Ok(Box::new(move |lab| {
        fill(lab, &victim.id, "/")?;
        lab.run_script(
            &victim.id,
            "systemctl kill --signal=KILL --kill-whom=main protokube; pkill -KILL -x etcd",
        )?;
        Ok(vec![Due::once(after, move |lab| {
            free(lab, &victim.id, "/")
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
