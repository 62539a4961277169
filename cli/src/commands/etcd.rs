//! `kctl etcd`: what the etcd members report in the state store, and commands to them through it. No Kubernetes API is needed.

mod command;
mod disarm;
mod follow;
mod forget;
mod formation;
mod members;
mod recover;
mod reports;
mod restorable;
mod restore;
mod restore_point;
pub mod snapshot;
mod status;
mod volume_holders;

pub(super) use command::CommandChannel;
pub(super) use formation::Formation;
pub(super) use reports::EtcdReports;

use super::session::Session;
use crate::args::EtcdWhat;
use crate::error::{CommandError, Outcome};

/// Runs a command of `kctl etcd`.
pub async fn run(what: &EtcdWhat, session: &Session<'_>) -> Result<Outcome, CommandError> {
    match what {
        EtcdWhat::Status(what) => status::run(what, session).await,
        EtcdWhat::Members(what) => members::run(what, session).await,
        EtcdWhat::Disarm(what) => disarm::run(what, session).await,
        EtcdWhat::Recover(what) => recover::run(what, session).await,
        EtcdWhat::Snapshot(what) => snapshot::run(&what.what, session).await,
        EtcdWhat::Drill(what) => snapshot::drill(what, session).await,
        EtcdWhat::Restore(what) => restore::run(what, session).await,
        EtcdWhat::Forget(what) => forget::run(what, session).await,
    }
}
