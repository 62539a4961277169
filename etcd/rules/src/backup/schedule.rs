//! Decides when a control plane takes a scheduled snapshot. All ages are by the store's clock, so that wrong clocks of instances change
//! nothing. One instance takes it, by a claim that gives way if nobody completes it.

use super::name::scheduled_name;
use super::state::{BackupClaim, BackupFailure, BackupState, LastSnapshot};
use std::time::Duration;
use time::OffsetDateTime;

/// A claim that nobody has completed gives way after this time. Whoever held it then leaves no snapshot.
pub const CLAIM_LIFE: Duration = Duration::from_mins(15);

/// The leader waits so much longer than the others, because a follower has less to do.
const LEADER_WAITS: Duration = Duration::from_secs(30);

/// The first wait after a failure. It doubles with each, up to the interval.
const RETRY: Duration = Duration::from_mins(1);

/// What an instance knows when it looks.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleView<'a> {
    /// The instance that looks.
    pub instance: &'a str,
    /// True if its member leads.
    pub leads: bool,
    /// Age of the state, by the store's clock; `None`: there is none, or the store does not say.
    pub state_age: Option<Duration>,
    /// Age of the last verified snapshot, by the store's clock; `None`: there is none.
    pub last_age: Option<Duration>,
    /// Time between two snapshots.
    pub interval: Duration,
}

/// True if the instance should take a scheduled snapshot now.
pub fn is_due(view: &ScheduleView<'_>, state: &BackupState) -> bool {
    let waits = if view.leads {
        LEADER_WAITS
    } else {
        Duration::ZERO
    };
    if let Some(claim) = &state.taking {
        // An instance that finds its own claim has been restarted: it takes nothing at the moment.
        let before = Duration::from_secs(claim.age_seconds);
        let is_over = view
            .state_age
            .is_none_or(|age| age.saturating_add(before) >= CLAIM_LIFE);
        return claim.instance == view.instance || is_over;
    }
    if let Some(failure) = &state.failure {
        let doubled = RETRY.saturating_mul(2_u32.pow(failure.count.saturating_sub(1).min(10)));
        let pause = doubled.min(view.interval).saturating_add(waits);
        let before = Duration::from_secs(failure.age_seconds);
        return view
            .state_age
            .is_none_or(|age| age.saturating_add(before) >= pause);
    }
    view.last_age
        .is_none_or(|age| age >= view.interval.saturating_add(waits))
}

/// The state with the claim of an instance, and the name of the snapshot that it takes.
pub fn begin_snapshot(
    state: &BackupState,
    instance: &str,
    now: OffsetDateTime,
) -> (BackupState, String) {
    let sequence = state.sequence.wrapping_add(1);
    let name = scheduled_name(now, sequence);
    let claim = BackupClaim {
        instance: instance.to_owned(),
        name: name.clone(),
        age_seconds: 0,
    };
    let next = BackupState {
        sequence,
        taking: Some(claim),
        ..state.clone()
    };
    (next, name)
}

/// True if the claim for this snapshot still stands.
fn is_taken(state: &BackupState, name: &str) -> bool {
    state
        .taking
        .as_ref()
        .is_some_and(|claim| claim.name == name)
}

/// The state with this claim as young as it is written. `None`: the claim has given way.
pub fn renew_claim(state: &BackupState, name: &str) -> Option<BackupState> {
    let claim = state.taking.as_ref().filter(|claim| claim.name == name)?;
    Some(BackupState {
        taking: Some(BackupClaim {
            age_seconds: 0,
            ..claim.clone()
        }),
        ..state.clone()
    })
}

/// The state after the snapshot was stored. `None`: the claim has given way, and the snapshot must not count.
pub fn end_snapshot(state: &BackupState, last: LastSnapshot) -> Option<BackupState> {
    is_taken(state, &last.name).then(|| BackupState {
        taking: None,
        last: Some(last),
        failure: None,
        ..state.clone()
    })
}

/// The state after the snapshot of this name failed. `None`: the claim has given way.
pub fn fail_snapshot(
    state: &BackupState,
    name: &str,
    (instance, reason, at): (&str, &str, String),
) -> Option<BackupState> {
    is_taken(state, name).then(|| {
        let before = state.failure.as_ref().map_or(0, |failure| failure.count);
        BackupState {
            taking: None,
            failure: Some(BackupFailure {
                reason: node::waits::bounded_text(reason, 500),
                instance: instance.to_owned(),
                at,
                count: before.saturating_add(1),
                age_seconds: 0,
            }),
            ..state.clone()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Duration = Duration::from_mins(15);

    /// An instance in a run: what it takes, until when.
    #[derive(Clone, Debug, Default)]
    struct Worker {
        takes: Option<(String, u64)>,
    }

    proptest! {
        /// Three instances look once a minute, stop, come back, and have any clock. A snapshot takes up to half an hour. At most one counts
        /// per interval, and a snapshot counts at the latest an interval, a claim and some minutes after the last, if taking one works.
        #[test]
        fn one_snapshot_counts_per_interval_and_none_is_forgotten(
            events in proptest::collection::vec((0..3_usize, 0..30_u64, any::<bool>(), -600_000..600_000_i64), 300..400)
        ) {
            let mut state = BackupState::default();
            let (mut written, mut last) = (0_u64, None::<u64>);
            let mut workers = vec![Worker::default(); 3];
            for (minute, (who, takes, dies, clock)) in events.into_iter().enumerate() {
                let minute = minute as u64;
                let instance = format!("i-{who}");
                if let Some((name, until)) = workers[who].takes.clone() {
                    if dies {
                        workers[who].takes = None;
                    } else if minute >= until {
                        workers[who].takes = None;
                        let done = LastSnapshot {
                            name, store: String::new(), instance, cluster_id: None, revision: 1, compressed_bytes: 1, taken_at: String::new(), cluster_state_problem: None,
                        };
                        if let Some(next) = end_snapshot(&state, done) {
                            prop_assert!(last.is_none_or(|last| minute - last >= 15), "{minute} after {last:?}");
                            (state, written, last) = (next, minute, Some(minute));
                        }
                    }
                    continue;
                }
                let age = |at: u64| Duration::from_mins(minute - at);
                let view = ScheduleView {
                    instance: &instance,
                    leads: who == 0,
                    state_age: Some(age(written)),
                    last_age: last.map(age),
                    interval: INTERVAL,
                };
                if is_due(&view, &state) {
                    let now = OffsetDateTime::UNIX_EPOCH + Duration::from_hours(500_000);
                    let (next, name) = begin_snapshot(&state, &instance, now + time::Duration::seconds(clock));
                    prop_assert!(super::super::is_scheduled(&name));
                    (state, written) = (next, minute);
                    workers[who].takes = Some((name, minute + takes));
                } else {
                    prop_assert!(last.is_some_and(|last| minute - last < 16) || minute - written < 15);
                }
            }
        }
    }

    #[test]
    fn after_failures_an_instance_waits_longer_each_time_but_never_longer_than_the_interval() {
        let mut state = BackupState::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            let (begun, name) = begin_snapshot(&state, "i-1", OffsetDateTime::UNIX_EPOCH);
            state = fail_snapshot(&begun, &name, ("i-1", "full", String::new())).unwrap();
            let due = |minutes: &u64| {
                let view = ScheduleView {
                    instance: "i-2",
                    leads: false,
                    state_age: Some(Duration::from_mins(*minutes)),
                    last_age: Some(Duration::from_hours(9)),
                    interval: INTERVAL,
                };
                is_due(&view, &state)
            };
            waits.extend((0..60).find(due));
        }
        assert_eq!(waits, [1, 2, 4, 8, 15, 15, 15]);
        assert_eq!(
            fail_snapshot(&state, "other", ("i-1", "", String::new())),
            None
        );
    }

    /// A drill that is made more often than a claim lives does not keep the claim of an instance that died.
    #[test]
    fn what_else_is_written_makes_neither_a_claim_nor_a_failure_younger() {
        let claimed = begin_snapshot(&BackupState::default(), "i-1", OffsetDateTime::UNIX_EPOCH).0;
        let name = claimed.taking.as_ref().unwrap().name.clone();
        let failed = (0..5).fold(claimed.clone(), |state, _| BackupState {
            taking: claimed.taking.clone(),
            ..fail_snapshot(&state, &name, ("i-1", "full", String::new())).unwrap()
        });
        let failed = BackupState {
            taking: None,
            ..failed
        };
        for mut state in [claimed.clone(), failed] {
            let mut minutes = 0;
            loop {
                let view = ScheduleView {
                    instance: "i-2",
                    leads: false,
                    state_age: Some(Duration::from_mins(5)),
                    last_age: Some(Duration::from_hours(9)),
                    interval: INTERVAL,
                };
                minutes += 5;
                if is_due(&view, &state) {
                    break;
                }
                state = state.aged(Duration::from_mins(5));
            }
            assert_eq!(minutes, 15);
        }
        let renewed = renew_claim(&claimed.aged(Duration::from_mins(9)), &name);
        assert_eq!(renewed, Some(claimed));
    }

    #[test]
    fn no_interval_is_too_long_to_be_reckoned_with() {
        for seconds in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let mut state = BackupState::default();
            for _ in 0..2 {
                let view = ScheduleView {
                    instance: "i-1",
                    leads: true,
                    state_age: Some(Duration::from_secs(5)),
                    last_age: Some(Duration::from_secs(seconds / 2)),
                    interval: Duration::from_secs(seconds),
                };
                assert!(!is_due(&view, &state));
                let (begun, name) = begin_snapshot(&state, "i-1", OffsetDateTime::UNIX_EPOCH);
                state = fail_snapshot(&begun, &name, ("i-1", "", String::new())).unwrap();
                state.failure.as_mut().unwrap().age_seconds = 0;
            }
        }
    }
}
