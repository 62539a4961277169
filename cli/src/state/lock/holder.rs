//! Who holds a lock: for people, and for telling whether that process still lives.

use crate::env;
use node::duration::duration_text;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What a lock says that does not say how long it lives.
const DEFAULT_LIFE: Duration = Duration::from_secs(30);

/// Who holds a lock. Written by every version of kctl and read by every other: fields are added only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// `user@host`.
    pub who: String,
    /// The machine's name, for people.
    pub host: String,
    /// The process id there.
    pub process: u32,
    /// The command, without its options.
    pub what: String,
    /// When it was taken, by the holder's clock, in RFC 3339.
    #[serde(default)]
    pub since: String,
    /// Renewals so far, so that each has another version.
    pub renewed: u64,
    /// After so many milliseconds without a renewal it is nobody's.
    #[serde(default = "default_life")]
    life_ms: u64,
    /// What the process id means.
    #[serde(default)]
    place: Place,
}

/// Which process an id means: of which boot of which machine, in which namespace, begun when. Empty: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    boot: String,
    namespace: String,
    began: String,
}

fn default_life() -> u64 {
    millis(DEFAULT_LIFE)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Holder {
    /// This process, from now on.
    pub fn this(what: &str, life: Duration) -> Self {
        let host = hostname();
        let user = env::value(env::USER).unwrap_or_else(|| "somebody".to_owned());
        let process = std::process::id();
        Self {
            who: format!("{user}@{host}"),
            host,
            process,
            what: what.to_owned(),
            since: OffsetDateTime::now_utc()
                .format(&Rfc3339)
                .unwrap_or_default(),
            renewed: 0,
            life_ms: millis(life),
            place: Place {
                began: began(process).unwrap_or_default(),
                ..Place::here()
            },
        }
    }

    /// The same, renewed once more.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            renewed: self.renewed + 1,
            ..self.clone()
        }
    }

    /// True if it is the same holding, renewed or not.
    pub fn is(&self, other: &Self) -> bool {
        (self.process, &self.since, &self.place) == (other.process, &other.since, &other.place)
    }

    /// After so long without a renewal the lock is nobody's.
    pub fn life(&self) -> Duration {
        Duration::from_millis(self.life_ms)
    }

    /// True if it is known to have ended: a process of this machine, since it booted, that is no more. Neither names
    /// of machines nor ids of processes are unique; what is not known lives.
    pub fn is_gone(&self) -> bool {
        let here = Place::here();
        let known = !here.boot.is_empty() && !here.namespace.is_empty();
        let ours = (&self.place.boot, &self.place.namespace) == (&here.boot, &here.namespace);
        known && ours && began(self.process).as_ref() != Some(&self.place.began)
    }

    /// How long it has been held, by the clocks of both machines; `None` if it does not say.
    pub fn held(&self, now: OffsetDateTime) -> Option<Duration> {
        let since = OffsetDateTime::parse(&self.since, &Rfc3339).ok()?;
        Some((now - since).try_into().unwrap_or_default())
    }

    /// `jane@laptop (kctl update) since 2026-11-21T12:03:04Z (2m10s)`.
    pub fn words(&self, now: OffsetDateTime) -> String {
        let Self { who, what, .. } = self;
        let since = self.since_words();
        let held = self.held(now).map(|held| format!(" ({})", spoken(held)));
        let since = since.map(|since| format!(" since {since}{}", held.unwrap_or_default()));
        format!("{who} (kctl {what}){}", since.unwrap_or_default())
    }

    /// When it was taken, in whole seconds.
    pub fn since_words(&self) -> Option<String> {
        let since = OffsetDateTime::parse(&self.since, &Rfc3339).ok()?;
        since.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()
    }
}

/// A time span in words.
pub fn spoken(time: Duration) -> String {
    duration_text(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

impl Place {
    /// Of this process, but for when it began.
    fn here() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.display().to_string(),
            began: String::new(),
        }
    }
}

/// When a living process of this machine began, in ticks since the boot; `None`: there is none. One that was killed
/// and that its parent has not heard of yet is none either.
fn began(process: u32) -> Option<String> {
    let line = std::fs::read_to_string(Path::new("/proc").join(format!("{process}/stat"))).ok()?;
    // The name may hold anything, a closing parenthesis too.
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| began.to_owned())
}

/// This machine's name, for people.
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/etc/hostname")
        .or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    name.map_or_else(|_| "a machine".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(30);

    #[test]
    fn gone_is_only_what_is_known_to_have_ended() {
        let living = Holder::this("update", LIFE);
        assert!(!living.is_gone());
        let with = |change: fn(&mut Holder)| {
            let mut holder = living.clone();
            change(&mut holder);
            holder.is_gone()
        };
        assert!(with(|holder| holder.process = u32::MAX));
        assert!(
            with(|holder| holder.place.began = "1".to_owned()),
            "the id is another's now"
        );
        let elsewhere = |holder: &mut Holder| holder.process = u32::MAX;
        let mut other_machine = living.clone();
        elsewhere(&mut other_machine);
        other_machine.place.boot = "another".to_owned();
        let mut other_container = living.clone();
        elsewhere(&mut other_container);
        other_container.place.namespace = "pid:[1]".to_owned();
        let mut says_nothing = living.clone();
        elsewhere(&mut says_nothing);
        says_nothing.place = Place::default();
        for unknown in [other_machine, other_container, says_nothing] {
            assert!(!unknown.is_gone(), "{unknown:?}");
        }
    }

    #[test]
    fn a_process_that_was_killed_is_gone_before_its_parent_has_heard_of_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut holder = Holder::this("update", LIFE);
        holder.process = child.id();
        holder.place.began = began(child.id()).unwrap();
        assert!(!holder.is_gone());
        child.kill().unwrap();
        while !holder.is_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(holder.is_gone());
    }

    #[test]
    fn locks_of_earlier_versions_are_read() {
        let old =
            r#"{"who":"jane@laptop","host":"laptop","process":7,"what":"update","renewed":3}"#;
        let holder: Holder = serde_json::from_str(old).unwrap();
        assert_eq!(holder.life(), DEFAULT_LIFE);
        assert_eq!(
            holder.words(OffsetDateTime::UNIX_EPOCH),
            "jane@laptop (kctl update)"
        );
        assert!(!holder.is_gone());
    }
}
