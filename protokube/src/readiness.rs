//! Role ready: polls the local API server's readiness, so that load balancers, which check often and without a certificate, do not
//! burden it, and names lead only to ready API servers.

use node::report::Status;
use protokube_role::log::RoleLog;
use protokube_role::probe::Probe;
use std::time::Duration;
use tokio::sync::watch;

/// Whether the local API server is ready.
pub(crate) type ApiReadiness = watch::Sender<bool>;

/// Polls for ever. `health` is the URL of protokube's health server, without path.
pub(crate) async fn follow_readiness(
    health: &str,
    probe: &Probe,
    ready: &ApiReadiness,
    pace: Duration,
    role_log: &RoleLog,
) -> anyhow::Result<()> {
    let url = format!("{health}/readyz");
    loop {
        let why = probe.find_problem(&url).await;
        let is = why.is_none();
        let changed = ready.send_if_modified(|was| std::mem::replace(was, is) != is);
        match why {
            None => role_log.report_status(Status::Finished, "the API server is ready"),
            // The role manifests reports an API server that was never ready.
            Some(why) if changed => {
                role_log.report_status(Status::Started, &format!("no longer ready: {why}"));
            }
            Some(_) => {}
        }
        tokio::time::sleep(pace).await;
    }
}
