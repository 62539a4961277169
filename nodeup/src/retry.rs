//! Trying again: with growing pauses, saying each new cause once.

use anyhow::Error;
use backon::{ExponentialBuilder, Retryable};
use std::cell::RefCell;
use std::time::Duration;

/// Who hears why an attempt failed.
pub type Told<'a> = &'a dyn Fn(&str);

/// Why an attempt failed, and what that means for the next.
#[derive(Debug)]
pub enum Trouble {
    /// It may be otherwise later.
    Passing(Error),
    /// It will not.
    Final(Error),
}

impl Trouble {
    /// The error itself.
    pub fn into_error(self) -> Error {
        match self {
            Self::Passing(error) | Self::Final(error) => error,
        }
    }
}

/// Pauses for what others must mend: from half a second to ten, with jitter so that a group of machines does not call
/// at once.
pub fn patient() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(10))
        .with_jitter()
        .without_max_times()
}

/// Repeats `attempt` in that pace until it succeeds, fails for good, or the pace is over. A cause is told when it is
/// another than the one before.
pub async fn repeat<T, F>(
    pace: ExponentialBuilder,
    told: Told<'_>,
    attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Trouble>>,
{
    let last = RefCell::new(String::new());
    let notify = |trouble: &Trouble, _| {
        let (Trouble::Passing(error) | Trouble::Final(error)) = trouble;
        let cause = format!("{error:#}");
        if last.replace(cause.clone()) != cause {
            told(&cause);
        }
    };
    attempt
        .retry(pace)
        .when(|trouble| matches!(trouble, Trouble::Passing(_)))
        .notify(notify)
        .await
        .map_err(Trouble::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[tokio::test]
    async fn a_cause_is_told_when_it_changes_and_the_last_ends_it() {
        let causes = RefCell::new(Vec::new());
        let mut script = ["down", "down", "busy", "down", "never"].into_iter();
        let told = |cause: &str| causes.borrow_mut().push(cause.to_owned());
        let quick = patient()
            .with_min_delay(Duration::ZERO)
            .with_max_delay(Duration::ZERO);
        let ended = repeat(quick, &told, || {
            let next = script.next().unwrap();
            async move {
                match next {
                    "never" => Err::<(), _>(Trouble::Final(anyhow!(next))),
                    _ => Err(Trouble::Passing(anyhow!(next))),
                }
            }
        });
        assert_eq!(ended.await.unwrap_err().to_string(), "never");
        assert_eq!(causes.into_inner(), ["down", "busy", "down"]);
    }
}
