//! Commands on hosts and their volumes, and the way to remove a lab.

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Table;
use lab::host::{self, DetachResult, Host, HostState, Image, Release, VolumeSpec};
use lab::lab_paths::LabPaths;
use lab::ledger::Ledger;
use lab::teardown;
use serde::Serialize;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// How long a host may take to go down before it is switched off.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Subcommand)]
pub enum HostCommand {
    /// Make the machine images that the cache does not have, and print where they are
    Image,
    /// Show the hosts
    List {
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Run a program in a host; its exit code is the command's
    Exec {
        instance: String,
        #[arg(required = true, last = true)]
        words: Vec<String>,
    },
    /// Print what a host has written to its serial console
    Console {
        instance: String,
        /// Go on until the host is off
        #[arg(short, long)]
        follow: bool,
    },
    /// Crash a host: everything in it is killed, its disk stays
    Kill { instance: String },
    /// Power a host off
    Poweroff { instance: String },
    /// Start a host that is off
    Start { instance: String },
    /// Reboot a host with the same disk
    Reboot { instance: String },
    /// Attach a volume, made if it is new
    Attach(AttachArguments),
    /// Detach a volume
    Detach {
        instance: String,
        volume: String,
        /// Also while it is in use: as pulling the plug
        #[arg(long)]
        force: bool,
    },
    /// Remove the lab and all it made
    Down,
}

#[derive(Args)]
pub struct AttachArguments {
    instance: String,
    /// Its id, as vol-0123456789abcdef0
    volume: String,
    /// The device asked for
    #[arg(long, default_value = "/dev/xvdf")]
    device: String,
    /// GiB
    #[arg(long, default_value_t = 1)]
    size: u32,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

/// A line of `lab list`.
#[derive(Serialize)]
struct HostLine {
    #[serde(flatten)]
    host: Host,
    state: HostState,
    /// As the machine sees it.
    init: Option<u32>,
    volumes: Vec<host::HostVolume>,
}

pub fn run(place: &LabPaths, command: HostCommand) -> Result<ExitCode> {
    match command {
        HostCommand::Image => {
            for release in Release::ALL {
                let image = Image::prepare_image(&host::cache_folder()?, release)?;
                writeln!(stdout(), "{}", image.root.display())?;
            }
        }
        HostCommand::List { output } => list_hosts(place, output)?,
        HostCommand::Exec { instance, words } => {
            let status = host::exec_in_host(place, &instance, &words)?;
            // Ended by a signal: as a shell says it, without the signal's number.
            let code = status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(128);
            return Ok(ExitCode::from(code));
        }
        HostCommand::Console {
            instance,
            follow: true,
        } => host::follow_console(place, &instance, &mut stdout())?,
        HostCommand::Console {
            instance,
            follow: false,
        } => stdout().write_all(&host::read_console(place, &instance)?)?,
        HostCommand::Kill { instance } => host::kill9(place, &instance)?,
        HostCommand::Poweroff { instance } => {
            host::power_off(place, &instance, PATIENCE).map(drop)?;
        }
        HostCommand::Start { instance } => {
            host::start_host(place, &Ledger::open(place)?, &instance).map(drop)?;
        }
        HostCommand::Reboot { instance } => {
            host::reboot_host(place, &Ledger::open(place)?, &instance, PATIENCE)?;
        }
        HostCommand::Attach(arguments) => attach_volume(place, arguments)?,
        HostCommand::Detach {
            instance,
            volume,
            force,
        } => {
            if host::detach_volume(place, &instance, &volume, force)? == DetachResult::Busy {
                bail!(
                    "{volume} is in use in {instance}: unmount it there, or detach it with --force"
                );
            }
        }
        HostCommand::Down => teardown::remove_lab(place)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn attach_volume(place: &LabPaths, arguments: AttachArguments) -> Result<()> {
    let AttachArguments {
        instance,
        volume,
        device,
        size,
    } = arguments;
    let spec = VolumeSpec {
        id: volume,
        size,
        device,
    };
    let attached = host::attach_volume(place, &Ledger::open(place)?, &instance, &spec)?;
    writeln!(stdout(), "/dev/{}", attached.device_node())?;
    Ok(())
}

fn list_hosts(place: &LabPaths, output: Format) -> Result<()> {
    let mut lines = Vec::new();
    for host in host::list_hosts(place)? {
        let (state, volumes) = (host.current_state(place)?, host.read_volumes(place)?);
        let init = host.init_process()?.map(|process| process.pid);
        lines.push(HostLine {
            host,
            state,
            init,
            volumes,
        });
    }
    match output {
        Format::Json => {
            serde_json::to_writer_pretty(stdout(), &lines)?;
            writeln!(stdout())?;
        }
        Format::Table => writeln!(stdout(), "{}", host_table(&lines))?,
    }
    Ok(())
}

fn host_table(lines: &[HostLine]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["INSTANCE", "TYPE", "STATE", "INIT", "VOLUMES"]);
    for line in lines {
        let volumes: Vec<String> = line
            .volumes
            .iter()
            .map(|attached| format!("{}={}", attached.device_node(), attached.volume))
            .collect();
        table.add_row([
            line.host.spec.instance.clone(),
            line.host.spec.instance_type.clone(),
            format!("{:?}", line.state).to_lowercase(),
            line.init.map(|pid| pid.to_string()).unwrap_or_default(),
            volumes.join(" "),
        ]);
    }
    table
}
