//! Scenarios: a lab for a test, with all that happens in one: kctl, AWS's API, machines, faults. `docs/lab/scenarios.md`
//! shows how one is written.

mod caller;
mod calls;
mod chance;
mod lease;
mod machines;
mod nodes;
mod operator;
mod stages;
mod web;
mod writes;

pub use caller::{Answer, Caller, Credentials};
pub use calls::Refusal;
pub use chance::{fraction, number};
pub use machines::Reached;
pub use operator::SPEC;
pub use stages::{Stage, stages};
pub use web::Pod;
pub use writes::{Attempt, Did, Outcome, Tally, Writer, longest_gap};

use crate::content::modules::MODULES;
use crate::content::{Served, Store};
use crate::daemon::{Options, Up, begin, simulator::Simulator};
use crate::ledger::{Ledger, Made};
use crate::place::Place;
use crate::world::World;
use crate::{host, report, teardown};
use anyhow::{Context, Result, bail};
use calls::Calls;
use lease::Lease;
use serde_json::Value;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that is busy with other things. Only what is broken takes longer.
pub const LIMIT: Duration = Duration::from_mins(4);

/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(100);

/// What a scenario chooses of its lab.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of the lab, 1 to 12 of a-z, 0-9 and -. No other test may have it.
    pub name: String,
    /// The program `lab`: `env!("CARGO_BIN_EXE_lab")` in a test of this package.
    pub program: PathBuf,
    /// The checkout's `tests` folder.
    pub tests: PathBuf,
    /// What download sites and registries serve; nothing by default.
    pub content: Option<Served>,
    /// Until a DNS change is answered.
    pub propagation: Duration,
    /// How long a denial of a name is kept.
    pub negative_ttl: Duration,
    /// How long credentials of instances hold.
    pub session: Duration,
    /// How much faster than told targets are checked.
    pub pace: f64,
    /// Where the report of a failure goes: a folder of the lab's name in it.
    pub reports: PathBuf,
}

impl Settings {
    /// As AWS is, in `us-east-1`; but health checks are five times as fast.
    pub fn new(name: &str, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            tests: crate::checkout::tests(),
            content: None,
            propagation: Duration::from_secs(1),
            negative_ttl: Duration::from_mins(15),
            session: Duration::from_hours(6),
            pace: 5.0,
            reports: std::env::var_os("KCTL_LAB_REPORTS")
                .map_or_else(|| std::env::temp_dir().join("kctl-lab-reports"), Into::into),
        }
    }
}

/// A lab that is up. It goes down when this is dropped, also by a panic, which leaves a report; unless `KCTL_LAB_KEEP` is set
/// and the scenario failed.
#[derive(Debug)]
pub struct Lab {
    place: Place,
    up: Up,
    runtime: tokio::runtime::Runtime,
    simulator: Simulator,
    calls: Calls,
    /// Of what machines download, if the lab serves something.
    catalog: Option<PathBuf>,
    report: PathBuf,
    failed: bool,
    /// Held as long as the lab has the name.
    _lease: Lease,
}

/// Whether a test has to skip itself since a lab is not possible here; says so.
pub fn skipped(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        said_skipped(
            test,
            "it makes network namespaces and mounts; run it as root",
        );
    }
    !root
}

/// Says that a test skips itself, and why.
fn said_skipped(test: &str, why: &str) {
    // Nobody reads it, then.
    let _ = writeln!(stderr(), "SKIPPED {test}: {why}");
}

/// What `lab content` made, for [`Settings::content`]. Builds no Go: that takes longer than a test should, so where there is
/// nothing a test skips itself, and this says so.
pub fn built(test: &str) -> Result<Option<Served>> {
    let store = Store::open(&host::cache()?)?;
    for module in MODULES {
        if store.slot(module)?.find()?.is_none() {
            let why = format!("{} is not built: `lab content` builds it", module.name);
            said_skipped(test, &why);
            return Ok(None);
        }
    }
    begin::served(&mut |line| {
        // Nobody reads it, then.
        let _ = writeln!(stderr(), "{line}");
    })
    .map(Some)
}

impl Lab {
    /// Starts a lab; what a killed run of the same name left is removed first.
    pub fn up(settings: &Settings) -> Result<Self> {
        let place = Place::named(&settings.name)?;
        let lease = Lease::of(&place)?;
        teardown::down(&place).context("removing what an earlier run left")?;
        let guard = Down(&place);
        let up = begin::begin(&place, &options(settings)?, &settings.program)?;
        let tests = settings.tests.canonicalize().context("finding tests")?;
        let calls = Calls::start(&place, &up, &begin::python(&tests)?)?;
        let ledger = Ledger::open(&place).context("opening the ledger")?;
        ledger.record(&Made::Process(calls.process()?))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting a runtime")?;
        let lab = Self {
            simulator: Simulator::at(up.simulator.clone(), up.region.clone())?,
            catalog: settings.content.as_ref().map(Served::catalog),
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

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where the lab can be reached.
    pub fn reached(&self) -> &Up {
        &self.up
    }

    /// A part of the scenario. Says how long it took; when it fails, a report of the lab is written, and the error says
    /// where.
    pub fn step<T>(&mut self, title: &str, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let result = work(self);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        let seconds = begun.elapsed().as_secs_f64();
        writeln!(stderr(), "{word:6} {seconds:6.1} s  {title}").context("saying so")?;
        result
            .map_err(|error| self.fail(error))
            .context(title.to_owned())
    }

    /// Waits until a look at something is `Ok`; an error is what it is now, and the last one is told when `limit` is over.
    /// Ends at once when the lab itself does.
    pub fn until<T>(
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
            if !self.up.daemon.alive()? {
                let log = begin::log_path(&self.place);
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("the lab's daemon ended while {what} was waited for:\n{text}");
            }
            if Instant::now() > end {
                return Err(error.context(format!("not after {limit:?}: {what}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What exists in AWS now.
    pub fn world(&self) -> Result<World> {
        self.runtime
            .block_on(self.simulator.world(None, Duration::ZERO))
    }

    /// Lets AWS calls fail from now on, whoever makes them: objects as `tests/simulator/README.md` describes; an empty list
    /// ends that.
    pub fn faults(&self, faults: &Value) -> Result<()> {
        self.runtime.block_on(self.simulator.faults(faults))
    }

    /// Removes the lab, and says so when that fails; a drop does the same without a word.
    pub fn down(mut self) -> Result<()> {
        self.calls.end();
        teardown::down(&self.place)
    }

    /// Leaves the lab up, for whoever looks at it by hand; `lab --name NAME down` removes it.
    pub fn keep(mut self) -> Result<()> {
        self.calls.end();
        std::mem::forget(self);
        Ok(())
    }

    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        self.failed = true;
        match report::write(&self.place, &self.report) {
            Ok(()) => error.context(format!("a report is in {}", self.report.display())),
            Err(other) => error.context(format!("and no report could be written: {other:#}")),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.failed {
            let said = self.fail(anyhow::anyhow!("the scenario panicked"));
            // The panic itself is what is told; there is nobody to tell more to.
            let _ = writeln!(stderr(), "{said:#}");
        }
        self.calls.end();
        if self.failed && std::env::var_os("KCTL_LAB_KEEP").is_some() {
            let name = self.place.name();
            let _ = writeln!(stderr(), "kept: `lab --name {name} down` removes it");
            return;
        }
        drop(Down(&self.place));
    }
}

/// Removes a lab when dropped.
struct Down<'a>(&'a Place);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = teardown::down(self.0) {
            // In the middle of another failure, as often as not.
            let _ = writeln!(stderr(), "{error:#}");
        }
    }
}

fn options(settings: &Settings) -> Result<Options> {
    let tests = settings.tests.canonicalize();
    let tests = tests.with_context(|| format!("{} is no folder", settings.tests.display()))?;
    let nothing = host::cache()?.join("nothing");
    std::fs::create_dir_all(&nothing).with_context(|| format!("making {}", nothing.display()))?;
    let content = settings.content.as_ref();
    Ok(Options {
        region: "us-east-1".to_owned(),
        python: begin::python(&tests)?,
        tests,
        mirror: content.map_or_else(|| nothing.clone(), Served::mirror),
        registry: content.map_or(nothing, Served::registry),
        catalog: content.map(Served::catalog),
        tools: content.map(Served::tools),
        propagation_seconds: settings.propagation.as_secs(),
        negative_ttl: Some(u32::try_from(settings.negative_ttl.as_secs())?),
        session_seconds: u32::try_from(settings.session.as_secs())?,
        pace: settings.pace,
    })
}
