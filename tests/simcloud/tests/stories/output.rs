//! What commands of stories print.

use cloud::Cloud;
use engine::{Action, Event, FieldChange, Id, Kept, Plan, Reason, Report, Resource, Step, Why};
use serde_json::Value;
use simcloud::{RunEnd, State, StateDifference};
use std::collections::{BTreeMap, BTreeSet};

/// Longer values are not shown.
const SHOWN: usize = 80;

/// A line for each step, lines for what changes, then what stays, then the sum.
pub fn show_plan(plan: &Plan<Cloud>) -> String {
    let mut text: String = plan.steps.values().map(show_step).collect();
    text.extend(plan.kept.iter().map(show_kept));
    if plan.is_empty() {
        return text + "No changes.\n";
    }
    let [add, change, delete] = count_actions(plan.steps.values().map(|step| step.action));
    text + &format!("Plan: {add} to add, {change} to change, {delete} to delete.\n")
}

fn show_step(step: &Step<Cloud>) -> String {
    let sign = match step.action {
        Action::Create => '+',
        Action::Update => '~',
        Action::Delete => '-',
    };
    let why = match &step.reason {
        Reason::Missing | Reason::Differs | Reason::Unwanted => String::new(),
        Reason::Follows { of } => format!("  (follows {})", show_ids(of)),
        Reason::Duplicate => "  (there are two)".to_owned(),
        Reason::Replaced { by } => format!("  (replaced by {by})"),
    };
    let changes: String = step.changes.iter().map(show_change).collect();
    format!("{sign} {}{why}\n{changes}", step.id)
}

fn show_change(change: &FieldChange) -> String {
    let values = show_value(&change.before).zip(show_value(&change.after));
    let values = values.map(|(before, after)| format!("{before} -> {after}"));
    let values = values.unwrap_or_else(|| "changed".to_owned());
    format!("    {}: {values}\n", change.field)
}

/// A value in a line; `None` if it is too long for that.
fn show_value(of: &Value) -> Option<String> {
    let field = |fields: &serde_json::Map<String, Value>, name: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let text = match of {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => of.to_string(),
        Value::Array(parts) if parts.iter().any(|part| part.get("attribute").is_some()) => {
            let part = |part: &Value| part.as_str().unwrap_or("(known later)").to_owned();
            parts.iter().map(part).collect()
        }
        Value::Array(items) => {
            let items = items.iter().map(show_value);
            format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(fields) => match (field(fields, "type"), field(fields, "name")) {
            (Some(kind), Some(name)) => format!("{kind}/{name}"),
            _ => format!("{}={}", field(fields, "key")?, field(fields, "value")?),
        },
    };
    (text.len() <= SHOWN && !text.contains('\n')).then_some(text)
}

fn show_kept(kept: &Kept) -> String {
    let why = match &kept.why {
        Why::HoldsData => "it holds data".to_owned(),
        Why::HoldsDataTwice { other } => format!("it holds data, as {other} does"),
        Why::Named { by } => format!("the API is known by it to {}", by.join(", ")),
        Why::Belongs { to } => format!("it belongs to {to}"),
    };
    format!("= {} {}  (kept: {why})\n", kept.id, kept.physical)
}

fn count_actions(actions: impl Iterator<Item = Action>) -> [usize; 3] {
    actions.fold([0; 3], |[add, change, delete], action| match action {
        Action::Create => [add + 1, change, delete],
        Action::Update => [add, change + 1, delete],
        Action::Delete => [add, change, delete + 1],
    })
}

fn show_ids(ids: &[Id]) -> String {
    ids.iter().map(Id::to_string).collect::<Vec<_>>().join(", ")
}

/// Why a run waited before it planned, and how many steps it tried again after which failures.
pub fn show_waits(events: &[Event]) -> String {
    let mut text = String::new();
    let mut retried: BTreeMap<String, BTreeSet<&Id>> = BTreeMap::new();
    for event in events {
        match event {
            Event::Settling { ids, for_ms } => text.push_str(&format!(
                "Waited {} s, as long as reads may be late: an earlier run may have made {}.\n",
                for_ms / 1000,
                show_ids(ids)
            )),
            Event::Retrying { step, failure, .. } => {
                let class = format!("{:?}", failure.class);
                retried.entry(class).or_default().insert(step);
            }
            _ => {}
        }
    }
    for (class, steps) in retried {
        let count = steps.len();
        text.push_str(&format!("{class}: tried again, steps: {count}.\n"));
    }
    text
}

/// How a run ended.
pub fn show_end(end: &RunEnd, events: &[Event]) -> String {
    let done = events.iter().filter_map(|event| match event {
        Event::Done { action, .. } => Some(*action),
        _ => None,
    });
    let [add, change, delete] = count_actions(done);
    let done = format!("{add} added, {change} changed, {delete} deleted.\n");
    match end {
        RunEnd::Killed => format!("Killed: {done}"),
        RunEnd::Blind(failure) => format!("error: {failure}\n"),
        RunEnd::NoPlan(error) => format!("error: {error}\n"),
        RunEnd::Ran(plan, _) if plan.is_empty() => "No changes.\n".to_owned(),
        RunEnd::Ran(_, report) => show_unfinished(report) + "Applied: " + &done,
    }
}

fn show_unfinished(report: &Report) -> String {
    let mut text = String::new();
    for (id, failure) in &report.failed {
        // The simulated cloud begins its messages with the object.
        let why = failure.to_string().replace(&format!("{id}: "), "");
        text.push_str(&format!("failed: {id}: {why}\n"));
        if let Some(hint) = &failure.hint {
            text.push_str(&format!("    {hint}\n"));
        }
    }
    for (id, because) in &report.skipped {
        let because = because.as_ref().map(|id| format!("  (needs {id})"));
        text.push_str(&format!("left: {id}{}\n", because.unwrap_or_default()));
    }
    text
}

/// How the cloud differs from what the last run wanted.
pub fn show_truth(truth: &StateDifference, made_twice: usize) -> String {
    let mut text = String::new();
    for (what, ids) in [
        ("missing", &truth.missing),
        ("different", &truth.different),
        ("there twice", &truth.duplicated),
        ("left over", &truth.leaked),
        ("refers to something else", &truth.astray),
    ] {
        ids.iter()
            .for_each(|id| text.push_str(&format!("{what}: {id}\n")));
    }
    for (what, ids) in [
        ("changed, and somebody else's", &truth.touched),
        ("to be deleted, with data", &truth.endangered),
    ] {
        ids.iter()
            .for_each(|id| text.push_str(&format!("{what}: {id}\n")));
    }
    if text.is_empty() {
        text.push_str("Everything is there as wanted, and nothing else.\n");
    }
    text + &format!("Objects made twice so far: {made_twice}.\n")
}

/// The cluster's objects of that kind that are there.
pub fn show_objects(state: &State, kind: &str) -> String {
    let line = |object: &simcloud::Object| {
        let id = object.current_body()?.resource.id();
        let named = format!("{}  {}\n", object.physical, id.name());
        (id.kind() == kind).then_some(named)
    };
    let lines: String = state.living_objects().filter_map(line).collect();
    if lines.is_empty() {
        return format!("There is no {kind}.\n");
    }
    lines
}
