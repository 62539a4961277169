//! Whether this machine's API server is ready: asked here every few seconds, so that load balancers, which ask often and without a
//! certificate, cost the API server nothing, and names lead to ready API servers only.

use crate::log::Voice;
use crate::probe::Probe;
use node::report::Status;
use std::time::Duration;
use tokio::sync::watch;

/// Whether it is.
pub type Ready = watch::Sender<bool>;

/// Asks for ever; `health` is where protokube answers for the API server, without path.
pub async fn follow(
    health: &str,
    probe: &Probe,
    ready: &Ready,
    pace: Duration,
    voice: &Voice,
) -> anyhow::Result<()> {
    let url = format!("{health}/readyz");
    loop {
        let why = probe.unhealthy(&url).await;
        let is = why.is_none();
        let changed = ready.send_if_modified(|was| std::mem::replace(was, is) != is);
        match why {
            None => voice.say(Status::Finished, "the API server is ready"),
            // One that was never ready is waited for elsewhere, with the reason.
            Some(why) if changed => voice.say(Status::Started, &format!("no longer ready: {why}")),
            Some(_) => {}
        }
        tokio::time::sleep(pace).await;
    }
}
