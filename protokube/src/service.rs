//! The service: every role as a task of its own, until it is asked to stop.

use crate::arguments::Arguments;
use crate::daemon::{configuration, identify};
use crate::log::Log;
use crate::roles;
use anyhow::{Context, bail};
use node::report::Status;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs until the service is stopped. An error is one of the start: the service begins again.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let log = Log::stderr();
    let (boot, config) = configuration(arguments)?;
    let mut stopped = Stopped::new()?;
    let daemon = tokio::select! {
        daemon = identify(&boot, config) => daemon?,
        () = stopped.asked() => return Ok(()),
    };
    let detail = format!("{} of {}", daemon.instance, daemon.config.cluster);
    log.say("identify", Status::Finished, None, &detail);
    let mut roles = roles::start(&Arc::new(daemon));
    tokio::select! {
        () = stopped.asked() => {
            roles.shutdown().await;
            Log::direct().say("stop", Status::Finished, None, "");
            Ok(())
        }
        Some(ended) = roles.join_next() => match ended {
            Err(error) => Err(error).context("a role ended in a way that none may"),
            Ok(()) => bail!("a role ended"),
        },
    }
}

/// The ways in which a service is asked to stop.
struct Stopped {
    terminate: Signal,
    interrupt: Signal,
}

impl Stopped {
    fn new() -> anyhow::Result<Self> {
        let of = |kind| signal(kind).context("could not listen for signals");
        Ok(Self {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
