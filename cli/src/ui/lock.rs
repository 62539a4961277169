//! A cluster's lock as text.

use crate::state::{LockState, ObservedLock, duration_words};
use std::fmt::Write;
use std::time::Duration;
use time::OffsetDateTime;

/// Describes a lock, one property per line.
pub fn lock_table(cluster: &str, lock: Option<&ObservedLock>, now: OffsetDateTime) -> String {
    let Some(lock) = lock else {
        return format!("{cluster} is not locked\n");
    };
    let mut text = format!("{cluster} is locked\n\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<9}{value}");
    };
    if let Some(holder) = &lock.holder {
        line("by", &format!("{}, process {}", holder.who, holder.process));
        line("for", &format!("kctl {}", holder.what));
        if let Some(since) = holder.since_second() {
            let held = holder.held_for(now).map(duration_words).unwrap_or_default();
            line("since", &format!("{since} ({held})"));
        }
        let times = match holder.renewed {
            0 => "never".to_owned(),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        line("renewed", &times);
    } else {
        line("by", "somebody: it cannot be read");
    }
    match lock.age {
        Some(age) => line(
            "age",
            &format!("{} by the store's clock", duration_words(age)),
        ),
        None => line("age", "unknown"),
    }
    line("state", &state_text(lock));
    text
}

fn state_text(seen: &ObservedLock) -> String {
    match seen.state() {
        LockState::Alive(Some(left)) => format!(
            "alive: expires in {}, unless it is renewed",
            duration_words(left + Duration::from_secs(1))
        ),
        LockState::Alive(None) => "alive, as far as kctl can tell".to_owned(),
        LockState::Expired => format!(
            "expired: not renewed for longer than {}; the next command takes it over",
            duration_words(seen.life())
        ),
        LockState::Dead => {
            "dead: its process on this computer has ended; the next command here takes it over"
                .to_owned()
        }
    }
}
