//! The lab's daemon: reads what the simulator says exists, makes hosts and network match it, and tells back how they are.
//! Level-triggered: each round looks at the whole world, so that nothing depends on having seen a change.

pub mod begin;
mod machines;
mod orders;
mod rounds;
pub mod simulator;

use crate::host::{Image, cache, requirements_ready};
use crate::ledger::{Ledger, Made};
use crate::network::{self, Health, Router, dhcp, health};
use crate::place::Place;
use crate::process::Process;
use crate::services::ca::Ca;
use crate::services::{self, Services};
use crate::{cgroup, json_file};
use anyhow::{Context, Result};
use rounds::Rounds;
use serde::{Deserialize, Serialize};
use simulator::Simulator;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// What a lab can choose.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Region whose instances become hosts.
    pub region: String,
    /// `tests/` of the checkout: the simulator is there.
    pub tests: PathBuf,
    /// Python with the simulator's requirements.
    pub python: PathBuf,
    /// HOST/PATH, what download sites serve.
    pub mirror: PathBuf,
    /// HOST/REPOSITORY, OCI layouts.
    pub registry: PathBuf,
    /// For operators: the catalog of what the mirror serves, and kubectl's folder; none with other mirrors.
    pub catalog: Option<PathBuf>,
    pub tools: Option<PathBuf>,
    /// How much faster than said targets are checked.
    pub pace: f64,
}

/// Where a lab that is up can be reached; `run/up.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Up {
    pub daemon: Process,
    /// On the machine's own loopback.
    pub simulator: String,
    pub region: String,
    /// An AWS credentials file with an administrator's `[default]`.
    pub credentials: PathBuf,
    /// PEM: the lab's authority.
    pub authority: PathBuf,
    /// For `spec.assets.catalog`.
    pub catalog: Option<PathBuf>,
    /// kubectl, etcdctl, etcdutl.
    pub tools: Option<PathBuf>,
}

impl Up {
    pub fn path(place: &Place) -> PathBuf {
        place.run().join("up.json")
    }

    /// What the daemon wrote once everything answered; `None` before.
    pub fn read(place: &Place) -> Result<Option<Self>> {
        Ok(json_file::read(&Self::path(place))?)
    }
}

/// Where the authority of this machine's labs is: images carry its certificate, so it outlives labs.
pub fn authority() -> Result<PathBuf> {
    Ok(cache()?.join("ca"))
}

/// Runs the lab until it is told to end (SIGTERM, SIGINT) or something it needs ends. Everything it made stays for
/// [`crate::teardown::down`].
pub fn serve(place: &Place, options: &Options) -> Result<()> {
    requirements_ready()?;
    let ledger = Ledger::begin(place).context("beginning the lab")?;
    let own = Process::of(std::process::id())?;
    ledger.record(&Made::Process(own))?;
    // Daemon and simulator get their share of the lab's CPU time: machines wait for both.
    cgroup::join(&ledger, &place.cgroup().join("daemon"))?;
    let ca = Arc::new(Ca::open(&authority()?)?);
    let image = Image::ready(&cache()?)?;
    let lower = image.with_layer(place, &ledger, Some(ca.pem()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let ledger = Arc::new(ledger);
    let work = async {
        let started = Simulator::start(place, &ledger, options).await?;
        let simulator = started.simulator;
        let router = Router::up(place, &ledger)?;
        let first = simulator.world(None, Duration::ZERO).await?;
        let (worlds, world) = watch::channel(Arc::new(first));
        let mut services = services::start(Services {
            netns: place.router_netns(),
            world: world.clone(),
            simulator: started.address,
            mirror: options.mirror.clone(),
            registry: options.registry.clone(),
            ca,
            access_log: place.run().join("access.log"),
        })?;
        let (ends, ended) = mpsc::unbounded_channel();
        let verdicts = beside(place, &world, options.pace, &ends);
        let up = Up {
            daemon: own,
            simulator: simulator.url().to_owned(),
            region: options.region.clone(),
            credentials: started.credentials.clone(),
            authority: authority()?.join("ca.crt"),
            catalog: options.catalog.clone(),
            tools: options.tools.clone(),
        };
        let rounds = Rounds::new(place, &ledger, lower, router, simulator, worlds, verdicts);
        json_file::write(&Up::path(place), &up)?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = rounds.run() => ended,
            ended = first_end(&mut services, ended) => ended,
            _ = terminate.recv() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into),
        }
    };
    runtime.block_on(work)
}

/// Starts what runs beside the rounds: health checks, DHCP. The verdicts come out of the receiver; whoever ends
/// says so to `ends`.
fn beside(
    place: &Place,
    world: &watch::Receiver<Arc<crate::world::World>>,
    pace: f64,
    ends: &mpsc::UnboundedSender<anyhow::Error>,
) -> watch::Receiver<Health> {
    let (told, verdicts) = watch::channel(Health::new());
    let (checked, worlds, end) = (place.clone(), world.clone(), ends.clone());
    std::thread::spawn(move || {
        let result = health::check(&checked, worlds, &told, pace);
        tell(&end, "health checks", result.map_err(Into::into));
    });
    let (served, worlds, end) = (place.clone(), world.clone(), ends.clone());
    tokio::spawn(async move {
        let result: network::Result<()> = dhcp::serve(&served, worlds).await;
        tell(&end, "DHCP", result.map_err(Into::into));
    });
    verdicts
}

fn tell(ends: &mpsc::UnboundedSender<anyhow::Error>, what: &str, result: Result<()>) {
    let error = match result {
        Ok(()) => anyhow::anyhow!("{what} ended"),
        Err(error) => error.context(format!("{what} ended")),
    };
    // Nobody listens when the daemon itself ends.
    let _ = ends.send(error);
}

async fn first_end(
    services: &mut tokio::task::JoinSet<services::Error>,
    mut ended: mpsc::UnboundedReceiver<anyhow::Error>,
) -> Result<()> {
    tokio::select! {
        error = services.join_next() => match error {
            Some(Ok(error)) => Err(anyhow::Error::new(error).context("a service ended")),
            Some(Err(error)) => Err(anyhow::Error::new(error).context("a service died")),
            None => Err(anyhow::anyhow!("no service runs")),
        },
        error = ended.recv() => Err(error.unwrap_or_else(|| anyhow::anyhow!("what runs beside ended"))),
    }
}
