//! Roles run side by side for ever. One that ends is started again, later and later while it keeps failing; no role's error ends
//! another.

use crate::log::Voice;
use model::report::Status;
use std::convert::Infallible;
use std::future::Future;
use std::time::{Duration, Instant};

/// When a role is started again.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After its first error; doubled after each further one.
    pub first: Duration,
    /// At most.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
        }
    }
}

/// Runs a role. Each error is said once until another comes. A role that ran longer than the longest wait begins with the shortest
/// again; one that ends well is started again at once, and renews what it was started with.
pub async fn supervise<F>(role: &str, backoff: Backoff, mut start: impl FnMut() -> F) -> Infallible
where
    F: Future<Output = anyhow::Result<()>>,
{
    let voice = Voice::of(role);
    let mut wait = backoff.first;
    voice.say(Status::Started, "");
    loop {
        let began = Instant::now();
        let ended = start().await;
        if began.elapsed() > backoff.longest {
            wait = backoff.first;
        }
        if let Err(error) = ended {
            voice.say(Status::Failed, &format!("{error:#}"));
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(backoff.longest);
        } else {
            // Not in circles, should a role end well at once.
            tokio::time::sleep(backoff.first).await;
        }
    }
}

/// Lets a role run for a while and ends it well: for roles whose credentials end, so that they get new ones.
pub async fn for_a_while(
    life: Duration,
    role: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::time::timeout(life, role).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const QUICK: Backoff = Backoff {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(4),
    };

    #[tokio::test]
    async fn a_role_that_fails_is_started_again_and_hurts_no_other() {
        let [failing, other] = [0, 0].map(|_| Arc::new(AtomicUsize::new(0)));
        let count = |counter: &Arc<AtomicUsize>| {
            let counter = Arc::clone(counter);
            move || {
                let counter = Arc::clone(&counter);
                async move {
                    counter.fetch_add(1, Ordering::Relaxed);
                    bail!("no")
                }
            }
        };
        let fails = supervise("failing", QUICK, count(&failing));
        let ends = supervise("ending", QUICK, || {
            let other = Arc::clone(&other);
            async move {
                for_a_while(Duration::from_millis(1), std::future::pending()).await?;
                other.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        let both = async {
            while failing.load(Ordering::Relaxed) < 5 || other.load(Ordering::Relaxed) < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            _ = fails => {}
            _ = ends => {}
            () = both => {}
        }
        assert!(failing.load(Ordering::Relaxed) >= 5);
    }
}
