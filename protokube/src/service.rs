//! The service: runs all roles until a signal stops it.

use crate::arguments::Arguments;
use crate::daemon::{identify_instance, read_configuration};
use crate::roles;
use anyhow::{Context, bail};
use aws_client::authorities::Authorities;
use aws_client::fips;
use node::report::Status;
use protokube_role::log::Log;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs until a signal. Returns an error if the start fails; systemd restarts the service.
pub async fn run_service(arguments: &Arguments) -> anyhow::Result<()> {
    fips::check_start()?;
    let log = Log::stderr();
    let (boot, config) = read_configuration(arguments)?;
    let mut stopped = StopSignals::new()?;
    if let Some(warning) = Authorities::of_system().warning() {
        log.write_stage("identify", Status::Started, None, &warning);
    }
    let attempt_log = |cause: &str| log.write_stage("identify", Status::Failed, None, cause);
    let daemon = tokio::select! {
        daemon = identify_instance(&boot, config, &attempt_log) => daemon?,
        () = stopped.wait_for_signal() => return Ok(()),
    };
    let detail = format!("{} of {}", daemon.instance, daemon.config.cluster);
    log.write_stage("identify", Status::Finished, None, &detail);
    let mut roles = roles::start_roles(&Arc::new(daemon));
    tokio::select! {
        () = stopped.wait_for_signal() => {
            roles.shutdown().await;
            Log::unqueued_stderr().write_stage("stop", Status::Finished, None, "");
            Ok(())
        }
        Some(ended) = roles.join_next() => match ended {
            Err(error) => Err(error).context("a role panicked or was aborted"),
            Ok(()) => bail!("a role ended unexpectedly"),
        },
    }
}

/// Returns once a signal asks the process to end.
pub async fn wait_for_stop() -> anyhow::Result<()> {
    StopSignals::new()?.wait_for_signal().await;
    Ok(())
}

/// The signals that stop the service.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> anyhow::Result<Self> {
        let install_handler = |kind| signal(kind).context("could not install a signal handler");
        Ok(Self {
            terminate: install_handler(SignalKind::terminate())?,
            interrupt: install_handler(SignalKind::interrupt())?,
        })
    }

    async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
