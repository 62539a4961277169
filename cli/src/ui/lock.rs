//! A cluster's lock for people.

use crate::state::{Seen, Standing, spoken};
use std::fmt::Write;
use std::time::Duration;
use time::OffsetDateTime;

/// What is known of a lock, a line each.
pub fn table(cluster: &str, seen: Option<&Seen>, now: OffsetDateTime) -> String {
    let Some(seen) = seen else {
        return format!("{cluster} is not locked\n");
    };
    let mut text = format!("{cluster} is locked\n\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<9}{value}");
    };
    if let Some(holder) = &seen.holder {
        line("by", &format!("{}, process {}", holder.who, holder.process));
        line("for", &format!("kctl {}", holder.what));
        if let Some(since) = holder.since_words() {
            let held = holder.held(now).map(spoken).unwrap_or_default();
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
    match seen.age {
        Some(age) => line("age", &format!("{} by the store's clock", spoken(age))),
        None => line("age", "not told by the store"),
    }
    line("state", &state(seen));
    text
}

fn state(seen: &Seen) -> String {
    match seen.standing() {
        Standing::Alive(Some(left)) => format!(
            "alive: expires in {}, unless it is renewed",
            spoken(left + Duration::from_secs(1))
        ),
        Standing::Alive(None) => "alive, as far as can be told".to_owned(),
        Standing::Expired => format!(
            "expired: not renewed for longer than {}; the next command takes it over",
            spoken(seen.life())
        ),
        Standing::Dead => {
            "dead: its process on this machine has ended; the next command here takes it over"
                .to_owned()
        }
    }
}
