//! Who this machine is: what the metadata service says of it, and what it says of itself.

use crate::facts;
use anyhow::Context;
use model::node::{BootConfig, Host};
use std::path::Path;

/// Asks the metadata service and looks around.
pub async fn identify(boot: &BootConfig) -> anyhow::Result<Host> {
    let imds = aws::Imds::new();
    let instance_id = imds
        .instance_id()
        .await?
        .context("the metadata service names no instance")?;
    let zone = imds.get("meta-data/placement/availability-zone").await?;
    let os_release =
        std::fs::read_to_string("/etc/os-release").context("could not read /etc/os-release")?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Ok(Host {
        instance_id,
        zone: zone.context("the metadata service names no availability zone")?,
        bootstrap_host: boot
            .bootstrap_servers
            .first()
            .map(|url| facts::host_of(url))
            .unwrap_or_default(),
        distribution: facts::distribution(&os_release)?,
        cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        systemd_resolved: Path::new("/run/systemd/resolve/resolv.conf").exists(),
        restrict_oom_score_adj: !facts::may_lower_oom_score(&status),
        conntrack_max_fixed: facts::is_fixed(Path::new("/proc/sys/net/netfilter/nf_conntrack_max")),
    })
}
