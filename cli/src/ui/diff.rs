//! Differences of single fields in words.

use super::{Paint, Tone};
use engine::FieldChange;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// What is known only once another object exists.
pub const LATE: &str = "(known after apply)";
/// What nobody should see.
const SENSITIVE: &str = "(sensitive)";
/// Changed lines of a text that are shown without being asked for.
const BRIEF_LINES: usize = 8;
/// Characters of a value that fit beside its other side.
const BRIEF_VALUE: usize = 120;

/// The change of one field: lines without indentation, `FIELD  BEFORE -> AFTER` or a difference of texts.
pub fn lines(change: &FieldChange, wide: bool, paint: Paint) -> Vec<String> {
    let (before, after) = (text(&change.before), text(&change.after));
    let field = change.field.strip_suffix(".text").unwrap_or(&change.field);
    if is_secret(&before) || is_secret(&after) {
        return vec![format!("{field}  {SENSITIVE}")];
    }
    let short = |text: &str| !text.contains('\n') && text.chars().count() <= BRIEF_VALUE;
    if short(&before) && short(&after) {
        return vec![format!("{field}  {}", pair(&before, &after))];
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

fn pair(before: &str, after: &str) -> String {
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
            ChangeTag::Insert => changed.push(paint.tone(Tone::Add, &format!("+ {text}"))),
            ChangeTag::Delete => changed.push(paint.tone(Tone::Delete, &format!("- {text}"))),
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

/// A value as people read it. Late values say that they are late; references are names.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if is_late(items) => items.iter().map(part).collect(),
        Value::Array(items) if items.iter().all(is_small) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => match reference(fields) {
            Some(reference) => reference,
            None => pretty(value),
        },
        Value::Array(_) => pretty(value),
        other => other.to_string(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Object(fields) => reference(fields).is_some(),
        Value::Array(_) => false,
        _ => true,
    }
}

/// `{type, name}`, a reference, or `{key, value, ...}`, a tag of an Auto Scaling group.
fn reference(fields: &serde_json::Map<String, Value>) -> Option<String> {
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

fn part(item: &Value) -> String {
    item.as_str().map_or_else(|| LATE.to_owned(), str::to_owned)
}

/// The last guard: nothing secret is in a plan, and if it were it would not be shown.
fn is_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(before: Value, after: Value, wide: bool) -> String {
        let change = FieldChange {
            field: "f".to_owned(),
            before,
            after,
        };
        lines(&change, wide, Paint::default()).join("\n")
    }

    #[test]
    fn short_values_stand_side_by_side() {
        assert_eq!(told(json!(1), json!(3), false), "f  1 -> 3");
        assert_eq!(told(json!(null), json!("x"), false), "f  + x");
        assert_eq!(
            told(json!(["a"]), json!(["a", "b"]), false),
            "f  [a] -> [a, b]"
        );
    }

    #[test]
    fn references_are_names_and_late_values_say_so() {
        let late = json!([{"type": "lb", "name": "api", "attribute": "dns_name"}, ":443"]);
        assert_eq!(
            told(json!("x:443"), late, false),
            "f  x:443 -> (known after apply):443"
        );
        assert_eq!(
            told(json!(null), json!({"type": "lb", "name": "api"}), false),
            "f  + lb/api"
        );
    }

    #[test]
    fn long_texts_are_counted_and_shown_when_asked_for() {
        let before: String = (0..40).map(|n| format!("{n}\n")).collect();
        let after = before.replace('1', "x");
        assert_eq!(
            told(json!(before), json!(after), false),
            "f  26 lines changed  (-o wide shows them)"
        );
        assert!(told(json!(before), json!(after), true).contains("- 1\n"));
    }

    #[test]
    fn a_private_key_is_never_shown() {
        let key = json!("-----BEGIN PRIVATE KEY-----\nabc");
        assert_eq!(told(json!(null), key, true), "f  (sensitive)");
    }
}
