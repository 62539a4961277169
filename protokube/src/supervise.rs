//! Roles run side by side for ever. One that ends is started again, later and later while it keeps failing; no role's error ends
//! another.

use crate::log::Voice;
use node::report::Status;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
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

/// Runs a role, whose voice says each error once until another comes. A role that ran longer than the longest wait begins with the
/// shortest again; one that ends well is started again at once, and renews what it was started with. An error stands until the role says
/// something else, ends well, or has run for twice the longest wait.
pub async fn supervise<F>(
    voice: Voice,
    backoff: Backoff,
    mut start: impl FnMut() -> F,
) -> Infallible
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut wait = backoff.first;
    voice.say(Status::Started, "");
    loop {
        let began = Instant::now();
        let mut role = pin!(start());
        let ended = match tokio::time::timeout(backoff.longest * 2, &mut role).await {
            Ok(ended) => ended,
            Err(_) => {
                voice.said_is_over();
                role.await
            }
        };
        if began.elapsed() > backoff.longest {
            wait = backoff.first;
        }
        if let Err(error) = ended {
            voice.say(Status::Failed, &format!("{error:#}"));
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(backoff.longest);
        } else {
            voice.said_is_over();
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
    use crate::log::Log;
    use crate::standing::Standing;
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
        let fails = supervise(Voice::of("failing"), QUICK, count(&failing));
        let ends = supervise(Voice::of("ending"), QUICK, || {
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

    /// What stands of a role that fails so often and then runs, at its starts and while it runs in the end.
    async fn stands(fails: usize) -> Vec<usize> {
        let standing = Arc::new(Standing::default());
        let voice = Voice::to(Log::to(|_| ()), "dns").standing_in(&standing, "");
        let (starts, (seen, mut all)) =
            (AtomicUsize::new(0), tokio::sync::mpsc::unbounded_channel());
        let role = supervise(voice, QUICK, || async {
            seen.send(standing.waits().len())?;
            if starts.fetch_add(1, Ordering::Relaxed) < fails {
                bail!("the zone is denied");
            }
            while !standing.waits().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            seen.send(0)?;
            std::future::pending().await
        });
        let taken = async {
            let mut taken = Vec::new();
            while taken.len() < fails + 2 {
                taken.extend(all.recv().await);
            }
            taken
        };
        tokio::select! {
            never = role => match never {},
            taken = taken => taken,
        }
    }

    #[tokio::test]
    async fn an_error_stands_until_its_role_has_run_for_a_while() {
        assert_eq!(stands(0).await, [0, 0]);
        assert_eq!(stands(3).await, [0, 1, 1, 1, 0]);
    }
}
