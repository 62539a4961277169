//! Who this machine is: what the metadata service says of it, and what it says of itself.

use crate::facts;
use anyhow::Context;
use aws_client::machine::Machine;
use aws_client::{Clients, Imds};
use node::config::{BootConfig, Host};
use std::fs;
use std::path::Path;

/// A machine, and its way to AWS.
#[derive(Debug)]
pub struct Identified {
    /// What it is.
    pub host: Host,
    /// Clients with its role's credentials.
    pub clients: Clients,
    /// Signs as its role.
    pub machine: Machine,
}

/// Asks the metadata service and looks around.
pub async fn identify(boot: &BootConfig) -> anyhow::Result<Identified> {
    let imds = Imds::new();
    let instance_id = imds
        .instance_id()
        .await?
        .context("the metadata service names no instance")?;
    let zone = imds.get("meta-data/placement/availability-zone").await?;
    let region = imds.region().await?;
    let clients = Clients::load(region.as_deref(), None).await;
    let machine = Machine::new(&clients, &imds).await?;
    let os_release = read("/etc/os-release").context("could not read /etc/os-release")?;
    let status = read("/proc/self/status").unwrap_or_default();
    let host = Host {
        instance_id,
        zone: zone.context("the metadata service names no availability zone")?,
        control_plane_addresses: boot.addresses(),
        distribution: facts::distribution(&os_release)?,
        cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        systemd_resolved: Path::new("/run/systemd/resolve/resolv.conf").exists(),
        restrict_oom_score_adj: !facts::may_lower_oom_score(&status),
        conntrack_max_fixed: conntrack_max_is_fixed(),
    };
    Ok(Identified {
        host,
        clients,
        machine,
    })
}

fn read(path: &str) -> std::io::Result<String> {
    fs::read_to_string(path)
}

/// The kernel lets only the initial network namespace set it. Before the module is there, so is no file: then by
/// what else only that namespace has.
fn conntrack_max_is_fixed() -> bool {
    let path = Path::new("/proc/sys/net/netfilter/nf_conntrack_max");
    let initial = Path::new("/proc/sys/net/core/netdev_max_backlog");
    facts::is_fixed(path) || !(path.exists() || initial.exists())
}
