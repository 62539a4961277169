//! The lab's daemon: reads what the simulator says exists, makes hosts and network match it, and tells back how they are.
//! Level-triggered: each round looks at the whole world, so that nothing depends on having seen a change.

mod host_orders;
mod orders;
mod rounds;
pub mod simulator;
pub mod start;

use crate::host::{Images, cache_folder, requirements_ready};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::network::{self, Router, TargetHealth, advertise, dhcp, health};
use crate::process::Process;
use crate::services::ca::Ca;
use crate::services::{self, Services};
use crate::{cgroup, json_file};
use anyhow::{Context, Result};
use rounds::Rounds;
use serde::{Deserialize, Serialize};
use simulator::SimulatorClient;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// What a lab can choose.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonOptions {
    /// Region whose instances become hosts.
    pub region: String,
    /// `tests/` of the checkout: the simulator is there.
    pub tests: PathBuf,
    /// Python with the simulator's requirements.
    pub python: PathBuf,
    /// HOST/PATH, what download sites serve.
    pub mirror: PathBuf,
    /// Folder of the registries: HOST/REPOSITORY with OCI image layouts.
    pub registry: PathBuf,
    /// For operators: the catalog of what the mirror serves, and kubectl's folder; none with other mirrors.
    pub catalog: Option<PathBuf>,
    pub tools: Option<PathBuf>,
    /// How much faster than said targets are checked.
    pub pace: f64,
    /// Hosts are virtual machines.
    pub machines: bool,
}

/// Where a lab that is up can be reached; `run/up.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LabAddresses {
    pub daemon: Process,
    /// On the machine's own loopback.
    pub simulator: String,
    pub region: String,
    /// An AWS credentials file with an administrator's `[default]`.
    pub credentials: PathBuf,
    /// PEM: the lab's authority.
    pub authority: PathBuf,
    /// The catalog of all downloads, for `spec.assets.catalog`.
    pub catalog: Option<PathBuf>,
    /// Folder with kubectl, etcdctl and etcdutl.
    pub tools: Option<PathBuf>,
}

impl LabAddresses {
    pub fn state_file(place: &LabPaths) -> PathBuf {
        place.run().join("up.json")
    }

    /// What the daemon wrote once everything answered; `None` before.
    pub fn read(place: &LabPaths) -> Result<Option<Self>> {
        Ok(json_file::read_json(&Self::state_file(place))?)
    }
}

/// Where the authority of this machine's labs is: images carry its certificate, so it outlives labs.
pub fn authority_folder() -> Result<PathBuf> {
    Ok(cache_folder()?.join("ca"))
}

/// Runs the lab until it is told to end (SIGTERM, SIGINT) or something it needs ends. Everything it made stays for
/// [`crate::teardown::remove_lab`].
pub fn run_daemon(place: &LabPaths, options: &DaemonOptions) -> Result<()> {
    requirements_ready()?;
    let ledger = Ledger::begin(place).context("beginning the lab")?;
    let own = Process::from_pid(std::process::id())?;
    ledger.record(&LedgerEntry::Process(own))?;
    // Daemon and simulator get their share of the lab's CPU time: machines wait for both.
    cgroup::join_cgroup(&ledger, &place.cgroup_path().join("daemon"))?;
    let ca = Arc::new(Ca::open(&authority_folder()?)?);
    let authority = ca.certificate_pem();
    let images = Images::prepare_images(
        &cache_folder()?,
        place,
        &ledger,
        authority,
        options.machines,
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let ledger = Arc::new(ledger);
    let work = async {
        let started = SimulatorClient::start_simulator(place, &ledger, options).await?;
        let simulator = started.simulator;
        let router = Router::set_up(place, &ledger)?;
        let first = simulator.fetch_world(None, Duration::ZERO).await?;
        let (worlds, world) = watch::channel(Arc::new(first));
        let mut services = services::start_services(Services {
            netns: place.router_netns(),
            world: world.clone(),
            simulator: started.address,
            mirror: options.mirror.clone(),
            registry: options.registry.clone(),
            ca,
            access_log: place.run().join("access.log"),
        })?;
        let (ends, ended) = mpsc::unbounded_channel();
        let verdicts = start_network_services(place, &world, options.pace, &ends);
        let up = LabAddresses {
            daemon: own,
            simulator: simulator.url().to_owned(),
            region: options.region.clone(),
            credentials: started.credentials.clone(),
            authority: authority_folder()?.join("ca.crt"),
            catalog: options.catalog.clone(),
            tools: options.tools.clone(),
        };
        let rounds = Rounds::new(place, &ledger, images, router, simulator, worlds, verdicts);
        json_file::write_json(&LabAddresses::state_file(place), &up)?;
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

/// Starts what runs beside the rounds: health checks, DHCP, router advertisements. The verdicts come out of the receiver; whoever ends
/// says so to `ends`.
fn start_network_services(
    place: &LabPaths,
    world: &watch::Receiver<Arc<crate::aws_state::AwsState>>,
    pace: f64,
    ends: &mpsc::UnboundedSender<anyhow::Error>,
) -> watch::Receiver<TargetHealth> {
    let (told, verdicts) = watch::channel(TargetHealth::new());
    let (checked, worlds, end) = (place.clone(), world.clone(), ends.clone());
    std::thread::spawn(move || {
        let result = health::check_health(&checked, worlds, &told, pace);
        report_end(&end, "health checks", result.map_err(Into::into));
    });
    let (served, worlds, end) = (place.clone(), world.clone(), ends.clone());
    tokio::spawn(async move {
        let result: network::Result<()> = dhcp::serve_dhcp(&served, worlds).await;
        report_end(&end, "DHCP", result.map_err(Into::into));
    });
    let (advertised, worlds, end) = (place.clone(), world.clone(), ends.clone());
    std::thread::spawn(move || {
        let result = advertise::advertise_router(&advertised, worlds);
        report_end(&end, "router advertisements", result.map_err(Into::into));
    });
    verdicts
}

fn report_end(ends: &mpsc::UnboundedSender<anyhow::Error>, what: &str, result: Result<()>) {
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
