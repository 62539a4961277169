//! What this machine is: its configurations, and what the roles work with.

use crate::arguments::Arguments;
use crate::etcd::Settled;
use crate::probe::Probe;
use crate::readiness::Ready;
use crate::standing::Standing;
use anyhow::{Context, bail};
use aws_client::Clients;
use aws_client::machine::Machine;
use aws_client::store::Store;
use host::{Host, LocalSystem};
use node::config::{BootConfig, NodeConfig, read_boot_config, read_node_config};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Where programs are looked up on a machine, whatever the environment of the service says.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What roles work with.
#[derive(Debug)]
pub struct Daemon {
    /// NodeConfig of this machine.
    pub config: Arc<NodeConfig>,
    /// `i-...`.
    pub instance: String,
    /// Availability zone.
    pub zone: String,
    /// Private address.
    pub address: IpAddr,
    /// AWS.
    pub clients: Clients,
    /// EC2 and STS.
    pub machine: Arc<Machine>,
    /// The cluster's base in the state store.
    pub store: Store,
    /// This machine.
    pub host: Host,
    /// Asks for health.
    pub probe: Probe,
    /// How far etcd is.
    pub settled: Arc<Settled>,
    /// Whether the API server is ready.
    pub ready: Arc<Ready>,
    /// What roles wait for or refuse.
    pub standing: Arc<Standing>,
}

/// Both configurations, the second verified by what the first says of it.
pub fn configuration(arguments: &Arguments) -> anyhow::Result<(BootConfig, NodeConfig)> {
    let text = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
    };
    let boot = read_boot_config(&text(&arguments.boot_config)?)?;
    let config = read_node_config(&text(&arguments.node_config)?, &boot.node_config)
        .with_context(|| format!("{} is not this machine's", arguments.node_config.display()))?;
    if config.control_plane.is_none() {
        bail!(
            "this machine belongs to {}, whose machines are no control planes",
            config.group
        );
    }
    Ok((boot, config))
}

/// This machine, as its metadata service and its configurations say.
pub async fn identify(boot: &BootConfig, config: NodeConfig) -> anyhow::Result<Daemon> {
    let imds = aws_client::Imds::new();
    let get = async |path: &str| {
        let value = imds.get(path).await?;
        value.with_context(|| format!("the metadata service has no {path}"))
    };
    let instance = get("meta-data/instance-id").await?;
    let zone = get("meta-data/placement/availability-zone").await?;
    let address = get("meta-data/local-ipv4").await?;
    let region = imds.region().await?;
    let clients = Clients::load(region.as_deref(), None).await;
    let base = boot.config_base.as_ref();
    let base = base.context("BootConfig does not say where the state store is")?;
    Ok(Daemon {
        config: Arc::new(config),
        instance,
        zone,
        address: address
            .trim()
            .parse()
            .with_context(|| format!("{address} is no address"))?,
        machine: Arc::new(Machine::new(&clients, &imds).await?),
        store: Store::open(base, &clients)?,
        clients,
        host: Host::new("/", Arc::new(LocalSystem::with_programs(PROGRAMS))),
        probe: Probe::new()?,
        settled: Arc::default(),
        ready: Arc::default(),
        standing: Arc::default(),
    })
}
