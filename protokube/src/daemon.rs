//! The daemon: who this machine is, and every role as a supervised task until the service is stopped.

use crate::arguments::Arguments;
use crate::ec2::Ec2;
use crate::etcd::{self, Formation, Http, Member, Peer, Settings, Settled};
use crate::host::Host;
use crate::manifests::{self, Gates};
use crate::names;
use crate::probe::Probe;
use crate::stage::tell;
use crate::supervise::{Backoff, supervise};
use anyhow::{Context, bail};
use aws::Clients;
use aws::machine::Machine;
use aws::store::Store;
use model::api::etcd::EtcdClusterSpec;
use model::components::{EtcdMemberNames, KUBERNETES, etcd_ports};
use model::node::{BootConfig, NodeConfig, etcd_members, read_boot_config, read_node_config};
use model::report::Status;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Time between looks at a member's volume while it is not up, and afterwards.
const MEMBER_PACE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// Time between looks at where machines are.
const NAMES_PACE: Duration = Duration::from_secs(5);

/// What roles work with. Cloning is cheap.
#[derive(Clone, Debug)]
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
}

/// Runs until the service is stopped. An error is one of the start: the service begins again.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (boot, config) = configuration(arguments)?;
    let mut stopped = Stopped::new()?;
    let daemon = tokio::select! {
        daemon = identify(&boot, config) => daemon?,
        () = stopped.asked() => return Ok(()),
    };
    let detail = format!("{} of {}", daemon.instance, daemon.config.cluster);
    tell("identify", Status::Finished, 0.0, &detail);
    let mut roles = start(&daemon);
    tokio::select! {
        () = stopped.asked() => {
            roles.shutdown().await;
            tell("stop", Status::Finished, 0.0, "");
            Ok(())
        }
        Some(ended) = roles.join_next() => match ended {
            Err(error) => Err(error).context("a role ended in a way that none may"),
            Ok(()) => bail!("a role ended"),
        },
    }
}

/// Both configurations, the second verified by what the first says of it.
fn configuration(arguments: &Arguments) -> anyhow::Result<(BootConfig, NodeConfig)> {
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

async fn identify(boot: &BootConfig, config: NodeConfig) -> anyhow::Result<Daemon> {
    let imds = aws::Imds::new();
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
        host: Host::machine(),
        probe: Probe::new()?,
    })
}

/// Every role as a task of its own.
fn start(daemon: &Daemon) -> JoinSet<()> {
    let mut roles = JoinSet::new();
    let settled: Arc<Settled> = Arc::new(watch::channel(BTreeMap::new()).0);
    // B1: `health` comes first: the API server's manifest waits until it answers. Then `bootstrap`; `approval` and `labels` with
    // `for_a_while(api::CLIENT_LIFE, ...)` around a role that makes its client with `api::client`.
    // B3: `addons`, likewise.
    for (index, etcd) in own_etcd(&daemon.config).into_iter().enumerate() {
        let name = format!("etcd-{}", etcd.name);
        let Some(member) = member(daemon, &etcd, index, &settled) else {
            continue;
        };
        let member = Arc::new(member);
        roles.spawn(async move {
            let start = || {
                let member = Arc::clone(&member);
                async move { member.run().await }
            };
            match supervise(&name, Backoff::default(), start).await {}
        });
    }
    let role = daemon.clone();
    let gates = gates(&daemon.config, settled.subscribe());
    // The roles themselves must not end the watch that gates wait on.
    roles.spawn(async move {
        let _kept = settled;
        let pods = role.config.control_plane.as_ref();
        let pods = pods.map(|of| of.static_pods.clone()).unwrap_or_default();
        let start = || manifests::run(&role.host, &pods, &gates, &role.probe);
        match supervise("manifests", Backoff::default(), start).await {}
    });
    let role = daemon.clone();
    roles.spawn(async move {
        let start = || names::hosts_file(&role.host, &*role.machine, &role.config, NAMES_PACE);
        match supervise("names", Backoff::default(), start).await {}
    });
    let role = daemon.clone();
    roles.spawn(async move { match supervise("dns", Backoff::default(), || dns(&role)).await {} });
    roles
}

/// The names in the cluster's zone, if it has one. Which zone that is, is read anew with each start of the role.
async fn dns(daemon: &Daemon) -> anyhow::Result<()> {
    let Some(zone) = names::zone_of(&daemon.store, &daemon.clients).await? else {
        return std::future::pending().await;
    };
    let records = names::Route53 {
        clients: daemon.clients.clone(),
        zone,
    };
    names::publish(&*daemon.machine, &records, &daemon.config, NAMES_PACE).await
}

/// The etcd clusters of which this machine's group runs a member.
fn own_etcd(config: &NodeConfig) -> Vec<EtcdClusterSpec> {
    let all = config.control_plane.iter().flat_map(|of| &of.etcd);
    let own = all.filter(|etcd| !etcd_members(config, etcd).is_empty());
    own.cloned().collect()
}

/// `None` for an etcd cluster whose ports nobody knows: validation refuses those.
fn member(
    daemon: &Daemon,
    etcd: &EtcdClusterSpec,
    index: usize,
    settled: &Arc<Settled>,
) -> Option<Member<impl Ec2 + use<>, Http>> {
    let ports = etcd_ports(&etcd.name)?;
    let names = EtcdMemberNames::of(etcd, &daemon.config.cluster);
    let running = Http {
        probe: daemon.probe.clone(),
        health: format!("http://127.0.0.1:{}", ports.health),
        peer: Peer {
            host: daemon.host.clone(),
            certificates: format!("{KUBERNETES}/{}", names.prefix),
            names,
            address: daemon.address,
            port: ports.peer,
        },
    };
    let settings = Settings {
        config: Arc::clone(&daemon.config),
        etcd: etcd.name.clone(),
        first_device: index,
        instance: daemon.instance.clone(),
        zone: daemon.zone.clone(),
        pace: MEMBER_PACE,
        token: etcd::token,
    };
    Some(Member::new(
        settings,
        Arc::clone(&daemon.machine),
        daemon.host.clone(),
        Formation::of(&daemon.store, &etcd.name),
        running,
        Arc::clone(settled),
    ))
}

fn gates(config: &NodeConfig, settled: watch::Receiver<BTreeMap<String, bool>>) -> Gates {
    let own = own_etcd(config).into_iter();
    let health = own.filter_map(|etcd| {
        let ports = etcd_ports(&etcd.name)?;
        Some((etcd.name, ports.health))
    });
    Gates::new(health, settled)
}

/// The ways in which a service is asked to stop.
struct Stopped {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stopped {
    fn new() -> anyhow::Result<Self> {
        let of = |kind| signal(kind).context("could not listen for signals");
        Ok(Self {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
