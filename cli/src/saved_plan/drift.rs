//! Compares a saved plan with a current one: what changed in target, spec, facts, AWS objects and steps.

use super::{PlanInputs, SavedPlan};
use crate::plan_target::ClusterTarget;
use cloud::Cloud;
use engine::{Id, Plan, PlanDifference, plan_differences};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A plan made now.
#[derive(Clone, Debug)]
pub struct CurrentPlan<'a> {
    pub plan: &'a Plan<Cloud>,
    /// Digests of what it was made from.
    pub made_from: &'a PlanInputs,
}

/// Differences between a saved plan and the current one. `place`, `identities` and `steps` decide whether the saved plan still
/// applies; the other fields explain why not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanDrift {
    /// Changed cluster, account, region or store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<ChangedValue>,
    /// Objects of the spec that were changed, added (no `was`) or removed (no `is`), with digests of their texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec: Vec<ChangedValue>,
    /// True if the spec is the same but its expansion differs: facts from AWS or the catalog changed.
    pub facts: bool,
    /// The versions of kctl, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kctl: Option<ChangedValue>,
    /// Resources of the steps whose AWS id changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<ChangedValue>,
    /// Steps that were added, removed or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanDifference>,
    /// True if the current plan is empty.
    pub nothing_left: bool,
    /// Operations that applied this saved plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied_by: Vec<AppliedBy>,
}

/// An operation that applied a saved plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppliedBy {
    /// Id of the operation.
    pub operation: String,
    /// How it ended.
    pub result: String,
    /// `user@host`.
    pub who: String,
}

/// A value that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedValue {
    /// Name of the value.
    pub what: String,
    /// Value when the plan was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Value now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

impl PlanDrift {
    /// True if the saved plan still applies.
    pub fn still_applies(&self) -> bool {
        self.place.is_empty() && self.identities.is_empty() && self.steps.is_empty()
    }

    /// The differences between the saved plan's target and another one.
    pub fn from_target(saved: &SavedPlan, target: &ClusterTarget, store: &str) -> Self {
        let pairs = [
            ("cluster", &saved.cluster, target.cluster.as_str()),
            ("account", &saved.account, target.account.as_str()),
            ("region", &saved.region, target.region.as_str()),
            ("state store", &saved.store, store),
        ];
        let place = pairs.into_iter().filter(|(_, was, is)| was != is);
        Self {
            place: place
                .map(|(what, was, is)| changed_value(what, Some(was), Some(is)))
                .collect(),
            ..Self::default()
        }
    }
}

/// Compares a saved plan with the current one.
pub fn compare_plans(saved: &SavedPlan, now: &CurrentPlan<'_>) -> PlanDrift {
    let (was, is) = (&saved.made_from, now.made_from);
    let spec = changed_values(&was.spec, &is.spec);
    let steps = plan_differences(&saved.plan, now.plan);
    let ours = env!("CARGO_PKG_VERSION");
    PlanDrift {
        place: Vec::new(),
        facts: spec.is_empty() && was.completed != is.completed,
        spec,
        kctl: (saved.kctl != ours).then(|| changed_value("kctl", Some(&saved.kctl), Some(ours))),
        identities: changed_identities(&was.observed, &is.observed),
        nothing_left: now.plan.is_empty() && !saved.plan.is_empty(),
        steps,
        applied_by: Vec::new(),
    }
}

/// Resources known to both whose AWS id differs. A resource known to only one shows up in the steps.
fn changed_identities(was: &BTreeMap<Id, String>, is: &BTreeMap<Id, String>) -> Vec<ChangedValue> {
    let both = was
        .iter()
        .filter_map(|(id, was)| Some((id, was, is.get(id)?)));
    both.filter(|(_, was, is)| was != is)
        .map(|(id, was, is)| changed_value(&id.to_string(), Some(was), Some(is)))
        .collect()
}

fn changed_values(
    was: &BTreeMap<String, String>,
    is: &BTreeMap<String, String>,
) -> Vec<ChangedValue> {
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    keys.into_iter()
        .map(|key| (key, was.get(key), is.get(key)))
        .filter(|(_, was, is)| was != is)
        .map(|(key, was, is)| changed_value(key, was.map(String::as_str), is.map(String::as_str)))
        .collect()
}

fn changed_value(what: &str, was: Option<&str>, is: Option<&str>) -> ChangedValue {
    ChangedValue {
        what: what.to_owned(),
        was: was.map(str::to_owned),
        is: is.map(str::to_owned),
    }
}
