//! The plan: a value that says every step, its reason and its order. Making one is pure.

use super::resource::{Id, Resource};
use super::snapshot::Observed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    Follows {
        /// Those resources.
        of: Vec<Id>,
    },
    /// It is in the world and not in the spec.
    Unwanted,
    /// The world has it twice; this is the younger or unused one.
    Duplicate,
    /// Its successor with the next name of the series takes its place.
    Replaced {
        /// The successor.
        by: Id,
    },
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

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step<R> {
    /// The resource; for the removal of a duplicate its name carries `#` and the physical id.
    pub id: Id,
    /// What is done.
    pub action: Action,
    /// Why.
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
    /// The steps.
    pub steps: BTreeMap<Id, Step<R>>,
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
