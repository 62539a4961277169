//! The plan: a value that says every step, its reason and its order. Making one is pure.

use super::resource::{Id, Resource};
use super::snapshot::Observed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The version of the plan's JSON form that this build writes and reads.
pub const FORMAT: u32 = 1;

/// Why there is no plan. Each carries everything that is wrong in that way, not just the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two wanted objects have one id: a mistake in what builds the desired state.
    #[error("wanted twice: {}", join_ids(.0))]
    WantedTwice(Vec<Id>),
    /// A wanted object refers to one that is not wanted: `(who, to what)`.
    #[error("refers to what is not there: {}", join_pairs(.0, " needs "))]
    UnknownReference(Vec<(Id, Id)>),
    /// Each needs the next, the last the first.
    #[error("needs go in a circle: {}", join_cycle(.0))]
    Cycle(Vec<Id>),
    /// The world cannot make these changes in place; each with what to do instead.
    #[error("cannot be changed in place: {}", join_pairs(.0, ": "))]
    Refused(Vec<(Id, String)>),
    /// The world has several objects of one id, and on more than one of them is something that cannot be made
    /// again; with their physical ids.
    #[error("exists more than once, and more than one is in use: {}; remove one of each by hand", join_groups(.0))]
    BothUsed(Vec<(Id, Vec<String>)>),
    /// The plan breaks a rule that every plan keeps: a step, and what is wrong with it.
    #[error("the plan is broken at {0}: {1}")]
    Broken(Id, &'static str),
    /// The plan was written by another version of kctl.
    #[error("the plan has format {found}, this version reads {FORMAT}: plan again")]
    Format { found: u32 },
}

fn join_ids(ids: &[Id]) -> String {
    join_parts(ids.iter().map(Id::to_string), ", ")
}

fn join_pairs<T: fmt::Display>(pairs: &[(Id, T)], between: &str) -> String {
    let pair = |(id, other): &(Id, T)| format!("{id}{between}{other}");
    join_parts(pairs.iter().map(pair), "; ")
}

fn join_groups(groups: &[(Id, Vec<String>)]) -> String {
    let group = |(id, physical): &(Id, Vec<String>)| format!("{id} ({})", physical.join(", "));
    join_parts(groups.iter().map(group), "; ")
}

fn join_cycle(ids: &[Id]) -> String {
    join_parts(ids.iter().chain(ids.first()).map(Id::to_string), " -> ")
}

fn join_parts(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

/// What a step does. There is no replace: what cannot change in place is part of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It does not exist yet.
    Create,
    /// It exists and differs.
    Update,
    /// It exists and is not wanted.
    Delete,
}

/// Why a step is in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// It is in the spec and not in the world.
    Missing,
    /// It differs from the spec.
    Differs,
    /// A value it holds comes from a resource that changes in this plan.
    Follows { of: Vec<Id> },
    /// It is in the world and not in the spec.
    Unwanted,
    /// The world has it twice and this is the one to go, or it hangs on such a one.
    Duplicate,
    /// A later object of its series takes its place (see [`Resource::series`]).
    Replaced {
        /// The successor.
        by: Id,
    },
}

/// An object that is not wanted, and that a plan leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub id: Id,
    /// The world's own id of it.
    #[serde(rename = "physical_id")]
    pub physical: String,
    #[serde(flatten)]
    pub why: Why,
}

/// Why something that is not wanted stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// It holds data, see [`Resource::holds_data`].
    HoldsData,
    /// It holds data, and is not the only one of its id.
    HoldsDataTwice {
        /// The world's own id of the one that counts.
        other: String,
    },
    /// Instances that run, or that may be launched while the plan is carried out, know their way only by it.
    Named {
        /// What the world calls those instances, or what launches them.
        by: Vec<String>,
    },
    /// It is part of something that stays, or that rests on it.
    Belongs { to: Id },
}

/// One differing field: a JSON path, and the value on both sides (`null`: not there).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// `tags.Owner`, `max_size`, `user_data`.
    pub field: String,
    /// What the world has.
    pub before: serde_json::Value,
    /// What is wanted; late values as their parts.
    pub after: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step<R> {
    /// The resource; for the removal of a duplicate its name carries `#` and the physical id.
    pub id: Id,
    pub action: Action,
    pub reason: Reason,
    /// The object as observed, for updates and deletions.
    pub before: Option<Observed<R>>,
    /// The object as wanted, for creations and updates.
    pub after: Option<R>,
    /// What differs, for updates.
    pub changes: Vec<FieldChange>,
    /// Steps of this plan that must be done before.
    pub needs: BTreeSet<Id>,
}

/// All steps by id. `format` is the version of the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan<R> {
    /// Version of this form; readers refuse newer ones.
    pub format: u32,
    pub steps: BTreeMap<Id, Step<R>>,
    /// What is not wanted and stays all the same. There is nothing to do about it, so that a plan may be empty beside it.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl<R: Resource> Plan<R> {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many steps do that.
    pub fn count(&self, action: Action) -> usize {
        self.steps
            .values()
            .filter(|step| step.action == action)
            .count()
    }
}
