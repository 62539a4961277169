//! The log of operations as a table or JSON, and one operation with all its steps.

use super::hashes::short_hashes;
use super::progress::millis_text;
use super::table;
use crate::state::{ListedOperation, Operation, StepResult};
use engine::{Action, Id};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Columns of the narrow table.
pub(super) const COLUMNS: [&str; 7] = [
    "ID", "STARTED", "WHO", "COMMAND", "RESULT", "TOOK", "CHANGES",
];

/// Columns that the wide one has besides.
const WIDE_COLUMNS: [&str; 4] = ["ACCOUNT", "REGION", "PLAN", "KCTL"];

/// A table of operations.
pub fn operation_table(listed: &[ListedOperation], wide: bool) -> String {
    let mut headers = COLUMNS.to_vec();
    if wide {
        headers.extend(WIDE_COLUMNS);
    }
    let row = |one: &ListedOperation| {
        let mut row = operation_row(one);
        if let (true, Ok(record)) = (wide, &one.record) {
            let plan = record.plan.as_deref().map(short_hashes).unwrap_or_default();
            row.extend([
                record.account.clone(),
                record.region.clone(),
                plan,
                record.version.clone(),
            ]);
        }
        row.resize(headers.len(), String::new());
        row
    };
    table::render(&headers, &listed.iter().map(row).collect::<Vec<_>>())
}

/// An operation in the columns of the narrow table; of one that cannot be read, why.
pub(super) fn operation_row(one: &ListedOperation) -> Vec<String> {
    let (id, result) = (one.id.clone(), one.result().to_owned());
    let nothing = String::new;
    let record = match &one.record {
        Ok(record) => record,
        Err(why) => {
            let why = why.clone();
            return vec![id, nothing(), nothing(), nothing(), result, nothing(), why];
        }
    };
    let started = record.started.split('.').next();
    vec![
        id,
        started.map(until_second).unwrap_or_default(),
        record.who.clone(),
        record.command.clone(),
        result,
        record.took_ms.map_or(String::new(), millis_text),
        change_summary(record),
    ]
}

/// An RFC 3339 time in UTC that was cut after the second.
fn until_second(text: &str) -> String {
    format!("{}Z", text.trim_end_matches('Z'))
}

/// The stored record with id, current result and counts.
pub fn operation_json(one: &ListedOperation) -> Value {
    let mut value = match &one.record {
        Ok(record) => serde_json::to_value(record).unwrap_or_default(),
        Err(why) => json!({ "unreadable": why }),
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("id".to_owned(), Value::from(one.id.as_str()));
        fields.insert("result".to_owned(), Value::from(one.result()));
        if let Ok(record) = &one.record {
            fields.insert("counts".to_owned(), json!(step_counts(record)));
        }
    }
    value
}

/// Number of steps by outcome; successful ones by action.
fn step_counts(record: &Operation) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for step in record.steps.values() {
        *counts.entry(step_outcome(step)).or_default() += 1;
    }
    counts
}

fn step_outcome(step: &StepResult) -> &'static str {
    match (step.outcome.as_str(), step.action) {
        ("failed", _) => "failed",
        ("done", Some(Action::Create)) => "added",
        ("done", Some(Action::Update)) => "changed",
        ("done", Some(Action::Delete)) => "deleted",
        _ => "not_tried",
    }
}

/// `12 added, 1 failed`; for changes of the spec the objects; for an operation without an end the planned numbers.
fn change_summary(record: &Operation) -> String {
    if !record.objects.is_empty() {
        return record
            .objects
            .iter()
            .map(object_summary)
            .collect::<Vec<_>>()
            .join(", ");
    }
    let counts = step_counts(record);
    if let (true, Some(planned)) = (counts.is_empty(), &record.planned) {
        return format!(
            "of {} to add, {} to change, {} to delete",
            planned.add, planned.change, planned.delete
        );
    }
    let order = ["added", "changed", "deleted", "failed", "not_tried"];
    let words = order
        .iter()
        .filter_map(|word| Some(format!("{} {}", counts.get(word)?, word.replace('_', " "))));
    words.collect::<Vec<_>>().join(", ")
}

fn object_summary(change: &crate::state::SpecChange) -> String {
    let how = match (change.action, change.fields) {
        (Action::Create, _) => "new".to_owned(),
        (Action::Delete, _) => "removed".to_owned(),
        (Action::Update, Some(1)) => "1 field".to_owned(),
        (Action::Update, fields) => format!("{} fields", fields.unwrap_or_default()),
    };
    format!("{} ({how})", change.object)
}

/// One operation: its properties, all steps, and the failures in detail.
pub fn operation_detail(one: &ListedOperation) -> String {
    let record = match &one.record {
        Ok(record) => record,
        Err(why) => return format!("Operation  {}\nResult     unreadable: {why}\n", one.id),
    };
    let mut lines = vec![
        ("Operation", one.id.clone()),
        ("Command", record.command.clone()),
        ("Who", record.who.clone()),
        ("Started", record.started.clone()),
        ("Result", result_text(one)),
    ];
    lines.extend(record.took_ms.map(|took| ("Took", millis_text(took))));
    if !record.account.is_empty() {
        lines.push(("Account", format!("{}  {}", record.account, record.region)));
    }
    lines.extend(record.plan.clone().map(|plan| ("Saved plan", plan)));
    lines.push(("Changes", change_summary(record)));
    lines.push(("kctl", record.version.clone()));
    let mut text: String = lines
        .iter()
        .map(|(name, value)| format!("{name:<10}  {value}\n"))
        .collect();
    for change in &record.objects {
        let hash =
            |digest: &Option<String>| digest.as_deref().map_or("nothing".to_owned(), short_hashes);
        text.push_str(&format!(
            "\n{}\n  {} -> {}\n",
            object_summary(change),
            hash(&change.before),
            hash(&change.after)
        ));
    }
    if record.steps.is_empty() {
        return text;
    }
    let row = |(id, step): (&Id, &StepResult)| {
        vec![
            step.outcome.clone(),
            step.action
                .map_or(String::new(), |action| action_verb(action).to_owned()),
            short_hashes(&id.to_string()),
            step.took_ms.map_or(String::new(), millis_text),
        ]
    };
    let rows: Vec<_> = record.steps.iter().map(row).collect();
    text.push('\n');
    text.push_str(&table::render(
        &["OUTCOME", "ACTION", "STEP", "TOOK"],
        &rows,
    ));
    text.push_str(&failure_details(record));
    text
}

/// Why steps failed or were skipped.
fn failure_details(record: &Operation) -> String {
    let mut text = String::new();
    for (id, step) in &record.steps {
        let id = short_hashes(&id.to_string());
        if let Some(failure) = &step.failure {
            text.push_str(&format!("\n{id}\n  {failure}\n"));
            text.push_str(
                &failure
                    .request_id
                    .iter()
                    .map(|id| format!("  request id: {id}\n"))
                    .collect::<String>(),
            );
            text.push_str(
                &failure
                    .hint
                    .iter()
                    .map(|hint| format!("  hint: {hint}\n"))
                    .collect::<String>(),
            );
        }
        if let Some(because) = &step.because {
            text.push_str(&format!(
                "\n{id}\n  not tried: {} failed\n",
                short_hashes(&because.to_string())
            ));
        }
    }
    text
}

pub(super) fn result_text(one: &ListedOperation) -> String {
    match one.result() {
        "no end recorded" => "no end recorded: it was killed or lost access to the store, and its progress is unknown; `kctl update` shows what is left".to_owned(),
        other => other.to_owned(),
    }
}

fn action_verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
    }
}
