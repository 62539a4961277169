//! Whether a saved plan is still what would be done, and if not what moved: the place, the spec, AWS, or the steps.

use super::{MadeFrom, SavedPlan};
use crate::planned::Target;
use cloud::Cloud;
use engine::{Id, Moved, Plan, moved};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A plan as it would be made now.
#[derive(Clone, Debug)]
pub struct Now<'a> {
    /// The plan.
    pub plan: &'a Plan<Cloud>,
    /// What it was made from.
    pub made_from: &'a MadeFrom,
}

/// What moved since a plan was saved; whether it still applies is decided by `place`, `identities` and `steps`, the
/// rest says why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stale {
    /// Cluster, account, region or store are others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<Changed>,
    /// Objects of the spec that were changed, added (no `was`) or removed (no `is`); with digests of their texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec: Vec<Changed>,
    /// The spec is as it was, and what follows from it is not: AWS or the catalog say something else of its images,
    /// zones, machine types or downloads.
    pub facts: bool,
    /// The version of kctl is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kctl: Option<Changed>,
    /// Objects that steps are about or refer to are others in AWS than they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<Changed>,
    /// Steps that appeared, vanished or differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Moved>,
    /// Nothing is left to do.
    pub nothing_left: bool,
    /// Operations that applied this very plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied_by: Vec<AppliedBy>,
}

/// An operation that applied a saved plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppliedBy {
    /// Its id.
    pub operation: String,
    /// How it ended.
    pub result: String,
    /// Who it was.
    pub who: String,
}

/// Something that was one thing and is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// What.
    pub what: String,
    /// When the plan was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

impl Stale {
    /// True if the plan still does what it did.
    pub fn applies(&self) -> bool {
        self.place.is_empty() && self.identities.is_empty() && self.steps.is_empty()
    }

    /// A plan that is for another place.
    pub fn elsewhere(saved: &SavedPlan, target: &Target, store: &str) -> Self {
        let pairs = [
            ("cluster", &saved.cluster, target.cluster.as_str()),
            ("account", &saved.account, target.account.as_str()),
            ("region", &saved.region, target.region.as_str()),
            ("state store", &saved.store, store),
        ];
        let place = pairs.into_iter().filter(|(_, was, is)| was != is);
        Self {
            place: place
                .map(|(what, was, is)| changed(what, Some(was), Some(is)))
                .collect(),
            ..Self::default()
        }
    }
}

/// What moved since the plan was saved.
pub fn stale(saved: &SavedPlan, now: &Now<'_>) -> Stale {
    let (was, is) = (&saved.made_from, now.made_from);
    let spec = differences(&was.spec, &is.spec);
    let steps = moved(&saved.plan, now.plan);
    let ours = env!("CARGO_PKG_VERSION");
    Stale {
        place: Vec::new(),
        facts: spec.is_empty() && was.completed != is.completed,
        spec,
        kctl: (saved.kctl != ours).then(|| changed("kctl", Some(&saved.kctl), Some(ours))),
        identities: identities(&was.observed, &is.observed),
        nothing_left: now.plan.is_empty() && !saved.plan.is_empty(),
        steps,
        applied_by: Vec::new(),
    }
}

/// Of what both know, what is another object now. What one does not know is a matter of its steps.
fn identities(was: &BTreeMap<Id, String>, is: &BTreeMap<Id, String>) -> Vec<Changed> {
    let both = was
        .iter()
        .filter_map(|(id, was)| Some((id, was, is.get(id)?)));
    both.filter(|(_, was, is)| was != is)
        .map(|(id, was, is)| changed(&id.to_string(), Some(was), Some(is)))
        .collect()
}

fn differences(was: &BTreeMap<String, String>, is: &BTreeMap<String, String>) -> Vec<Changed> {
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    keys.into_iter()
        .map(|key| (key, was.get(key), is.get(key)))
        .filter(|(_, was, is)| was != is)
        .map(|(key, was, is)| changed(key, was.map(String::as_str), is.map(String::as_str)))
        .collect()
}

fn changed(what: &str, was: Option<&str>, is: Option<&str>) -> Changed {
    Changed {
        what: what.to_owned(),
        was: was.map(str::to_owned),
        is: is.map(str::to_owned),
    }
}
