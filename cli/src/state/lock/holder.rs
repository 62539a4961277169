//! The holder of a lock, as stored: for messages, and to find out whether its process still runs.

use crate::env;
use node::duration::duration_text;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Lease of a lock that has none stored.
const DEFAULT_LIFE: Duration = Duration::from_secs(30);

/// The content of a lock. Every version of kctl must read those of all others: fields are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// `user@host`.
    pub who: String,
    /// Host name, for messages.
    pub host: String,
    /// Process id on that host.
    pub process: u32,
    /// The command, without its options.
    pub what: String,
    /// When it was acquired, by the holder's clock, in RFC 3339.
    #[serde(default)]
    pub since: String,
    /// Number of renewals, so that each has a different version.
    pub renewed: u64,
    /// The lease in milliseconds.
    #[serde(default = "default_life")]
    life_ms: u64,
    /// Identifies the process beyond its id.
    #[serde(default)]
    place: ProcessIdentity,
}

/// Identifies a process across hosts and reboots: boot id, pid namespace and start time. Empty: unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessIdentity {
    boot: String,
    namespace: String,
    began: String,
}

fn default_life() -> u64 {
    to_millis(DEFAULT_LIFE)
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl LockHolder {
    /// A new holder for this process.
    pub fn this_process(what: &str, life: Duration) -> Self {
        let host = host_name();
        let user = env::get_variable(env::USER).unwrap_or_else(|| "somebody".to_owned());
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
            life_ms: to_millis(life),
            place: ProcessIdentity {
                began: process_start(process).unwrap_or_default(),
                ..ProcessIdentity::of_this_host()
            },
        }
    }

    /// The same holder with one more renewal.
    #[must_use]
    pub fn renewed_once(&self) -> Self {
        Self {
            renewed: self.renewed + 1,
            ..self.clone()
        }
    }

    /// True if both are the same acquisition, renewed or not.
    pub fn is_same_lock(&self, other: &Self) -> bool {
        (self.process, &self.since, &self.place) == (other.process, &other.since, &other.place)
    }

    pub fn life(&self) -> Duration {
        Duration::from_millis(self.life_ms)
    }

    /// True if the process is known to have ended: it ran on this host since its last boot and no longer exists. Host names and
    /// process ids are not unique, so an unknown process counts as running.
    pub fn has_ended(&self) -> bool {
        let here = ProcessIdentity::of_this_host();
        let known = !here.boot.is_empty() && !here.namespace.is_empty();
        let ours = (&self.place.boot, &self.place.namespace) == (&here.boot, &here.namespace);
        known && ours && process_start(self.process).as_ref() != Some(&self.place.began)
    }

    /// How long the lock has been held, by the clocks of both hosts; `None` without a start time.
    pub fn held_for(&self, now: OffsetDateTime) -> Option<Duration> {
        let since = OffsetDateTime::parse(&self.since, &Rfc3339).ok()?;
        Some((now - since).try_into().unwrap_or_default())
    }

    /// `jane@laptop (kctl update) since 2026-11-21T12:03:04Z (2m10s)`.
    pub fn describe(&self, now: OffsetDateTime) -> String {
        let Self { who, what, .. } = self;
        let since = self.since_second();
        let held = self
            .held_for(now)
            .map(|held| format!(" ({})", duration_words(held)));
        let since = since.map(|since| format!(" since {since}{}", held.unwrap_or_default()));
        format!("{who} (kctl {what}){}", since.unwrap_or_default())
    }

    /// When it was acquired, in whole seconds.
    pub fn since_second(&self) -> Option<String> {
        let since = OffsetDateTime::parse(&self.since, &Rfc3339).ok()?;
        since.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()
    }
}

/// A duration as text, in whole seconds.
pub fn duration_words(time: Duration) -> String {
    duration_text(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

impl ProcessIdentity {
    /// Identity of a process on this host, without its start time.
    fn of_this_host() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.display().to_string(),
            began: String::new(),
        }
    }
}

/// Start time of a running process on this host, in ticks since boot; `None` if there is none. A zombie does not count.
fn process_start(process: u32) -> Option<String> {
    let line = std::fs::read_to_string(Path::new("/proc").join(format!("{process}/stat"))).ok()?;
    // The name may contain any character, also a closing parenthesis.
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| began.to_owned())
}

/// Name of this host, for messages.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/etc/hostname")
        .or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    name.map_or_else(
        |_| "an unnamed host".to_owned(),
        |name| name.trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(30);

    #[test]
    fn gone_is_only_what_is_known_to_have_ended() {
        let living = LockHolder::this_process("update", LIFE);
        assert!(!living.has_ended());
        let with = |change: fn(&mut LockHolder)| {
            let mut holder = living.clone();
            change(&mut holder);
            holder.has_ended()
        };
        assert!(with(|holder| holder.process = u32::MAX));
        assert!(
            with(|holder| holder.place.began = "1".to_owned()),
            "the id is another's now"
        );
        let elsewhere = |holder: &mut LockHolder| holder.process = u32::MAX;
        let mut other_machine = living.clone();
        elsewhere(&mut other_machine);
        other_machine.place.boot = "another".to_owned();
        let mut other_container = living.clone();
        elsewhere(&mut other_container);
        other_container.place.namespace = "pid:[1]".to_owned();
        let mut says_nothing = living.clone();
        elsewhere(&mut says_nothing);
        says_nothing.place = ProcessIdentity::default();
        for unknown in [other_machine, other_container, says_nothing] {
            assert!(!unknown.has_ended(), "{unknown:?}");
        }
    }

    #[test]
    fn a_process_that_was_killed_is_gone_before_its_parent_has_heard_of_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut holder = LockHolder::this_process("update", LIFE);
        holder.process = child.id();
        holder.place.began = process_start(child.id()).unwrap();
        assert!(!holder.has_ended());
        child.kill().unwrap();
        while !holder.has_ended() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(holder.has_ended());
    }

    #[test]
    fn locks_of_earlier_versions_are_read() {
        let old =
            r#"{"who":"jane@laptop","host":"laptop","process":7,"what":"update","renewed":3}"#;
        let holder: LockHolder = serde_json::from_str(old).unwrap();
        assert_eq!(holder.life(), DEFAULT_LIFE);
        assert_eq!(
            holder.describe(OffsetDateTime::UNIX_EPOCH),
            "jane@laptop (kctl update)"
        );
        assert!(!holder.has_ended());
    }
}
