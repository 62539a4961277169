//! nodeup turns a freshly launched instance into a Kubernetes node, in stages: identify, fetch, verify, build, apply,
//! report. This release has the first three, and says so: it prepares machines and does not change them.

mod arguments;
mod facts;
mod fetch;
mod identify;
mod stage;

use anyhow::{Context, bail};
use arguments::Arguments;
use model::node::{Host, NodeConfig, files, packages, read_boot_config, read_node_config};
use stage::Stages;
use std::io::Write;
use std::process::ExitCode;

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
    let mut stages = Stages::default();
    match run(&arguments, &mut stages).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stages.failed(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments, stages: &mut Stages) -> anyhow::Result<()> {
    stages.begin("identify");
    let path = &arguments.boot_config;
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read {}", path.display()))?;
    let boot = read_boot_config(&text)?;
    let host = identify::identify(&boot).await?;

    stages.begin("fetch");
    let text = fetch::node_config(&boot).await?;

    stages.begin("verify");
    let config = read_node_config(&text, &boot.node_config)?;
    if (&config.cluster, &config.group) != (&boot.cluster, &boot.group) {
        bail!(
            "NodeConfig is of {} in {}, not of {} in {}",
            config.group,
            config.cluster,
            boot.group,
            boot.cluster
        );
    }
    if arguments.dry_run {
        stages.end();
        return show(&config, &host);
    }

    stages.begin("build");
    bail!("this release of nodeup prepares machines and does not build or apply yet: see --dry-run")
}

/// What would be written, installed and started, as JSON on standard output.
fn show(config: &NodeConfig, host: &Host) -> anyhow::Result<()> {
    let shown = serde_json::json!({
        "files": files(config, host)?,
        "units": config.units,
        "packages": packages(config, host.distribution),
        "assets": config.assets,
    });
    writeln!(std::io::stdout(), "{shown:#}").context("could not write to standard output")
}
