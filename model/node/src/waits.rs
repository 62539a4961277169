//! The report of what protokube on a control plane waits for or refuses. It is stored beside the boot report, so that operators also
//! learn about instances that joined long ago.

use crate::report::Status;
use crate::terminal::is_terminal_control;
use serde::{Deserialize, Serialize};

/// Format of [`Waits`].
pub const WAITS_FORMAT: u32 = 1;

/// Limit of the file, bytes. [`Waits::new`] never exceeds it.
pub const WAITS_LIMIT: usize = 256 * 1024;

/// Limit of entries: protokube has about a dozen roles, and the role addons may fail for each addon.
const MOST: usize = 32;

/// Limit of a message, characters.
const MESSAGE: usize = 1500;

/// Limit of a name, characters.
const NAME: usize = 120;

/// Everything that one control plane waits for or refuses. Unknown fields are ignored, because the instance may have a newer
/// release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// [`WAITS_FORMAT`].
    pub format: u32,
    /// Instance id, `i-...`.
    pub instance: String,
    #[serde(default)]
    pub release: String,
    /// Time of writing by the instance's clock, RFC 3339.
    #[serde(default)]
    pub written: String,
    /// Entries, sorted by role; empty if there is no problem.
    #[serde(default)]
    pub waits: Vec<Wait>,
}

/// One condition that a role waits for or refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Role of protokube, as in its log: `etcd-main`, `dns`, ...
    pub role: String,
    /// Part of the role: `member b`, `alarm`, an addon's name; empty for the whole role.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// True if something failed or was refused; false if the role waits for something else.
    #[serde(default)]
    pub failed: bool,
    /// Reason with its causes.
    #[serde(default)]
    pub message: String,
    /// Begin of the condition, RFC 3339. The message may have changed since.
    #[serde(default)]
    pub since: String,
}

impl Wait {
    /// An entry without a begin. Long texts are cut.
    pub fn new(role: &str, about: &str, status: Status, message: &str) -> Self {
        Self {
            role: bounded_text(role, NAME),
            about: bounded_text(about, NAME),
            failed: status == Status::Failed,
            message: bounded_text(message, MESSAGE),
            since: String::new(),
        }
    }

    /// True if both entries are about the same part of the same role.
    pub fn same_thing(&self, other: &Self) -> bool {
        (&self.role, &self.about) == (&other.role, &other.about)
    }

    /// True if both entries have the same subject and the same message.
    pub fn is_same_report(&self, other: &Self) -> bool {
        self.same_thing(other) && (self.failed, &self.message) == (other.failed, &other.message)
    }
}

impl Waits {
    /// The report of an instance. Entries beyond the limit are dropped.
    pub fn new(instance: &str, release: &str, written: &str, waits: Vec<Wait>) -> Self {
        Self {
            format: WAITS_FORMAT,
            instance: bounded_text(instance, NAME),
            release: bounded_text(release, NAME),
            written: bounded_text(written, NAME),
            waits: waits.into_iter().take(MOST).collect(),
        }
    }
}

/// Key of an instance's report, relative to the cluster's base in the state store.
pub fn waits_key(instance: &str) -> String {
    format!("nodes/{instance}.protokube.json")
}

/// Parses the report of an instance, replaces terminal control characters and cuts long texts.
pub fn read_waits(bytes: &[u8], instance: &str) -> Result<Waits, String> {
    if bytes.len() > WAITS_LIMIT {
        return Err(format!("the report has more than {WAITS_LIMIT} bytes"));
    }
    let stored: Waits = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if stored.instance != instance {
        return Err("the report belongs to another instance".to_owned());
    }
    let waits = stored.waits.iter().map(|wait| {
        let status = if wait.failed {
            Status::Failed
        } else {
            Status::Started
        };
        Wait {
            since: bounded_text(&wait.since, NAME),
            ..Wait::new(&wait.role, &wait.about, status, &wait.message)
        }
    });
    Ok(Waits {
        format: stored.format,
        ..Waits::new(
            &stored.instance,
            &stored.release,
            &stored.written,
            waits.collect(),
        )
    })
}

/// The first characters of a text, with terminal control characters replaced by blanks.
pub fn bounded_text(text: &str, most: usize) -> String {
    let plain = |one: char| if is_terminal_control(one) { ' ' } else { one };
    text.chars().take(most).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_roles_say_is_read_back_and_is_no_larger_than_what_is_read(
            waits in proptest::collection::vec((".{0,4}", ".{0,200}", any::<bool>(), ".{0,4}"), 0..40),
            times in 1..600_usize,
        ) {
            let wait = |(role, about, failed, message): &(String, String, bool, String)| {
                let status = if *failed { Status::Failed } else { Status::Started };
                Wait::new(role, about, status, &message.repeat(times))
            };
            let waits = Waits::new("i-1", "0.1.0", "2030-01-01T00:00:00Z", waits.iter().map(wait).collect());
            let bytes = serde_json::to_vec_pretty(&waits).unwrap();
            prop_assert!(bytes.len() <= WAITS_LIMIT, "{}", bytes.len());
            prop_assert_eq!(read_waits(&bytes, "i-1"), Ok(waits));
        }
    }

    #[test]
    fn the_longest_that_roles_can_say_is_read() {
        // Four bytes in UTF-8, the most that a character has; quotes have two in JSON.
        let long = "🙂".repeat(2 * MESSAGE);
        let all = vec![Wait::new(&long, &long, Status::Failed, &long); 2 * MOST];
        let bytes = serde_json::to_vec_pretty(&Waits::new("i-1", &long, &long, all)).unwrap();
        assert_eq!(read_waits(&bytes, "i-1").unwrap().waits.len(), MOST);
    }

    #[test]
    fn what_another_hand_wrote_is_bounded_and_steers_no_terminal() {
        let text = r#"{"format":2,"instance":"i-1","new":{},"waits":[{"role":"etcd-main","message":"no\u001b[2Jlog","new":1}]}"#;
        let waits = read_waits(text.as_bytes(), "i-1").unwrap();
        assert_eq!(waits.waits[0].message, "no [2Jlog");
        assert!(read_waits(text.as_bytes(), "i-2").is_err());
        let long = text.replace("log", &"log".repeat(WAITS_LIMIT / 4));
        let waits = read_waits(long.as_bytes(), "i-1").unwrap();
        assert_eq!(waits.waits[0].message.chars().count(), MESSAGE);
        let longer = text.replace("log", &"log".repeat(WAITS_LIMIT));
        assert!(read_waits(longer.as_bytes(), "i-1").is_err());
    }
}
