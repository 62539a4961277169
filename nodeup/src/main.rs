//! nodeup configures an instance at boot so that it becomes a Kubernetes node, in stages: identify, fetch, verify, build, apply,
//! report. It runs at every boot and changes only what differs. As a service of its own it is the node's proxy of the API, and in pods of
//! `kctl preflight --live` it tries connections.

#![warn(unreachable_pub)]

use anyhow::{Context, Error};
use aws_client::authorities::Authorities;
use aws_client::fips;
use engine::Plan;
use host::{Host, LocalSystem, read_text_file};
use node::config::{BootConfig, read_boot_config};
use node::host::HostResource;
use node::report::{changed_line, first_changes};
use nodeup::arguments::{self, Arguments};
use nodeup::paths::NodeupPaths;
use nodeup::run::Run;
use nodeup::stage::Stages;
use nodeup::warm_pool::{self, Launch};
use nodeup::{api_proxy, apply, build, fetch, identify, probe, report};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Arguments of any bytes: what is not text is an unknown argument.
    let given = std::env::args_os().skip(1);
    let given = given.map(|argument| argument.to_string_lossy().into_owned());
    let given: Vec<String> = given.collect();
    if given.first().is_some_and(|word| word == "probe") {
        return run_probe(given.get(1..).unwrap_or_default()).await;
    }
    let arguments = match arguments::parse_arguments(given) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "nodeup: {message}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let mut stages = Stages::start();
    if arguments.api_proxy {
        stages.begin_stage("api-proxy");
        let ended = serve_api_proxy(&arguments, &stages).await;
        ended.unwrap_or_else(|error| stages.fail_stage(&error));
        return ExitCode::FAILURE;
    }
    stages.begin_stage("identify");
    match start_run(arguments, &stages).await {
        Ok(run) => run_and_report(&run, &mut stages).await,
        Err(error) => {
            stages.fail_stage(&error);
            ExitCode::FAILURE
        }
    }
}

/// Runs in a pod: no instance, no configuration.
async fn run_probe(given: &[String]) -> ExitCode {
    let probe = match probe::parse_probe(given) {
        Ok(probe) => probe,
        Err(message) => {
            let usage = probe::USAGE;
            let _ = writeln!(std::io::stderr(), "nodeup probe: {message}\n{usage}");
            return ExitCode::from(2);
        }
    };
    match probe::run_probe(&probe).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "nodeup probe: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the proxy of the API, with the configuration that the instance has. Returns only with an error.
async fn serve_api_proxy(arguments: &Arguments, stages: &Stages) -> anyhow::Result<()> {
    fips::check_start()?;
    let boot = read_boot_config_file(arguments)?;
    let path = NodeupPaths::new(&arguments.root).node_config();
    let text = read_text_file(&path)?;
    let text = text.with_context(|| {
        format!(
            "{} does not exist: the instance has not joined yet",
            path.display()
        )
    })?;
    let config = build::verify_config(&text, &boot)?;
    let system = Arc::new(LocalSystem::with_root(&arguments.root));
    let host = Host::new(&arguments.root, system);
    api_proxy::run_api_proxy(config, host, stages.note_logger()).await
}

/// Runs all stages after identify. The result is reported even after a failure. A report that cannot be sent neither hides an
/// earlier error nor changes the exit code. An instance that has prepared for the warm pool of its group waits there until it is stopped,
/// or begins again once it is to enter service.
async fn run_and_report(run: &Run, stages: &mut Stages) -> ExitCode {
    loop {
        let mut changes = BTreeSet::new();
        let outcome = run_stages(run, stages, &mut changes).await;
        if !changes.is_empty() {
            stages.note_logger()(&changed_line(changes.len(), &first_changes(&changes)));
        }
        let (launch, mut error) = match outcome {
            Ok(launch) => (launch, None),
            Err(error) => (None, Some(error)),
        };
        match &error {
            None => stages.end_stage(),
            Some(error) => stages.fail_stage(error),
        }
        let warming = launch.as_ref().is_some_and(|launch| launch.warming);
        // Auto Scaling gives up a node that is silent for too long; a report has time. In the pool it is the other way round: after the
        // hook the instance is stopped.
        let (before, after) = match launch {
            Some(launch) if launch.has_hook && !warming => (Some(launch), None),
            other => (None, other),
        };
        if let Some(launch) = before {
            error = complete_launch(run, &launch, stages).await.err();
        }
        if !run.dry_run {
            report_outcome(run, stages, &changes, error.as_ref(), warming).await;
        }
        if let Some(launch) = after {
            error = complete_launch(run, &launch, stages).await.err();
        }
        match error {
            Some(_) => return ExitCode::FAILURE,
            None if !warming => return ExitCode::SUCCESS,
            None => {}
        }
        stages.begin_stage("wait");
        warm_pool::wait_in_pool(run, stages).await;
        stages.end_stage();
        *stages = Stages::start();
    }
}

async fn report_outcome(
    run: &Run,
    stages: &mut Stages,
    changes: &BTreeSet<String>,
    error: Option<&Error>,
    warming: bool,
) {
    stages.begin_stage("report");
    let boot_report = report::build_report(run, stages, changes, error);
    match report::send_report(run, &boot_report, warming, &*stages.attempt_logger()).await {
        Ok(()) => stages.end_stage(),
        Err(error) => stages.fail_stage(&error),
    }
}

async fn complete_launch(run: &Run, launch: &Launch, stages: &mut Stages) -> anyhow::Result<()> {
    stages.begin_stage("launch");
    let completed = warm_pool::complete_launch(run, launch, stages).await;
    match &completed {
        Ok(()) => stages.end_stage(),
        Err(error) => stages.fail_stage(error),
    }
    completed
}

/// Runs the stages fetch to apply, and in an instance that goes to its group's warm pool the stage warm. Ids of changed objects are
/// added to `changes`, even if an error is returned. The result is the launch that the instance has to complete.
async fn run_stages(
    run: &Run,
    stages: &mut Stages,
    changes: &mut BTreeSet<String>,
) -> anyhow::Result<Option<Launch>> {
    let began = Instant::now();
    stages.begin_stage("fetch");
    let fetched = fetch::fetch_config(run, stages).await?;

    stages.begin_stage("verify");
    let config = build::verify_config(&fetched.node_config, &run.boot)?;
    let warming = warm_pool::is_warming(run, &config, &*stages.note_logger()).await?;

    stages.begin_stage("build");
    let built = build::build_plan(run, &config, fetched, warming, stages).await?;
    if run.dry_run {
        stages.end_stage();
        print_plan(&built.plan)?;
        return Ok(None);
    }

    stages.begin_stage("apply");
    apply::apply_plan(run, built, stages, changes).await?;
    if warming {
        stages.begin_stage("warm");
        let end = warm_pool::preparation_end(&config, began);
        warm_pool::pull_images(run, &config, end, stages).await;
        warm_pool::wait_for_scripts(run, end, stages).await?;
    }
    warm_pool::begun_launch(run, &config, warming)
}

async fn start_run(arguments: Arguments, stages: &Stages) -> anyhow::Result<Run> {
    fips::check_start()?;
    let boot = read_boot_config_file(&arguments)?;
    if let Some(warning) = Authorities::of_system().warning() {
        stages.note_logger()(&warning);
    }
    let identified = identify::identify_instance(&boot, &*stages.attempt_logger()).await?;
    Ok(Run {
        certificates: arguments.certificates,
        force: arguments.force,
        dry_run: arguments.dry_run,
        boot,
        identified,
        system: Arc::new(LocalSystem::with_root(&arguments.root)),
        paths: NodeupPaths::new(arguments.root),
        clock: SystemTime::now,
    })
}

fn read_boot_config_file(arguments: &Arguments) -> anyhow::Result<BootConfig> {
    let path = &arguments.boot_config;
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read {}", path.display()))?;
    Ok(read_boot_config(&text)?)
}

/// Prints the plan as JSON.
fn print_plan(plan: &Plan<HostResource>) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(plan)?;
    writeln!(std::io::stdout(), "{text}")
        .map_err(Error::new)
        .context("could not write to standard output")
}
