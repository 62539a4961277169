//! nodeup turns a freshly launched instance into a Kubernetes node, in stages: identify, fetch, verify, build, apply,
//! report. It runs at every boot; what is as it should be is left alone.

use anyhow::{Context, Error};
use engine::Plan;
use host::LocalSystem;
use node::config::{BootConfig, read_boot_config};
use node::host::HostResource;
use node::report::{changed_line, named};
use nodeup::arguments::{self, Arguments};
use nodeup::place::Place;
use nodeup::run::Run;
use nodeup::stage::Stages;
use nodeup::{apply, build, fetch, identify, report};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "nodeup: {message}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let mut stages = Stages::start();
    stages.begin("identify");
    match identified(arguments).await {
        Ok(run) => whole(&run, &mut stages).await,
        Err(error) => {
            stages.failed(&error);
            ExitCode::FAILURE
        }
    }
}

/// The run of a machine that knows who it is. Its end is reported however it ended; a report that cannot be sent
/// neither hides what failed before nor makes a good run fail.
async fn whole(run: &Run, stages: &mut Stages) -> ExitCode {
    let mut changes = BTreeSet::new();
    let outcome = node(run, stages, &mut changes).await;
    if !changes.is_empty() {
        stages.notes()(&changed_line(changes.len(), &named(&changes)));
    }
    match &outcome {
        Ok(()) => stages.end(),
        Err(error) => stages.failed(error),
    }
    if !run.dry_run {
        stages.begin("report");
        let said = report::report(run, stages, &changes, outcome.as_ref().err());
        match report::send(run, &said, &*stages.attempts()).await {
            Ok(()) => stages.end(),
            Err(error) => stages.failed(&error),
        }
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// From the configuration's name to a node. What that changed is in `changes`, however it ended.
async fn node(
    run: &Run,
    stages: &mut Stages,
    changes: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    stages.begin("fetch");
    let fetched = fetch::fetch(run, stages).await?;

    stages.begin("verify");
    let config = build::verify(&fetched.node_config, &run.boot)?;

    stages.begin("build");
    let built = build::build(run, &config, fetched, stages).await?;
    if run.dry_run {
        stages.end();
        return show(&built.plan);
    }

    stages.begin("apply");
    apply::apply(run, built, stages, changes).await
}

async fn identified(arguments: Arguments) -> anyhow::Result<Run> {
    let boot = boot_config(&arguments)?;
    let identified = identify::identify(&boot).await?;
    Ok(Run {
        certificates: arguments.certificates,
        dry_run: arguments.dry_run,
        boot,
        identified,
        system: Arc::new(LocalSystem::below(&arguments.root)),
        place: Place::at(arguments.root),
        clock: SystemTime::now,
    })
}

fn boot_config(arguments: &Arguments) -> anyhow::Result<BootConfig> {
    let path = &arguments.boot_config;
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read {}", path.display()))?;
    Ok(read_boot_config(&text)?)
}

/// What would be changed, as JSON on standard output.
fn show(plan: &Plan<HostResource>) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(plan)?;
    writeln!(std::io::stdout(), "{text}")
        .map_err(Error::new)
        .context("could not write to standard output")
}
