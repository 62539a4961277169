//! `kctl explain`: what a field of the spec means, what it takes, and what is below it.

use super::document::print_document;
use crate::args::{Explain, ReportFormat};
use crate::error::{CommandError, Outcome};
use crate::ui::{Shell, table};
use serde::Serialize;
use spec::defaults::{NewObjects, NewValues, new_objects};
use spec::field::{Field, look_up};

/// A field as `-o json` shows it. What says nothing is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    field: String,
    #[serde(rename = "type")]
    type_name: String,
    description: String,
    /// The words that it takes, if these are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<&'static str>,
    /// What it is where nobody sets it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    default: Vec<String>,
    /// What `kctl create cluster` writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    created: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

/// The output for programs.
#[derive(Serialize)]
struct Document {
    format: u32,
    kind: String,
    #[serde(flatten)]
    explained: Explanation,
    fields: Vec<Explanation>,
}

pub fn run(args: &Explain, shell: &Shell) -> Result<Outcome, CommandError> {
    let (kind, field) = look_up(&args.field).map_err(|error| {
        let hint = error.hint.clone();
        CommandError::usage_error(error.to_string(), hint)
    })?;
    let new = new_objects()?;
    let explained = explain(&kind, &field, &new);
    let below = field.below(args.recursive);
    if args.output == ReportFormat::Table {
        let text = head_text(&kind, &explained) + &below_text(&field, &below);
        shell.print_result(&text)?;
        return Ok(Outcome::Fine);
    }
    let fields = below.into_iter().map(|field| explain(&kind, field, &new));
    let document = Document {
        format: 1,
        fields: fields.collect(),
        kind,
        explained,
    };
    print_document(&document, args.output, shell)?;
    Ok(Outcome::Fine)
}

fn explain(kind: &str, field: &Field, new: &NewObjects) -> Explanation {
    // A section has no value, its fields have.
    let values = match field.fields.is_empty() {
        true => new.values(kind, &field.path),
        false => NewValues::default(),
    };
    Explanation {
        field: field.path.clone(),
        type_name: field.shape.type_name(),
        description: field.description.clone(),
        values: field.choices(),
        default: values.filled,
        created: values.written,
        refused: field.notes(),
    }
}

/// What is said of the field itself.
fn head_text(kind: &str, of: &Explanation) -> String {
    let rows = [
        ("KIND", kind.to_owned()),
        ("FIELD", of.field.clone()),
        ("TYPE", of.type_name.clone()),
        ("VALUES", of.values.join(", ")),
        ("DEFAULT", of.default.join(", ")),
        ("CREATED AS", of.created.join(", ")),
    ];
    let rows = rows.iter().filter(|(_, value)| !value.is_empty());
    let mut text: String = rows
        .map(|(label, value)| format!("{label:<12}{value}\n"))
        .collect();
    text += &format!("\n{}\n", of.description);
    for note in &of.refused {
        text += &format!("\n{note}\n");
    }
    text
}

/// The fields below it, with the first sentence about each.
fn below_text(field: &Field, below: &[&Field]) -> String {
    if below.is_empty() {
        return String::new();
    }
    let name = |one: &Field| {
        let path = one.path.strip_prefix(&field.path).unwrap_or(&one.path);
        path.trim_start_matches(['[', ']', '.']).to_owned()
    };
    let rows: Vec<Vec<String>> = below
        .iter()
        .map(|one| vec![name(one), one.shape.type_name(), one.summary()])
        .collect();
    format!(
        "\n{}",
        table::render(&["NAME", "TYPE", "DESCRIPTION"], &rows)
    )
}
