//! Errors of a world, classified once at the edge, so that the engine decides by class alone.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of failure it is, and so what the engine does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Too many calls: wait and try again; does not count as an attempt.
    Throttled,
    /// Something just made is not visible yet (eventual consistency): try again until the deadline.
    NotYet,
    /// The name is taken: look it up and adopt it if it is ours.
    Exists,
    /// It is not there: fine for a removal, a stale plan for a change.
    Gone,
    /// Something still uses it: try again until the deadline, then name what is in the way.
    Blocked,
    /// Not allowed: fail at once; the message names the action.
    Denied,
    /// A quota is used up: fail at once; the message names the quota.
    Quota,
    /// The request is wrong: fail at once.
    Invalid,
    /// Nobody knows whether it happened (a lost connection, a 5xx): look before trying again.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What the engine should make of it.
    pub class: Class,
    /// The call: `ec2:CreateSubnet`.
    pub call: String,
    /// The world's error code: `InvalidSubnet.Conflict`; empty if there was none.
    pub code: String,
    /// What went wrong: the world's message, or an error's text with its causes ([`error_chain`]).
    pub message: String,
    /// What to do about it, if we know.
    pub hint: Option<String>,
    /// The world's request id, for its support.
    pub request_id: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.call)?;
        if !self.code.is_empty() {
            write!(f, " with {}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// The text of an error with those of its causes: `ERROR: CAUSE: CAUSE`. A [`Failure`] keeps the causes of an error in
/// this form, because it is stored, sent and compared.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}
