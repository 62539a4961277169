//! Commands on a lab as a whole: up, serve, run, env, report.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab::daemon::{self, Options, Up, begin};
use lab::host;
use lab::network::commands::network;
use lab::operator;
use lab::place::Place;
use std::fs;
use std::io::{Write, stdout};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

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
    /// Seconds until a DNS change is answered
    #[arg(long, default_value_t = 1)]
    propagation: u64,
    /// Seconds that a denial of a name is kept, instead of the zones' own 900
    #[arg(long)]
    negative_ttl: Option<u32>,
    /// Seconds that credentials of instances hold
    #[arg(long, default_value_t = 21600)]
    session: u32,
    /// How much faster than told health checks run
    #[arg(long, default_value_t = 1.0)]
    pace: f64,
}

pub fn run(place: &Place, command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::Up(arguments) => {
            let up = begin::begin(place, &options(*arguments)?)?;
            writeln!(
                stdout(),
                "lab {} is up: the AWS simulator answers at {}, instances of {} become hosts",
                place.name(),
                up.simulator,
                up.region
            )?;
        }
        LabCommand::Serve => {
            let text = fs::read(begin::options_path(place)).context("reading the lab's options")?;
            daemon::serve(place, &serde_json::from_slice(&text)?)?;
        }
        LabCommand::Run { words } => {
            let mut command = operator::command(place, &lab(place)?, &words)?;
            return Err(command.exec()).context("running nsenter");
        }
        LabCommand::Env => env(place)?,
        LabCommand::Report { folder } => report(place, &folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn lab(place: &Place) -> Result<Up> {
    let up = Up::read(place)?;
    up.with_context(|| format!("lab {} is not up: `lab up` starts it", place.name()))
}

fn options(arguments: UpArguments) -> Result<Options> {
    let tests = arguments.tests.canonicalize();
    let tests = tests.with_context(|| format!("{} is no folder", arguments.tests.display()))?;
    let cache = host::cache()?;
    Ok(Options {
        region: arguments.region,
        python: python(&tests)?,
        mirror: arguments.mirror.unwrap_or_else(|| cache.join("mirror")),
        registry: arguments.registry.unwrap_or_else(|| cache.join("registry")),
        tests,
        propagation_seconds: arguments.propagation,
        negative_ttl: arguments.negative_ttl,
        session_seconds: arguments.session,
        pace: arguments.pace,
    })
}

/// The Python that has what the simulator needs, made on first use.
fn python(tests: &Path) -> Result<PathBuf> {
    let made = Command::new(tests.join("venv"))
        .arg(tests.join("simulator/requirements.txt"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("running tests/venv")?;
    if !made.status.success() {
        bail!("tests/venv made no Python environment ({})", made.status);
    }
    let folder = String::from_utf8(made.stdout).context("tests/venv prints no path")?;
    Ok(Path::new(folder.trim()).join("bin/python"))
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

/// What can be had goes into the folder; what cannot is said there.
fn report(place: &Place, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let put = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
    };
    for name in [
        "daemon.log",
        "simulator.log",
        "access.log",
        "up.json",
        "ledger",
    ] {
        if let Ok(content) = fs::read(place.run().join(name)) {
            put(name, &content)?;
        }
    }
    put(
        "network.txt",
        told(network(place).map_err(Into::into)).as_bytes(),
    )?;
    for one in host::hosts(place)? {
        let id = &one.spec.instance;
        put(&format!("{id}.console"), &host::console(place, id)?)?;
        for (what, words) in [
            (
                "journal",
                &["journalctl", "--no-pager", "--output=short-iso"][..],
            ),
            ("failed", &["systemctl", "--no-pager", "--failed"][..]),
            (
                "processes",
                &["ps", "axfww", "-o", "pid,stat,etime,args"][..],
            ),
        ] {
            let output = host::exec_output(place, id, words);
            let text =
                told(output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()));
            put(&format!("{id}.{what}"), text.as_bytes())?;
        }
    }
    writeln!(stdout(), "{}", folder.display())?;
    Ok(())
}

fn told(result: Result<String>) -> String {
    result.unwrap_or_else(|error| format!("could not be had: {error:#}\n"))
}
