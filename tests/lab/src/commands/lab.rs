//! Commands on a lab as a whole: up, serve, run, conformance, env, report.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use lab::conformance::Conformance;
use lab::content::command::Others;
use lab::daemon::{self, DaemonOptions, LabAddresses, start};
use lab::lab_paths::LabPaths;
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
    Conformance(Conformance),
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
    /// Instances become virtual machines, with kernels of their own (docs/lab/machines.md)
    #[arg(long)]
    machines: bool,
    #[command(flatten)]
    others: Others,
}

pub fn run(place: &LabPaths, command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::Up(arguments) => {
            let hosts = arguments.hosts;
            let up = start::start_daemon(
                place,
                &daemon_options(*arguments)?,
                &current_program()?,
                hosts,
            )?;
            writeln!(
                stdout(),
                "lab {} is up: the AWS simulator answers at {}, instances of {} become hosts",
                place.name(),
                up.simulator,
                up.region
            )?;
        }
        LabCommand::Serve => {
            init_log();
            let options = json_file::read_json(&start::options_path(place))?;
            let options: DaemonOptions = options.context("no options: `lab up` writes them")?;
            daemon::run_daemon(place, &options)?;
        }
        LabCommand::Run { words } => {
            let mut command = operator::operator_command(place, &read_running_lab(place)?, &words)?;
            return Err(command.exec()).context("running nsenter");
        }
        LabCommand::Conformance(tests) => {
            return tests.run(place, &read_running_lab(place)?, &mut stdout());
        }
        LabCommand::Env => print_environment(place)?,
        LabCommand::Report { folder } => {
            report::write_report(place, &folder)?;
            writeln!(stdout(), "{}", folder.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the daemon does goes to its log; `RUST_LOG` asks for more or less.
fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "lab=info".into()))
        .with_ansi(false)
        .init();
}

fn current_program() -> Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

fn read_running_lab(place: &LabPaths) -> Result<LabAddresses> {
    let up = LabAddresses::read(place)?;
    up.with_context(|| format!("lab {} is not up: `lab up` starts it", place.name()))
}

fn daemon_options(arguments: UpArguments) -> Result<DaemonOptions> {
    let tests = arguments.tests.canonicalize();
    let tests = tests.with_context(|| format!("{} is no folder", arguments.tests.display()))?;
    let (mirror, registry, catalog, tools) = match (arguments.mirror, arguments.registry) {
        (Some(mirror), Some(registry)) => (mirror, registry, None, None),
        (mirror, registry) => {
            let mut say = |line: &str| {
                // Progress that nobody can read is no reason to stop.
                let _ = writeln!(stderr(), "{line}");
            };
            let served = start::prepare_content(arguments.others.versions(), &mut say)?;
            (
                mirror.unwrap_or_else(|| served.mirror_folder()),
                registry.unwrap_or_else(|| served.registry_folder()),
                Some(served.catalog_file()),
                Some(served.tools_folder()),
            )
        }
    };
    Ok(DaemonOptions {
        region: arguments.region,
        python: start::simulator_python(&tests)?,
        mirror,
        registry,
        catalog,
        tools,
        tests,
        pace: arguments.pace,
        machines: arguments.machines,
    })
}

fn print_environment(place: &LabPaths) -> Result<()> {
    let up = read_running_lab(place)?;
    let mut out = stdout();
    for (name, value) in operator::operator_environment(place, &up)? {
        writeln!(out, "export {name}='{value}'")?;
    }
    writeln!(out, "export AWS_ENDPOINT_URL='{}'", up.simulator)?;
    Ok(())
}
