//! Why a saved plan no longer applies, as a few lines of text.

use super::Paint;
use super::diff::change_lines;
use super::hashes::short_hashes;
use crate::saved_plan::{ChangedValue, PlanDrift};
use engine::{Action, PlanDifference};
use serde_json::Value;

/// Number of steps that are listed; more are counted.
const STEPS: usize = 10;
/// Number of fields of a step that are listed; more are counted.
const FIELDS: usize = 3;

/// All reasons, one line each.
pub fn drift_reasons(stale: &PlanDrift) -> Vec<String> {
    let mut all: Vec<String> = stale
        .place
        .iter()
        .map(|one| format!("{} differs: {}", one.what, was_is(one)))
        .collect();
    let applied = stale.applied_by.iter();
    all.extend(applied.map(|one| {
        format!(
            "it was applied by {} in operation {}: {}",
            one.who, one.operation, one.result
        )
    }));
    if stale.nothing_left {
        return all;
    }
    all.extend(stale.spec.iter().map(spec_reason));
    if stale.facts {
        all.push("the spec is the same, but the facts from AWS or the catalog (images, zones, instance types or downloads) have changed".to_owned());
    }
    all.extend(
        stale
            .kctl
            .iter()
            .map(|one| format!("kctl differs: {}", was_is(one))),
    );
    let stepped = |one: &&ChangedValue| {
        !stale
            .steps
            .iter()
            .any(|step| step.id().to_string() == one.what)
    };
    let identities = stale.identities.iter().filter(stepped);
    all.extend(
        identities.map(|one| format!("{} is another object in AWS: {}", one.what, was_is(one))),
    );
    all.extend(stale.steps.iter().take(STEPS).map(step_reason));
    if stale.steps.len() > STEPS {
        all.push(format!(
            "and {} more steps (-o json shows all)",
            stale.steps.len() - STEPS
        ));
    }
    all
}

fn was_is(one: &ChangedValue) -> String {
    let part = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("was {}, is {}", part(&one.was), part(&one.is))
}

fn spec_reason(one: &ChangedValue) -> String {
    let what = match (&one.was, &one.is) {
        (None, _) => "was added",
        (_, None) => "was removed",
        _ => "was changed",
    };
    format!("the spec: {} {what}", one.what)
}

fn step_reason(one: &PlanDifference) -> String {
    let id = short_hashes(&one.id().to_string());
    match one {
        PlanDifference::Appeared { action, .. } => {
            format!(
                "{id}: would be {} now, and was not to be",
                action_participle(*action)
            )
        }
        PlanDifference::Vanished { action, .. } => {
            format!(
                "{id}: was to be {}, and would not be now",
                action_participle(*action)
            )
        }
        PlanDifference::Differs { fields, .. } => {
            // If the action differs, so does everything else.
            if let Some(change) = fields.iter().find(|change| change.field == "action") {
                let word = |value: &Value| {
                    serde_json::from_value(value.clone()).map_or("nothing", action_participle)
                };
                let (was, is) = (word(&change.before), word(&change.after));
                return format!("{id}: was to be {was}, and would be {is} now");
            }
            let changes = fields.iter().take(FIELDS);
            let changes = changes.filter_map(|change| {
                change_lines(change, false, Paint::default())
                    .into_iter()
                    .next()
            });
            let mut changes: Vec<String> = changes.map(|line| short_hashes(&line)).collect();
            if fields.len() > FIELDS {
                changes.push(format!("and {} more fields", fields.len() - FIELDS));
            }
            format!("{id}: {}", changes.join("; "))
        }
    }
}

fn action_participle(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "changed",
        Action::Delete => "deleted",
    }
}
