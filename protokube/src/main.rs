//! protokube brings up and keeps up the control plane: volumes, etcd, manifests, names, the bootstrap endpoint,
//! addons, backups. This release only identifies its machine, and says so.

use anyhow::{Context, bail};
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "usage: protokube --node-config FILE | --version | --help";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["--version"] => said(concat!("protokube ", env!("CARGO_PKG_VERSION"))),
        ["--help" | "-h"] => said(USAGE),
        ["--node-config", file] => match run(file).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "protokube: {error:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn said(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}

async fn run(file: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("could not read {file}"))?;
    let sha256 = model::node::sha256(&text);
    let config = model::node::read_node_config(&text, &sha256)?;
    let instance = aws::Imds::new().instance_id().await?;
    let instance = instance.context("the metadata service names no instance")?;
    if config.control_plane.is_none() {
        bail!(
            "{instance} belongs to {}, whose machines are no control planes",
            config.group
        );
    }
    bail!(
        "{instance} is a control plane of {}, and this release of protokube does not bring it up yet",
        config.cluster
    )
}
