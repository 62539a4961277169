//! Commands to the etcd member of one instance, as objects in the state store: `kctl etcd` writes them, protokube on the instance
//! claims, executes and answers them. They need no Kubernetes API. These functions decide who may do what with one.

use node::digest::to_hex;
use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use node::waits::bounded_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Format of [`EtcdCommand`].
pub const COMMAND_FORMAT: u32 = 1;

/// Limit of the object, bytes. [`EtcdCommand::to_json`] stays far below it.
pub const COMMAND_LIMIT: usize = 16 * 1024;

/// Prefix of the keys of all commands, relative to the cluster's base in the state store.
pub const COMMANDS_PREFIX: &str = "etcd/commands/";

/// No command waits longer than this, whatever it says of itself.
const LONGEST_LIFE: Duration = Duration::from_hours(1);

/// Time after its last change after which a command is deleted.
pub const COMMAND_KEPT: Duration = Duration::from_hours(24);

/// Limit of an answer, characters.
const MESSAGE: usize = 1500;

/// Answer to a claim that the instance has made, and of which its protokube knows nothing.
pub const LOST_CLAIM: &str =
    "protokube restarted meanwhile; look at kctl etcd status and ask again";

/// A command to the member of an etcd cluster on one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdCommand {
    /// [`COMMAND_FORMAT`].
    pub format: u32,
    /// The etcd cluster: `main`, `events`.
    pub etcd: String,
    /// The instance whose protokube executes it, `i-...`.
    pub instance: String,
    /// What to do.
    pub verb: Verb,
    /// `user@host`.
    pub asked_by: String,
    /// Time of asking by the asker's clock, RFC 3339.
    pub asked_at: String,
    /// From then on it is not begun, by the asker's clock, RFC 3339.
    pub expires_at: String,
    /// Progress.
    pub state: CommandState,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What a command asks for. One with parameters that this release does not know is [`Verb::Unknown`]: they may change its meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Verb {
    /// Disarms an alarm of the etcd cluster, if what raised it is over.
    Disarm {
        /// `CORRUPT`. Older releases of kctl also ask for `NOSPACE`, which protokube ends by itself.
        alarm: String,
    },
    /// Takes a snapshot, verifies it and stores it under this name in the backup store.
    Snapshot {
        /// Name of the snapshot; it is never deleted by itself unless it is that of a scheduled one.
        name: String,
    },
    /// Lets a scratch etcd read a stored snapshot, and says what is in it.
    VerifySnapshot {
        /// Name of the snapshot.
        name: String,
    },
    /// A verb of another release.
    #[serde(untagged)]
    Unknown(Value),
}

/// Progress of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CommandState {
    /// Nobody has begun.
    Waiting,
    /// An instance executes it.
    Claimed {
        /// The instance.
        instance: String,
        /// Time by the instance's clock, RFC 3339.
        at: String,
    },
    /// Executed.
    Done {
        /// Time by the instance's clock, RFC 3339.
        at: String,
        /// What was done.
        message: String,
    },
    /// Not executed, or not to its end.
    Failed {
        /// Time by the instance's clock, RFC 3339.
        at: String,
        /// Why.
        reason: String,
    },
}

/// What an instance has to do with a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandStep {
    /// Write this claim under the condition that the command is unchanged, and execute the command only if that succeeds.
    Claim(Box<EtcdCommand>),
    /// Write this answer: the instance claimed the command, and does not know how far it came.
    Answer(Box<EtcdCommand>),
    /// Nothing, now and until the object changes.
    Leave,
}

/// Id of a command: sorted by time, and different from others of the same second.
pub fn command_id(now: OffsetDateTime, random: [u8; 4]) -> String {
    let stamp = format_description!("[year][month][day]T[hour][minute][second]Z");
    let stamp = now.to_offset(time::UtcOffset::UTC).format(stamp);
    format!("{}-{}", stamp.unwrap_or_default(), to_hex(&random))
}

/// Key of a command, relative to the cluster's base in the state store.
pub fn command_key(id: &str) -> String {
    format!("{COMMANDS_PREFIX}{id}.json")
}

impl EtcdCommand {
    /// A command that waits this long for its instance.
    pub fn new(
        etcd: &str,
        instance: &str,
        verb: Verb,
        asked_by: &str,
        now: OffsetDateTime,
        life: Duration,
    ) -> Self {
        Self {
            format: COMMAND_FORMAT,
            etcd: etcd.to_owned(),
            instance: instance.to_owned(),
            verb,
            asked_by: asked_by.to_owned(),
            asked_at: time_text(now),
            expires_at: time_text(now + life),
            state: CommandState::Waiting,
            unknown: UnknownFields::new(),
        }
    }

    /// Parses a command; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// True if nobody may begin it any more. `age` is the time since it was written, by the clock of the store: both times in the
    /// command are of the asker's clock, so their difference is right even if that clock is wrong. Only if the store does not say
    /// an age, the clock of the instance counts.
    pub fn is_expired(&self, age: Option<Duration>, now: OffsetDateTime) -> bool {
        let parse = |text| OffsetDateTime::parse(text, &Rfc3339).ok();
        let times = parse(&self.asked_at).zip(parse(&self.expires_at));
        // A command without valid times is never begun.
        let Some((asked, expires)) = times else {
            return true;
        };
        let life = Duration::try_from(expires - asked).unwrap_or_default();
        match age {
            Some(age) => age >= life.min(LONGEST_LIFE),
            None => now >= expires || now >= asked + LONGEST_LIFE,
        }
    }

    /// What this instance has to do with the command, which its protokube does not execute at the moment.
    pub fn decide_step(
        &self,
        instance: &str,
        age: Option<Duration>,
        now: OffsetDateTime,
    ) -> CommandStep {
        match &self.state {
            CommandState::Waiting if self.instance == instance && !self.is_expired(age, now) => {
                let state = CommandState::Claimed {
                    instance: instance.to_owned(),
                    at: time_text(now),
                };
                CommandStep::Claim(Box::new(self.with_state(state)))
            }
            CommandState::Claimed { instance: by, .. } if by == instance => {
                CommandStep::Answer(Box::new(self.failed(LOST_CLAIM, now)))
            }
            _ => CommandStep::Leave,
        }
    }

    /// The command as executed.
    #[must_use]
    pub fn done(&self, message: &str, now: OffsetDateTime) -> Self {
        self.with_state(CommandState::Done {
            at: time_text(now),
            message: bounded_text(message, MESSAGE),
        })
    }

    /// The command as failed.
    #[must_use]
    pub fn failed(&self, reason: &str, now: OffsetDateTime) -> Self {
        self.with_state(CommandState::Failed {
            at: time_text(now),
            reason: bounded_text(reason, MESSAGE),
        })
    }

    fn with_state(&self, state: CommandState) -> Self {
        Self {
            state,
            ..self.clone()
        }
    }
}

impl Verb {
    /// For messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Disarm { alarm } => format!("disarm the alarm {}", bounded_text(alarm, 120)),
            Self::Snapshot { name } => format!("take the snapshot {}", bounded_text(name, 120)),
            Self::VerifySnapshot { name } => {
                format!("verify the snapshot {}", bounded_text(name, 120))
            }
            Self::Unknown(other) => bounded_text(&other.to_string(), 120),
        }
    }
}

fn time_text(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    const ASKED: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);
    const LIFE: Duration = Duration::from_mins(2);

    fn snapshot_on(instance: &str) -> EtcdCommand {
        let name = "before-upgrade".to_owned();
        let verb = Verb::Snapshot { name };
        EtcdCommand::new("main", instance, verb, "me@host", ASKED, LIFE)
    }

    fn any_state() -> impl Strategy<Value = CommandState> {
        let at = || "2030-01-01T12:00:00Z".to_owned();
        prop_oneof![
            Just(CommandState::Waiting),
            "i-[ab]".prop_map(move |instance| CommandState::Claimed { instance, at: at() }),
            Just(CommandState::Done {
                at: at(),
                message: String::new()
            }),
            Just(CommandState::Failed {
                at: at(),
                reason: String::new()
            }),
        ]
    }

    proptest! {
        #[test]
        fn only_its_target_claims_a_command_and_only_while_it_waits_and_has_not_expired(
            state in any_state(),
            target in "i-[ab]",
            instance in "i-[ab]",
            age in proptest::option::of(0..300_u64),
            ahead in -600..600_i64,
        ) {
            let command = EtcdCommand { state, ..snapshot_on(&target) };
            let (age, now) = (age.map(Duration::from_secs), ASKED + time::Duration::seconds(ahead));
            let fresh = age.map_or(ahead < 120, |age| age < LIFE);
            match command.decide_step(&instance, age, now) {
                CommandStep::Claim(claimed) => {
                    let waits = command.state == CommandState::Waiting;
                    prop_assert!(fresh && instance == target && waits);
                    // The claim is claimed by nobody, and executed by no other look at it.
                    for other in ["i-a", "i-b"] {
                        let again = claimed.decide_step(other, Some(Duration::ZERO), now);
                        let claims = matches!(again, CommandStep::Claim(_));
                        prop_assert!(!claims);
                    }
                }
                CommandStep::Answer(answered) => {
                    let own = matches!(&command.state, CommandState::Claimed { instance: by, .. } if *by == instance);
                    let failed = matches!(&answered.state, CommandState::Failed { .. });
                    prop_assert!(own && failed);
                }
                CommandStep::Leave => {
                    let due = fresh && instance == target && command.state == CommandState::Waiting;
                    let lost = matches!(&command.state, CommandState::Claimed { instance: by, .. } if *by == instance);
                    prop_assert!(!due && !lost);
                }
            }
        }

        #[test]
        fn the_clock_of_the_instance_does_not_count_if_the_store_says_an_age(
            age in 0..300_u64,
            ahead in -100_000..100_000_i64,
        ) {
            let now = ASKED + time::Duration::seconds(ahead);
            let expired = snapshot_on("i-a").is_expired(Some(Duration::from_secs(age)), now);
            prop_assert_eq!(expired, age >= LIFE.as_secs());
        }

        #[test]
        fn answers_of_any_length_can_be_read(text in ".{0,200}", times in 1..200_usize) {
            let answered = snapshot_on("i-a").failed(&text.repeat(times), ASKED);
            let json = answered.to_json();
            prop_assert!(json.len() <= COMMAND_LIMIT, "{}", json.len());
            prop_assert_eq!(EtcdCommand::parse("c", json.as_bytes()).unwrap(), answered);
        }

        #[test]
        fn ids_sort_by_time(seconds in 0..100_000_000_i64, later in 1..1000_i64, random: [u8; 4], other: [u8; 4]) {
            let first = ASKED + time::Duration::seconds(seconds);
            let second = first + time::Duration::seconds(later);
            prop_assert!(command_id(first, random) < command_id(second, other));
        }
    }

    #[test]
    fn nothing_waits_longer_than_an_hour_and_nothing_without_times_is_begun() {
        let mut command = snapshot_on("i-a");
        command.expires_at = "2040-01-01T00:00:00Z".to_owned();
        let minutes = |count| Some(Duration::from_mins(count));
        assert!(!command.is_expired(minutes(59), ASKED));
        assert!(command.is_expired(minutes(60), ASKED));
        assert!(command.is_expired(None, ASKED + Duration::from_hours(1)));
        command.expires_at = "soon".to_owned();
        assert!(command.is_expired(minutes(0), ASKED));
        command.expires_at = "2020-01-01T00:00:00Z".to_owned();
        assert!(command.is_expired(minutes(0), ASKED));
    }

    #[test]
    fn what_another_release_asks_for_is_kept_and_not_mistaken_for_what_is_known() {
        let text = |verb: &str| {
            format!(
                r#"{{"format":1,"etcd":"main","instance":"i-a","verb":{verb},"askedBy":"me@host","askedAt":"2030-01-01T12:00:00Z",
                "expiresAt":"2030-01-01T12:02:00Z","state":"waiting","later":[1]}}"#
            )
        };
        let parse = |verb: &str| EtcdCommand::parse("c", text(verb).as_bytes()).unwrap();
        let name = "x".to_owned();
        let snapshot = parse(r#"{"snapshot":{"name":"x"}}"#);
        assert_eq!(snapshot.verb, Verb::Snapshot { name });
        let alarm = "CORRUPT".to_owned();
        let disarmed = parse(r#"{"disarm":{"alarm":"CORRUPT"}}"#);
        assert_eq!(disarmed.verb, Verb::Disarm { alarm });
        for other in [
            r#"{"compact":{"revision":4}}"#,
            r#"{"snapshot":{"name":"x","dryRun":true}}"#,
            r#""pause""#,
            // Verbs of earlier releases.
            r#"{"defragment":{}}"#,
            r#"{"moveLeader":{"to":"etcd-b"}}"#,
        ] {
            let command = parse(other);
            assert!(matches!(command.verb, Verb::Unknown(_)), "{other}");
            let stored: Value = serde_json::from_str(&command.to_json()).unwrap();
            let given: Value = serde_json::from_str(&text(other)).unwrap();
            assert_eq!(stored, given);
        }
    }

    #[test]
    fn a_command_of_another_format_is_refused() {
        let mut command = snapshot_on("i-a");
        command.format = COMMAND_FORMAT + 1;
        assert!(EtcdCommand::parse("c", command.to_json().as_bytes()).is_err());
    }
}
