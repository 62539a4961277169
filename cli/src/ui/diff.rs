//! Changes of single fields as text.

use super::{Paint, Tone};
use engine::FieldChange;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Shown for a value that is known only once another object exists.
pub const LATE: &str = "(known after apply)";
/// Shown instead of a secret.
const SENSITIVE: &str = "(sensitive)";
/// Changed lines that are shown without `-o wide`.
const BRIEF_LINES: usize = 8;
/// Longest value in characters that is shown as `BEFORE -> AFTER`.
const BRIEF_VALUE: usize = 120;

/// Lines for the change of one field, not indented: `FIELD  BEFORE -> AFTER` or a diff.
pub fn change_lines(change: &FieldChange, wide: bool, paint: Paint) -> Vec<String> {
    let (before, after) = (value_text(&change.before), value_text(&change.after));
    let field = change.field.strip_suffix(".text").unwrap_or(&change.field);
    if is_secret(&before) || is_secret(&after) {
        return vec![format!("{field}  {SENSITIVE}")];
    }
    let short = |text: &str| !text.contains('\n') && text.chars().count() <= BRIEF_VALUE;
    if short(&before) && short(&after) {
        return vec![format!("{field}  {}", value_pair(&before, &after))];
    }
    if change.before.is_null() || change.after.is_null() {
        let (word, text) = if change.before.is_null() {
            ("added", &after)
        } else {
            ("removed", &before)
        };
        if !wide {
            return vec![format!("{field}  {} lines {word}", text.lines().count())];
        }
    }
    text_lines(field, &before, &after, wide, paint)
}

fn value_pair(before: &str, after: &str) -> String {
    match (before.is_empty(), after.is_empty()) {
        (true, _) => format!("+ {after}"),
        (_, true) => format!("- {before}"),
        _ => format!("{before} -> {after}"),
    }
}

fn text_lines(field: &str, before: &str, after: &str, wide: bool, paint: Paint) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let mut changed = Vec::new();
    for line in diff.iter_all_changes() {
        let text = line.value().trim_end_matches('\n');
        match line.tag() {
            ChangeTag::Insert => changed.push(paint.with_tone(Tone::Add, &format!("+ {text}"))),
            ChangeTag::Delete => changed.push(paint.with_tone(Tone::Delete, &format!("- {text}"))),
            ChangeTag::Equal => {}
        }
    }
    let count = changed.len();
    let noun = if count == 1 { "line" } else { "lines" };
    if !wide && count > BRIEF_LINES {
        return vec![format!(
            "{field}  {count} {noun} changed  (-o wide shows them)"
        )];
    }
    let mut lines = vec![format!("{field}  {count} {noun} changed")];
    lines.extend(changed.iter().map(|line| format!("  {line}")));
    lines
}

/// A value as text. Late values are shown as [`LATE`], references as names.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if is_late(items) => items.iter().map(late_part).collect(),
        Value::Array(items) if items.iter().all(is_small) => {
            let items: Vec<String> = items.iter().map(value_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => match reference_name(fields) {
            Some(reference) => reference,
            None => pretty_json(value),
        },
        Value::Array(_) => pretty_json(value),
        other => other.to_string(),
    }
}

fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Object(fields) => reference_name(fields).is_some(),
        Value::Array(_) => false,
        _ => true,
    }
}

/// `{type, name}`, a reference, or `{key, value, ...}`, a tag of an Auto Scaling group.
fn reference_name(fields: &serde_json::Map<String, Value>) -> Option<String> {
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    match (field("type"), field("name"), field("key"), field("value")) {
        (Some(kind), Some(name), ..) if fields.len() == 2 => Some(format!("{kind}/{name}")),
        (_, _, Some(key), Some(value)) => Some(format!("{key}={value}")),
        _ => None,
    }
}

fn is_late(items: &[Value]) -> bool {
    items.iter().any(|item| item.get("attribute").is_some())
}

fn late_part(item: &Value) -> String {
    item.as_str().map_or_else(|| LATE.to_owned(), str::to_owned)
}

/// Safety net: plans contain no secrets, and this hides one that got in.
fn is_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change_text(before: Value, after: Value, wide: bool) -> String {
        let change = FieldChange {
            field: "f".to_owned(),
            before,
            after,
        };
        change_lines(&change, wide, Paint::default()).join("\n")
    }

    #[test]
    fn short_values_stand_side_by_side() {
        assert_eq!(change_text(json!(1), json!(3), false), "f  1 -> 3");
        assert_eq!(change_text(json!(null), json!("x"), false), "f  + x");
        assert_eq!(
            change_text(json!(["a"]), json!(["a", "b"]), false),
            "f  [a] -> [a, b]"
        );
    }

    #[test]
    fn references_are_names_and_late_values_say_so() {
        let late = json!([{"type": "lb", "name": "api", "attribute": "dns_name"}, ":443"]);
        assert_eq!(
            change_text(json!("x:443"), late, false),
            "f  x:443 -> (known after apply):443"
        );
        assert_eq!(
            change_text(json!(null), json!({"type": "lb", "name": "api"}), false),
            "f  + lb/api"
        );
    }

    #[test]
    fn long_texts_are_counted_and_shown_when_asked_for() {
        let before: String = (0..40).map(|n| format!("{n}\n")).collect();
        let after = before.replace('1', "x");
        assert_eq!(
            change_text(json!(before), json!(after), false),
            "f  26 lines changed  (-o wide shows them)"
        );
        assert!(change_text(json!(before), json!(after), true).contains("- 1\n"));
    }

    #[test]
    fn a_private_key_is_never_shown() {
        let key = json!("-----BEGIN PRIVATE KEY-----\nabc");
        assert_eq!(change_text(json!(null), key, true), "f  (sensitive)");
    }
}
