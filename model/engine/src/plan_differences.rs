//! What has moved between two plans for one world: whether the one that somebody looked at is still the one that
//! would run.

use super::diff;
use super::plan::{Action, FieldChange, Plan, Step};
use super::resource::{Id, Resource};
use super::snapshot::Attrs;
use serde::Serialize;
use std::collections::BTreeSet;

/// One step that is not the same in both plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "moved", rename_all = "snake_case")]
pub enum PlanDifference {
    /// Only the later plan has it.
    Appeared {
        id: Id,
        /// What it would do.
        action: Action,
    },
    /// Only the earlier plan has it.
    Vanished {
        id: Id,
        /// What it would have done.
        action: Action,
    },
    /// Both have it, and it is another one.
    Differs {
        id: Id,
        /// What differs. Fields of the object as it is begin with `before.`, of the object as wanted with `after.`.
        fields: Vec<FieldChange>,
    },
}

impl PlanDifference {
    pub fn id(&self) -> &Id {
        match self {
            Self::Appeared { id, .. } | Self::Vanished { id, .. } | Self::Differs { id, .. } => id,
        }
    }
}

/// Every difference between what an earlier plan would do and what a later one would; empty if both do the same to
/// the same objects. When an object was made and who uses it are no part of what is done: where they matter they
/// have led to another step.
pub fn plan_differences<R: Resource>(earlier: &Plan<R>, later: &Plan<R>) -> Vec<PlanDifference> {
    let ids: BTreeSet<&Id> = earlier.steps.keys().chain(later.steps.keys()).collect();
    let difference = |id: &Id| match (earlier.steps.get(id), later.steps.get(id)) {
        (None, Some(step)) => Some(PlanDifference::Appeared {
            id: id.clone(),
            action: step.action,
        }),
        (Some(step), None) => Some(PlanDifference::Vanished {
            id: id.clone(),
            action: step.action,
        }),
        (Some(before), Some(after)) => {
            let fields = diff::changes(
                &Essence::step_outcome(before),
                &Essence::step_outcome(after),
            );
            (!fields.is_empty()).then(|| PlanDifference::Differs {
                id: id.clone(),
                fields,
            })
        }
        (None, None) => None,
    };
    ids.into_iter().filter_map(difference).collect()
}

/// What makes a step the step it is. `changes` follow from the rest.
#[derive(Serialize)]
struct Essence<'a, R> {
    action: Action,
    #[serde(flatten)]
    reason: &'a super::plan::Reason,
    before: Option<Seen<'a, R>>,
    after: Option<&'a R>,
    needs: &'a BTreeSet<Id>,
}

#[derive(Serialize)]
struct Seen<'a, R> {
    #[serde(flatten)]
    resource: &'a R,
    physical_id: &'a str,
    attributes: &'a Attrs,
}

impl<'a, R> Essence<'a, R> {
    fn step_outcome(step: &'a Step<R>) -> Self {
        Self {
            action: step.action,
            reason: &step.reason,
            before: step.before.as_ref().map(|seen| Seen {
                resource: &seen.resource,
                physical_id: &seen.physical,
                attributes: &seen.attrs,
            }),
            after: step.after.as_ref(),
            needs: &step.needs,
        }
    }
}
