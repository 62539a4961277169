//! What an apply tells its listeners while it runs: the terminal, the JSON stream, the operation log.

use super::failure::Failure;
use super::resource::Id;
use serde::{Deserialize, Serialize};

/// One thing that happened. `step` is the step's key in the plan; times are milliseconds since the apply began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Before the look at the world that counts: an earlier run died while it created these, or had made them and a first look
    /// does not show them. Reads have to settle.
    Settling {
        ids: Vec<Id>,
        /// For how many milliseconds.
        for_ms: u64,
    },
    Planned {
        /// How many steps there are.
        steps: usize,
    },
    /// A step's call goes out.
    Started {
        step: Id,
        /// `create`, `update` or `delete`.
        action: super::Action,
        at_ms: u64,
    },
    /// A step waits for the world.
    Waiting {
        step: Id,
        /// For what, in words.
        waiting_for: String,
    },
    /// A step will be tried again.
    Retrying {
        step: Id,
        failure: Failure,
        /// In how many milliseconds.
        in_ms: u64,
    },
    /// A step is done.
    Done {
        step: Id,
        action: super::Action,
        /// The world's own id of the object.
        physical: String,
        /// How long it took, waiting included.
        took_ms: u64,
    },
    /// A step failed for good.
    Failed {
        step: Id,
        action: super::Action,
        failure: Failure,
        /// How long it took.
        took_ms: u64,
    },
    /// A step was not tried, or left waiting by an interrupt.
    Skipped {
        step: Id,
        /// The failed step it waited for, or `None` after an interrupt.
        because: Option<Id>,
    },
}
