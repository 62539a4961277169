//! Scenarios: a test with its own lab, and what it can do there: run kctl, call AWS, use hosts, cause faults.
//! `docs/lab/scenarios.md` has an example.

mod caller;
mod calls;
mod chance;
mod conformance;
mod history;
mod hosts;
mod lease;
mod nodes;
mod operator;
mod service_calls;
mod sites;
mod stages;
mod web;
mod writes;

pub use caller::{AwsResponse, Caller, Credentials};
pub use chance::{number_from_environment, random_fraction};
pub use conformance::ConformanceRuns;
pub use history::{Attempt, AttemptKind, History, Outcome, Seen, SeenKind, Tally};
pub use hosts::ConnectResult;
pub use operator::SPEC;
pub use service_calls::{ServiceCall, ServiceCalls};
pub use stages::{Stage, parse_stages};
pub use web::Pod;
pub use writes::{PUBLIC, Writers, count_failures, describe_gaps, longest_gap, unix_time};

use crate::aws_state::AwsState;
use crate::content::{ContentStore, ServedContent, Versions};
use crate::daemon::simulator::SimulatorClient;
use crate::daemon::{self, DaemonOptions, LabAddresses, start};
use crate::host::MachineImages;
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::services::ca::Ca;
use crate::{host, report, teardown};
use anyhow::{Context, Result, bail};
use calls::AwsCalls;
use lease::Lease;
use serde_json::Value;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Limit for anything that the lab does. It leaves room for a busy machine.
pub const LIMIT: Duration = Duration::from_mins(4);

/// Time between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(100);

/// Settings of a scenario's lab.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the lab: 1 to 12 of a-z, 0-9 and -. Every test needs its own.
    pub name: String,
    /// The program `lab`: `env!("CARGO_BIN_EXE_lab")` in a test of this package.
    pub program: PathBuf,
    /// The checkout's `tests` folder.
    pub tests: PathBuf,
    /// Content of the download sites and registries; nothing by default.
    pub content: Option<ServedContent>,
    /// How many hosts the machine must have room for.
    pub hosts: usize,
    /// Factor by which health checks are faster than their settings.
    pub pace: f64,
    /// Hosts are virtual machines.
    pub machines: bool,
    /// Folder for reports of failures, each in a folder with the lab's name.
    pub reports: PathBuf,
}

impl Settings {
    /// Five hosts in `us-east-1`, and health checks that are five times as fast as on AWS.
    pub fn new(name: &str, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            tests: crate::checkout::tests_folder(),
            content: None,
            hosts: 5,
            pace: 5.0,
            machines: false,
            reports: std::env::var_os("KCTL_LAB_REPORTS")
                .map_or_else(|| std::env::temp_dir().join("kctl-lab-reports"), Into::into),
        }
    }
}

/// A running lab. Dropping it removes the lab, also after a panic, which leaves a report. `KCTL_LAB_KEEP` keeps the lab of a failed
/// scenario.
#[derive(Debug)]
pub struct Lab {
    place: LabPaths,
    up: LabAddresses,
    runtime: tokio::runtime::Runtime,
    simulator: SimulatorClient,
    calls: AwsCalls,
    /// Catalog of the downloads, if the lab serves content.
    catalog: Option<PathBuf>,
    report: PathBuf,
    failed: bool,
    /// Reserves the lab's name.
    _lease: Lease,
}

/// Whether a test must be skipped, because a lab is not possible here. Prints the reason.
pub fn is_skipped(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        said_skipped(
            test,
            "it makes network namespaces and mounts; run it as root",
        );
    }
    !root
}

/// Prints that a test is skipped, and why.
fn said_skipped(test: &str, why: &str) {
    // If nobody can read it, the test is skipped all the same.
    let _ = writeln!(stderr(), "SKIPPED {test}: {why}");
}

/// The output of `lab content`, for [`Settings::content`]. If it is not complete, this prints that the test is skipped: a test does not
/// build Go programs.
pub fn built_content(test: &str, versions: Versions) -> Result<Option<ServedContent>> {
    let store = ContentStore::open(&host::cache_folder()?)?;
    for module in versions.modules() {
        if store.module_slot(module)?.find_built()?.is_none() {
            let why = format!(
                "{} is not built: `lab content{}` builds it",
                module.name,
                versions.content_options()
            );
            said_skipped(test, &why);
            return Ok(None);
        }
    }
    start::prepare_content(versions, &mut |line| {
        // Progress that nobody can read is no reason to fail.
        let _ = writeln!(stderr(), "{line}");
    })
    .map(Some)
}

/// Whether the cache has the images of virtual machines. If not, this prints that the test is skipped.
pub fn are_machines_built(test: &str) -> Result<bool> {
    let authority = Ca::open(&daemon::authority_folder()?)?;
    let built = MachineImages::are_built(&host::cache_folder()?, authority.certificate_pem());
    if !built {
        let why = "images of virtual machines are not built: `lab content --machines` builds them";
        said_skipped(test, why);
    }
    Ok(built)
}

impl Lab {
    /// Starts a lab. Removes a lab of the same name that a killed run left.
    pub fn start_lab(settings: &Settings) -> Result<Self> {
        let place = LabPaths::from_name(&settings.name)?;
        let lease = Lease::take_for(&place)?;
        teardown::remove_lab(&place).context("removing what an earlier run left")?;
        let guard = Down(&place);
        let up = start::start_daemon(
            &place,
            &daemon_options(settings, &place)?,
            &settings.program,
            settings.hosts,
        )?;
        if let Some(content) = &settings.content {
            sites::open(&place, content)?;
        }
        let tests = settings.tests.canonicalize().context("finding tests")?;
        let calls = AwsCalls::start(&place, &up, &start::simulator_python(&tests)?)?;
        let ledger = Ledger::open(&place).context("opening the ledger")?;
        ledger.record(&LedgerEntry::Process(calls.process()?))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting a runtime")?;
        let lab = Self {
            simulator: SimulatorClient::connect_to(up.simulator.clone(), up.region.clone())?,
            catalog: settings.content.as_ref().map(ServedContent::catalog_file),
            report: settings.reports.join(&settings.name),
            failed: false,
            _lease: lease,
            place: place.clone(),
            up,
            runtime,
            calls,
        };
        std::mem::forget(guard);
        Ok(lab)
    }

    pub fn place(&self) -> &LabPaths {
        &self.place
    }

    /// Addresses and credentials of the lab.
    pub fn addresses(&self) -> &LabAddresses {
        &self.up
    }

    /// Runs a part of the scenario and prints how long it took. If it fails, this writes a report of the lab, and the error says where.
    pub fn run_step<T>(
        &mut self,
        title: &str,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        let result = work(self);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        let seconds = begun.elapsed().as_secs_f64();
        writeln!(stderr(), "{word:6} {seconds:6.1} s  {title}").context("saying so")?;
        result
            .map_err(|error| self.fail_with_report(error))
            .context(title.to_owned())
    }

    /// Repeats `look` until it is `Ok`. Its error describes the current state, and is returned after `limit`. Fails immediately if the
    /// lab's daemon has ended.
    pub fn wait_until<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<T>,
    ) -> Result<T> {
        let end = Instant::now() + limit;
        loop {
            let error = match look(self) {
                Ok(seen) => return Ok(seen),
                Err(error) => error,
            };
            if !self.up.daemon.is_alive()? {
                let log = start::log_path(&self.place);
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("the lab's daemon ended while {what} was waited for:\n{text}");
            }
            if Instant::now() > end {
                return Err(error.context(format!("not after {limit:?}: {what}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The state of the AWS simulator.
    pub fn fetch_world(&self) -> Result<AwsState> {
        self.runtime
            .block_on(self.simulator.fetch_world(None, Duration::ZERO))
    }

    /// Makes AWS calls fail for every client, as `tests/simulator/README.md` describes. An empty list ends the faults.
    pub fn set_faults(&self, faults: &Value) -> Result<()> {
        self.runtime.block_on(self.simulator.set_faults(faults))
    }

    /// For so many seconds DescribeVolumes answers every client as of now; zero ends that.
    pub fn hold_volumes(&self, seconds: f64) -> Result<()> {
        self.runtime.block_on(self.simulator.hold_volumes(seconds))
    }

    /// Removes the lab. Unlike a drop, this returns an error.
    pub fn take_down(mut self) -> Result<()> {
        self.calls.end_process();
        teardown::remove_lab(&self.place)
    }

    fn fail_with_report(&mut self, error: anyhow::Error) -> anyhow::Error {
        self.failed = true;
        match report::write_report(&self.place, &self.report) {
            Ok(()) => error.context(format!("a report is in {}", self.report.display())),
            Err(other) => error.context(format!("and no report could be written: {other:#}")),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.failed {
            let said = self.fail_with_report(anyhow::anyhow!("the scenario panicked"));
            // The panic is reported by itself.
            let _ = writeln!(stderr(), "{said:#}");
        }
        self.calls.end_process();
        if self.failed && std::env::var_os("KCTL_LAB_KEEP").is_some() {
            let name = self.place.name();
            let _ = writeln!(stderr(), "kept: `lab --name {name} down` removes it");
            return;
        }
        drop(Down(&self.place));
    }
}

/// Removes a lab when dropped.
struct Down<'a>(&'a LabPaths);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = teardown::remove_lab(self.0) {
            // A drop cannot return an error.
            let _ = writeln!(stderr(), "{error:#}");
        }
    }
}

fn daemon_options(settings: &Settings, place: &LabPaths) -> Result<DaemonOptions> {
    let tests = settings.tests.canonicalize();
    let tests = tests.with_context(|| format!("{} is no folder", settings.tests.display()))?;
    let content = settings.content.as_ref();
    let [mirror, registry] = sites::folders(place);
    Ok(DaemonOptions {
        region: "us-east-1".to_owned(),
        python: start::simulator_python(&tests)?,
        tests,
        mirror,
        registry,
        catalog: content.map(ServedContent::catalog_file),
        tools: content.map(ServedContent::tools_folder),
        pace: settings.pace,
        machines: settings.machines,
    })
}
