//! `nodeup probe`: what runs in the pods of `kctl preflight --live`. A listener sends back what it gets; the other one tries what it is
//! told, and reports. Both end by themselves, and neither touches the instance.

mod arguments;
mod datagrams;
mod listen;
mod streams;
mod trials;

pub use arguments::{Probe, USAGE, parse_probe};
pub use listen::Listener;
pub use trials::{Pace, try_all};

use anyhow::Context as _;
use tokio::time::timeout;

/// Listens until the time is over, or tries and writes the report.
pub async fn run_probe(probe: &Probe) -> anyhow::Result<()> {
    match probe {
        Probe::Listen { at, limit } => {
            let listener = Listener::bind(*at).await?;
            // The end of the time is the end of the work.
            let _ = timeout(*limit, listener.serve()).await;
            Ok(())
        }
        Probe::Try {
            trials,
            limit,
            report,
        } => {
            let found = try_all(trials, &Pace::default(), *limit).await;
            let text = serde_json::to_string(&found)?;
            std::fs::write(report, text)
                .with_context(|| format!("could not write {}", report.display()))
        }
    }
}
