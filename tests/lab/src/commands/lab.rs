//! Commands on a lab as a whole: up, serve, run, env, report.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use lab::daemon::{self, Options, Up, begin};
use lab::place::Place;
use lab::{json_file, operator, report};
use std::io::{Write, stderr, stdout};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum LabCommand {
    /// Start the AWS simulator, the network and the services; instances become hosts from then on
    Up(Box<UpArguments>),
    #[command(hide = true)]
    Serve,
    /// Run a program where AWS and the clusters have their public names: kctl, kubectl, curl, a shell
    ///
    /// Example: lab run -- kctl get clusters
    Run {
        #[arg(required = true, last = true)]
        words: Vec<String>,
    },
    /// Print what `lab run` sets, and the simulator's plain URL for programs outside, as shell assignments
    Env,
    /// Collect consoles, journals, network and logs of the lab in a folder
    Report {
        /// Made if it is not there
        folder: PathBuf,
    },
}

#[derive(Args)]
pub struct UpArguments {
    /// Region whose instances become hosts
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// The checkout's `tests` folder
    #[arg(long, default_value = "tests")]
    tests: PathBuf,
    /// What download sites serve, as HOST/PATH [default: what `lab content` made]
    #[arg(long)]
    mirror: Option<PathBuf>,
    /// What registries serve, as HOST/REPOSITORY [default: what `lab content` made]
    #[arg(long)]
    registry: Option<PathBuf>,
    /// How many hosts the machine must have room for
    #[arg(long, default_value_t = 3)]
    hosts: usize,
    /// How much faster than told health checks run
    #[arg(long, default_value_t = 1.0)]
    pace: f64,
}

pub fn run(place: &Place, command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::Up(arguments) => {
            let hosts = arguments.hosts;
            let up = begin::begin(place, &options(*arguments)?, &own()?, hosts)?;
            writeln!(
                stdout(),
                "lab {} is up: the AWS simulator answers at {}, instances of {} become hosts",
                place.name(),
                up.simulator,
                up.region
            )?;
        }
        LabCommand::Serve => {
            log();
            let options = json_file::read(&begin::options_path(place))?;
            let options: Options = options.context("no options: `lab up` writes them")?;
            daemon::serve(place, &options)?;
        }
        LabCommand::Run { words } => {
            let mut command = operator::command(place, &lab(place)?, &words)?;
            return Err(command.exec()).context("running nsenter");
        }
        LabCommand::Env => env(place)?,
        LabCommand::Report { folder } => {
            report::write(place, &folder)?;
            writeln!(stdout(), "{}", folder.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the daemon does goes to its log; `RUST_LOG` asks for more or less.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "lab=info".into()))
        .with_ansi(false)
        .init();
}

fn own() -> Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

fn lab(place: &Place) -> Result<Up> {
    let up = Up::read(place)?;
    up.with_context(|| format!("lab {} is not up: `lab up` starts it", place.name()))
}

fn options(arguments: UpArguments) -> Result<Options> {
    let tests = arguments.tests.canonicalize();
    let tests = tests.with_context(|| format!("{} is no folder", arguments.tests.display()))?;
    let (mirror, registry, catalog, tools) = match (arguments.mirror, arguments.registry) {
        (Some(mirror), Some(registry)) => (mirror, registry, None, None),
        (mirror, registry) => {
            let mut say = |line: &str| {
                // Progress that nobody can read is no reason to stop.
                let _ = writeln!(stderr(), "{line}");
            };
            let served = begin::served(&mut say)?;
            (
                mirror.unwrap_or_else(|| served.mirror()),
                registry.unwrap_or_else(|| served.registry()),
                Some(served.catalog()),
                Some(served.tools()),
            )
        }
    };
    Ok(Options {
        region: arguments.region,
        python: begin::python(&tests)?,
        mirror,
        registry,
        catalog,
        tools,
        tests,
        pace: arguments.pace,
    })
}

fn env(place: &Place) -> Result<()> {
    let up = lab(place)?;
    let mut out = stdout();
    for (name, value) in operator::environment(place, &up)? {
        writeln!(out, "export {name}='{value}'")?;
    }
    writeln!(out, "export AWS_ENDPOINT_URL='{}'", up.simulator)?;
    Ok(())
}
