//! Stage identify: collects facts about the instance from the metadata service and from system files.

use crate::facts;
use crate::retry::AttemptLog;
use anyhow::Context;
use aws_client::ec2_query::Ec2QueryClient;
use aws_client::{Clients, Imds};
use node::config::{BootConfig, InstanceFacts};
use std::fs;
use std::path::Path;

/// The instance and its AWS clients.
#[derive(Debug)]
pub struct InstanceIdentity {
    /// Facts about the instance.
    pub host: InstanceFacts,
    /// AWS clients with the credentials of the instance's role.
    pub clients: Clients,
    /// Signs requests with the instance's role.
    pub ec2: Ec2QueryClient,
    /// The metadata service.
    pub imds: Imds,
}

/// Waits for the metadata service; `attempt_log` receives the cause of each attempt that failed.
pub async fn identify_instance(
    boot: &BootConfig,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<InstanceIdentity> {
    let imds = Imds::find(attempt_log).await?;
    let instance_id = imds
        .instance_id()
        .await?
        .context("the metadata service returned no instance id")?;
    let zone = imds.get("meta-data/placement/availability-zone").await?;
    let region = imds.region().await?;
    let clients = Clients::on_instance(region.as_deref(), &imds).await;
    let ec2 = Ec2QueryClient::new(&clients, &imds).await?;
    let os_release = read_file("/etc/os-release").context("could not read /etc/os-release")?;
    let status = read_file("/proc/self/status").unwrap_or_default();
    let hardware_address = imds.get("meta-data/mac").await?;
    let host = InstanceFacts {
        instance_id,
        zone: zone.context("the metadata service returned no availability zone")?,
        address: imds.get("meta-data/local-ipv4").await?,
        primary_interface: hardware_address
            .and_then(|address| facts::find_interface(Path::new("/sys/class/net"), &address)),
        control_plane_addresses: boot.addresses(),
        distribution: facts::parse_distribution(&os_release)?,
        cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        systemd_resolved: Path::new("/run/systemd/resolve/resolv.conf").exists(),
        restrict_oom_score_adj: !facts::may_lower_oom_score(&status),
        advertised_interfaces: facts::advertised_interfaces(Path::new("/")),
        conntrack_max_fixed: conntrack_max_is_fixed(),
    };
    Ok(InstanceIdentity {
        host,
        clients,
        ec2,
        imds,
    })
}

fn read_file(path: &str) -> std::io::Result<String> {
    fs::read_to_string(path)
}

/// True if the conntrack limit cannot be set, because only the initial network namespace may. Before the module is loaded the file
/// does not exist; then another file that only the initial namespace has decides.
fn conntrack_max_is_fixed() -> bool {
    let path = Path::new("/proc/sys/net/netfilter/nf_conntrack_max");
    let initial = Path::new("/proc/sys/net/core/netdev_max_backlog");
    facts::is_fixed(path) || !(path.exists() || initial.exists())
}
