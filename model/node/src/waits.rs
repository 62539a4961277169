//! What protokube on a control plane waits for or refuses, as it leaves it in the state store beside the machine's boot report:
//! so that operators of a machine that joined long ago learn it too.

use crate::report::Status;
use crate::terminal::steers;
use serde::{Deserialize, Serialize};

/// The format of [`Waits`].
pub const WAITS_FORMAT: u32 = 1;

/// The largest file that is read, bytes; none that [`Waits::of`] makes is larger.
pub const WAITS_LIMIT: usize = 256 * 1024;

/// Entries at most: protokube has some dozen roles, and the addons role may fail at each addon.
const MOST: usize = 32;

/// How much of a message is kept, in characters.
const MESSAGE: usize = 1500;

/// How much of a name is kept, in characters.
const NAME: usize = 120;

/// All that one control plane waits for or refuses. Fields that a reader does not know are passed over: the machine may be of a
/// newer release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// [`WAITS_FORMAT`].
    pub format: u32,
    /// `i-...`.
    pub instance: String,
    /// protokube's version.
    #[serde(default)]
    pub release: String,
    /// When this was written, RFC 3339, by the machine's clock.
    #[serde(default)]
    pub written: String,
    /// By role; empty once all is well.
    #[serde(default)]
    pub waits: Vec<Wait>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// protokube's role, as its console names it: `etcd-main`, `dns`, ...
    pub role: String,
    /// What of the role's: `member b`, `alarm`, an addon's name; empty: all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// True if it failed or was refused; else the role waits for what somebody else brings.
    #[serde(default)]
    pub failed: bool,
    /// Why, with its causes.
    #[serde(default)]
    pub message: String,
    /// Since when the role has not been well there, RFC 3339: the message may have been another at first.
    #[serde(default)]
    pub since: String,
}

impl Wait {
    /// One of that status. What is too long for a report is cut.
    pub fn new(role: &str, about: &str, status: Status, message: &str) -> Self {
        Self {
            role: text(role, NAME),
            about: text(about, NAME),
            failed: status == Status::Failed,
            message: text(message, MESSAGE),
            since: String::new(),
        }
    }

    /// True of the same thing, whatever is said of it.
    pub fn same_thing(&self, other: &Self) -> bool {
        (&self.role, &self.about) == (&other.role, &other.about)
    }

    /// True if the same is said of the same thing.
    pub fn says_as(&self, other: &Self) -> bool {
        self.same_thing(other) && (self.failed, &self.message) == (other.failed, &other.message)
    }
}

impl Waits {
    /// Those of a machine, as many as a report has.
    pub fn of(instance: &str, release: &str, written: &str, waits: Vec<Wait>) -> Self {
        Self {
            format: WAITS_FORMAT,
            instance: text(instance, NAME),
            release: text(release, NAME),
            written: text(written, NAME),
            waits: waits.into_iter().take(MOST).collect(),
        }
    }
}

/// Key of it, relative to the cluster's base in the state store.
pub fn waits_key(instance: &str) -> String {
    format!("nodes/{instance}.protokube.json")
}

/// Reads what that instance left. It is shown on operators' terminals: nothing in it steers them, or is longer than a report may have.
pub fn read_waits(bytes: &[u8], instance: &str) -> Result<Waits, String> {
    if bytes.len() > WAITS_LIMIT {
        return Err(format!("it has more than {WAITS_LIMIT} bytes"));
    }
    let said: Waits = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if said.instance != instance {
        return Err("it is another machine's".to_owned());
    }
    let waits = said.waits.iter().map(|wait| {
        let status = if wait.failed {
            Status::Failed
        } else {
            Status::Started
        };
        Wait {
            since: text(&wait.since, NAME),
            ..Wait::new(&wait.role, &wait.about, status, &wait.message)
        }
    });
    Ok(Waits {
        format: said.format,
        ..Waits::of(
            &said.instance,
            &said.release,
            &said.written,
            waits.collect(),
        )
    })
}

/// The first characters of it, without any that steer a terminal.
fn text(said: &str, most: usize) -> String {
    let plain = |one: char| if steers(one) { ' ' } else { one };
    said.chars().take(most).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_roles_say_is_read_back_and_is_no_larger_than_what_is_read(
            said in proptest::collection::vec((".{0,4}", ".{0,200}", any::<bool>(), ".{0,4}"), 0..40),
            times in 1..600_usize,
        ) {
            let wait = |(role, about, failed, message): &(String, String, bool, String)| {
                let status = if *failed { Status::Failed } else { Status::Started };
                Wait::new(role, about, status, &message.repeat(times))
            };
            let waits = Waits::of("i-1", "0.1.0", "2030-01-01T00:00:00Z", said.iter().map(wait).collect());
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
        let bytes = serde_json::to_vec_pretty(&Waits::of("i-1", &long, &long, all)).unwrap();
        assert_eq!(read_waits(&bytes, "i-1").unwrap().waits.len(), MOST);
    }

    #[test]
    fn what_another_hand_wrote_is_bounded_and_steers_no_terminal() {
        let text = r#"{"format":2,"instance":"i-1","new":{},"waits":[{"role":"etcd-main","message":"no\u001b[2Jlog","new":1}]}"#;
        let said = read_waits(text.as_bytes(), "i-1").unwrap();
        assert_eq!(said.waits[0].message, "no [2Jlog");
        assert!(read_waits(text.as_bytes(), "i-2").is_err());
        let long = text.replace("log", &"log".repeat(WAITS_LIMIT / 4));
        let said = read_waits(long.as_bytes(), "i-1").unwrap();
        assert_eq!(said.waits[0].message.chars().count(), MESSAGE);
        let longer = text.replace("log", &"log".repeat(WAITS_LIMIT));
        assert!(read_waits(longer.as_bytes(), "i-1").is_err());
    }
}
