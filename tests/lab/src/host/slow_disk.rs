//! Slow disks: the writes of a host's processes to its volumes are limited, in the host's own cgroups, which end with it.

use super::state::Host;
use crate::cgroup;
use crate::lab_paths::LabPaths;
use anyhow::{Context, Result, ensure};
use std::fs;

/// A cgroup's limit of writes per second, in version 1 and 2 of cgroups, and what stands for none.
const LIMITS: [(&str, &str, &str); 2] = [
    ("blkio.throttle.write_iops_device", "", "0"),
    ("io.max", "wiops=", "max"),
];

/// Lets a host's processes write at most `per_second` times a second to each of its volumes; `None`: as fast as they can. This
/// includes the writes of a flush. Cgroups that come later, as those of a restarted container, have no limit.
pub fn limit_writes(place: &LabPaths, instance: &str, per_second: Option<u32>) -> Result<()> {
    let volumes = Host::read_host(place, instance)?.read_volumes(place)?;
    let mut limited = 0;
    for hierarchy in cgroup::list_hierarchies()? {
        let own = hierarchy.root.join(place.host_cgroup(instance));
        for group in cgroup::cgroup_tree(&own)? {
            for (name, key, none) in LIMITS {
                let path = group.join(name);
                if !path.exists() {
                    continue;
                }
                for volume in &volumes {
                    let number = per_second.map_or_else(|| none.to_owned(), |one| one.to_string());
                    let line = format!("{}:{} {key}{number}", volume.major, volume.minor);
                    fs::write(&path, line)
                        .with_context(|| format!("writing {}", path.display()))?;
                    limited += 1;
                }
            }
        }
    }
    ensure!(
        limited > 0,
        "{instance} has no cgroup that limits writes to its volumes"
    );
    Ok(())
}
