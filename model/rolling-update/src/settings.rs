//! How a rolling update goes about it: the command's options, and the limits of a group.

/// What happens to an instance that could not be drained in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrainTimeout {
    /// The rolling update stops, and the instance may be scheduled on again. The default, as in kOps.
    #[default]
    Fail,
    /// The remaining pods are deleted, whatever their budgets say, and have the timeout once more to end.
    Force,
    /// The instance is terminated with the remaining pods on it.
    Skip,
}

/// The options of one rolling update. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many instances may be drained or terminated at the same time, in all groups together.
    pub parallelism: usize,
    /// How long the pods of an instance may take to leave it. kOps: 900.
    pub drain_timeout: i64,
    /// What happens after that.
    pub on_drain_timeout: OnDrainTimeout,
    /// Time between the end of a drain and the termination. kOps: 5.
    pub post_drain_delay: i64,
    /// How long a replacement may take to be Ready, and how long a new problem may last. kOps: 900.
    pub validation_timeout: i64,
    /// True if the API is not asked: instances are terminated without a drain, and EC2 alone says what runs.
    pub cloud_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallelism: 20,
            drain_timeout: 900,
            on_drain_timeout: OnDrainTimeout::Fail,
            post_drain_delay: 5,
            validation_timeout: 900,
            cloud_only: false,
        }
    }
}

/// `maxSurge` of a group with that many instances: a number, or a percentage, rounded up. Default 1. `None` for a text
/// that is neither. kOps: `resolveSettings`.
pub fn resolve_surge(text: Option<&str>, desired: usize) -> Option<usize> {
    let Some(text) = text else { return Some(1) };
    match text.strip_suffix('%') {
        Some(percent) => Some((percent.parse::<usize>().ok()? * desired).div_ceil(100)),
        None => text.parse().ok(),
    }
}

/// `maxUnavailable` of a group with that many instances: a number, or a percentage, rounded down. At least 1 if nothing
/// surges, because otherwise nothing could be replaced. `None` for a text that is neither.
pub fn resolve_unavailable(text: Option<&str>, desired: usize, surge: usize) -> Option<usize> {
    let wanted = match text {
        None => 0,
        Some(text) => match text.strip_suffix('%') {
            Some(percent) => percent.parse::<usize>().ok()? * desired / 100,
            None => text.parse().ok()?,
        },
    };
    Some(if surge == 0 { wanted.max(1) } else { wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_so_that_something_can_be_replaced() {
        for (surge, unavailable, desired, expected) in [
            (None, None, 10, (1, 0)),
            (Some("25%"), None, 10, (3, 0)),
            (Some("25%"), Some("25%"), 10, (3, 2)),
            (Some("0"), Some("5%"), 10, (0, 1)),
            (Some("0"), None, 3, (0, 1)),
            (Some("2"), Some("1"), 3, (2, 1)),
            (Some("25%"), None, 0, (0, 1)),
        ] {
            let surge = resolve_surge(surge, desired).unwrap();
            let unavailable = resolve_unavailable(unavailable, desired, surge).unwrap();
            assert_eq!((surge, unavailable), expected);
        }
        assert_eq!(resolve_surge(Some("many"), 3), None);
        assert_eq!(resolve_unavailable(Some("%"), 3, 1), None);
    }
}
