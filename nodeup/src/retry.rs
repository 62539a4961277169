//! Retries with growing pauses, logging each new cause once.

use anyhow::Error;
use backon::{ExponentialBuilder, Retryable};
use std::cell::RefCell;
use std::time::Duration;

/// Receives the reason of a failed attempt.
pub(crate) type AttemptLog<'a> = &'a dyn Fn(&str);

/// The error of an attempt, classified for retries.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// A retry may succeed.
    Passing(Error),
    /// A retry cannot succeed.
    Final(Error),
}

impl AttemptError {
    /// The error without its classification.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Passing(error) | Self::Final(error) => error,
        }
    }
}

/// Pauses for problems that others must solve: from 0.5 to 10 seconds without limit of attempts, with jitter so that the instances
/// of a group do not retry at the same time.
pub(crate) fn unlimited_backoff() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(10))
        .with_jitter()
        .without_max_times()
}

/// Repeats `attempt` until it succeeds, fails permanently, or `pace` has no more attempts. A cause is logged if it differs from the
/// previous one.
pub(crate) async fn repeat_until_final<T, F>(
    pace: ExponentialBuilder,
    attempt_log: AttemptLog<'_>,
    attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, AttemptError>>,
{
    let last = RefCell::new(String::new());
    let notify = |trouble: &AttemptError, _| {
        let (AttemptError::Passing(error) | AttemptError::Final(error)) = trouble;
        let cause = format!("{error:#}");
        if last.replace(cause.clone()) != cause {
            attempt_log(&cause);
        }
    };
    attempt
        .retry(pace)
        .when(|trouble| matches!(trouble, AttemptError::Passing(_)))
        .notify(notify)
        .await
        .map_err(AttemptError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[tokio::test]
    async fn a_cause_is_told_when_it_changes_and_the_last_ends_it() {
        let causes = RefCell::new(Vec::new());
        let mut script = ["down", "down", "busy", "down", "never"].into_iter();
        let attempt_log = |cause: &str| causes.borrow_mut().push(cause.to_owned());
        let quick = unlimited_backoff()
            .with_min_delay(Duration::ZERO)
            .with_max_delay(Duration::ZERO);
        let ended = repeat_until_final(quick, &attempt_log, || {
            let next = script.next().unwrap();
            async move {
                match next {
                    "never" => Err::<(), _>(AttemptError::Final(anyhow!(next))),
                    _ => Err(AttemptError::Passing(anyhow!(next))),
                }
            }
        });
        assert_eq!(ended.await.unwrap_err().to_string(), "never");
        assert_eq!(causes.into_inner(), ["down", "busy", "down"]);
    }
}
