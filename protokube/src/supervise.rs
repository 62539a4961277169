//! Supervises roles: a role that ends is restarted, with growing pauses after errors. Errors of one role do not affect others, and
//! neither do its panics.

use anyhow::anyhow;
use futures::FutureExt;
use node::report::Status;
use protokube_role::log::RoleLog;
use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Pauses before a restart.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Pause after the first error; doubled for each further one.
    pub first: Duration,
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

/// Runs a role for ever and logs its errors. After a run longer than the longest pause, the pauses begin anew. A role that ends
/// without an error is restarted to renew its inputs; one that panics counts as failed. An error counts as current until the role reports another status, ends
/// without error, or has run for twice the longest pause.
pub async fn supervise_role<F>(
    role_log: RoleLog,
    backoff: Backoff,
    mut start: impl FnMut() -> F,
) -> Infallible
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut wait = backoff.first;
    role_log.report_status(Status::Started, "");
    loop {
        let began = Instant::now();
        // What roles share stays usable after a panic: locks ignore poison, and each role begins anew.
        let mut role = pin!(AssertUnwindSafe(start()).catch_unwind());
        let ended = match tokio::time::timeout(backoff.longest * 2, &mut role).await {
            Ok(ended) => ended,
            Err(_) => {
                role_log.clear_last_status();
                role.await
            }
        };
        if began.elapsed() > backoff.longest {
            wait = backoff.first;
        }
        let ended = ended.unwrap_or_else(|panic| Err(describe_panic(&*panic)));
        if let Err(error) = ended {
            role_log.report_status(Status::Failed, &format!("{error:#}"));
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(backoff.longest);
        } else {
            role_log.clear_last_status();
            // A pause, in case the role ends at once again.
            tokio::time::sleep(backoff.first).await;
        }
    }
}

/// What a role panicked with. Where it happened is in the line that the process writes to its log.
fn describe_panic(panic: &(dyn Any + Send)) -> anyhow::Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("without a message");
    anyhow!("a defect in protokube, please report it: the role panicked: {text}")
}

/// Ends a role without error after `life`, so that a role whose credentials expire is restarted with new ones.
pub async fn run_for(
    life: Duration,
    role: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::time::timeout(life, role).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use protokube_role::current_waits::CurrentWaits;
    use protokube_role::log::Log;
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
        let fails = supervise_role(RoleLog::for_role("failing"), QUICK, count(&failing));
        let ends = supervise_role(RoleLog::for_role("ending"), QUICK, || {
            let other = Arc::clone(&other);
            async move {
                run_for(Duration::from_millis(1), std::future::pending()).await?;
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

    #[tokio::test]
    async fn a_role_that_panics_is_reported_and_started_again_and_hurts_no_other() {
        let current_waits = Arc::new(CurrentWaits::default());
        let role_log =
            RoleLog::with_log(Log::from_fn(|_| ()), "defect").recording_waits(&current_waits, "");
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&starts);
        let mut roles = tokio::task::JoinSet::new();
        roles.spawn(async move {
            let role = || {
                let counted = Arc::clone(&counted);
                async move {
                    tokio::task::yield_now().await;
                    let start = counted.fetch_add(1, Ordering::Relaxed);
                    panic!("the date {start} is too late")
                }
            };
            match supervise_role(role_log, QUICK, role).await {}
        });
        let other = Arc::new(AtomicUsize::new(0));
        let beats = Arc::clone(&other);
        roles.spawn(async move {
            let role = || {
                let beats = Arc::clone(&beats);
                async move {
                    loop {
                        beats.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            };
            match supervise_role(RoleLog::for_role("other"), QUICK, role).await {}
        });
        while starts.load(Ordering::Relaxed) < 4 || other.load(Ordering::Relaxed) < 4 {
            let ended = roles.try_join_next();
            assert!(ended.is_none(), "{ended:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let waits = current_waits.list_waits();
        let message = &waits[0].message;
        assert!(
            waits[0].failed && message.contains("panicked: the date"),
            "{message}"
        );
    }

    /// Number of waits at each start of a role that fails `fails` times, and while it runs afterwards.
    async fn count_waits(fails: usize) -> Vec<usize> {
        let current_waits = Arc::new(CurrentWaits::default());
        let role_log =
            RoleLog::with_log(Log::from_fn(|_| ()), "dns").recording_waits(&current_waits, "");
        let (starts, (seen, mut all)) =
            (AtomicUsize::new(0), tokio::sync::mpsc::unbounded_channel());
        let role = supervise_role(role_log, QUICK, || async {
            seen.send(current_waits.list_waits().len())?;
            if starts.fetch_add(1, Ordering::Relaxed) < fails {
                bail!("the zone is denied");
            }
            while !current_waits.list_waits().is_empty() {
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
        assert_eq!(count_waits(0).await, [0, 0]);
        assert_eq!(count_waits(3).await, [0, 1, 1, 1, 0]);
    }
}
