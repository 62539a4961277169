//! The claim on the upkeep of an etcd cluster: an object in the state store, so that one instance at a time defragments its member.
//! It protects availability only: etcd loses no data if two members are defragmented at the same time, but may lose its quorum meanwhile.

use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Format of [`UpkeepClaim`].
const FORMAT: u32 = 1;

/// Limit of the object, bytes.
pub const UPKEEP_CLAIM_LIMIT: usize = 4 * 1024;

/// A claim counts no longer than this: twice the time after which protokube gives up a defragmentation.
const LIFE: Duration = Duration::from_mins(10);

/// Who takes a member of the etcd cluster out of service for a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpkeepClaim {
    /// 1.
    pub format: u32,
    /// Instance id, `i-...`.
    pub instance: String,
    /// Time of the claim by the instance's clock, RFC 3339.
    pub at: String,
    /// Fields of another release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Key of the claim of an etcd cluster, relative to the cluster's base in the state store.
pub fn upkeep_claim_key(etcd: &str) -> String {
    format!("etcd/{etcd}/upkeep.json")
}

impl UpkeepClaim {
    /// The claim of an instance.
    pub fn new(instance: &str, now: OffsetDateTime) -> Self {
        Self {
            format: FORMAT,
            instance: instance.to_owned(),
            at: now.format(&Rfc3339).unwrap_or_default(),
            unknown: UnknownFields::new(),
        }
    }

    /// Parses a claim; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// True if another one may take its place: it is of the same instance, whose protokube has restarted since, or it is old.
    /// `age` is the time since it was written, by the clock of the store; only without it the clock of the instance counts.
    pub fn gives_way(&self, other: &Self, age: Option<Duration>, now: OffsetDateTime) -> bool {
        let own = self.instance == other.instance;
        let written = || OffsetDateTime::parse(&self.at, &Rfc3339).ok();
        let by_clock = || Duration::try_from(now - written()?).ok();
        own || age.or_else(by_clock).is_none_or(|age| age >= LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    const AT: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);

    proptest! {
        #[test]
        fn a_claim_gives_way_to_its_own_instance_at_once_and_to_others_when_it_is_old(
            age in proptest::option::of(0..1200_u64),
            clock in 0..1200_i64,
            same_instance: bool,
        ) {
            let held = UpkeepClaim::new("i-1", AT);
            let instance = if same_instance { "i-1" } else { "i-2" };
            let now = AT + time::Duration::seconds(clock);
            let other = UpkeepClaim::new(instance, now);
            let gives_way = held.gives_way(&other, age.map(Duration::from_secs), now);
            let old = age.unwrap_or(clock.unsigned_abs()) >= LIFE.as_secs();
            prop_assert_eq!(gives_way, same_instance || old);
            let stored = held.to_json();
            prop_assert!(stored.len() < UPKEEP_CLAIM_LIMIT);
            prop_assert_eq!(UpkeepClaim::parse("claim", stored.as_bytes()).unwrap(), held);
        }
    }

    #[test]
    fn a_claim_of_a_release_that_names_the_role_counts_too() {
        let text = r#"{"format":1,"instance":"i-1","role":"commands","at":"2030-01-01T12:00:00Z"}"#;
        let held = UpkeepClaim::parse("claim", text.as_bytes()).unwrap();
        let other = UpkeepClaim::new("i-2", AT);
        assert!(!held.gives_way(&other, Some(Duration::ZERO), AT));
        assert!(held.gives_way(&other, Some(LIFE), AT));
    }
}
