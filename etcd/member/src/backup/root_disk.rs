//! Free space on the root disk of a control plane. Containers and logs are there too, so backups must not fill it.

use anyhow::bail;
use host::{DiskSpace, Host};

/// Percent of the disk that stay free: below, kubelet evicts pods (kubelet: `nodefs.available` of `evictionHard`, which kOps sets too).
const RESERVE: u64 = 10;

/// Checks that the disk of this folder has room for so many bytes, and a reserve besides. `what` needs them.
pub(crate) fn check_room(host: &Host, folder: &str, needed: u64, what: &str) -> anyhow::Result<()> {
    let DiskSpace { total, free } = host.disk_space(folder)?;
    let reserve = total / 100 * RESERVE;
    if free < needed.saturating_add(reserve) {
        bail!(
            "the disk of {folder} has {} MiB of free space, and {what} needs {} MiB, while {RESERVE} % of the disk ({} MiB) stay free, below \
             which kubelet evicts pods: set a larger rootVolume.size of the instance group and replace its instances",
            free >> 20,
            (needed >> 20) + 1,
            reserve >> 20
        );
    }
    Ok(())
}
