//! What differs between two objects of one kind, field by field, from their JSON forms.

use super::plan::FieldChange;
use super::resource::Id;
use super::text::Text;
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields by which the elements of a list are told apart, where they have one.
const KEYS: [&str; 2] = ["key", "Sid"];

/// Every field in which `want` differs from `have`, in the order of the JSON form.
pub(super) fn changes<R: Serialize>(have: &R, want: &R) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let json = |of: &R| serde_json::to_value(of).unwrap_or_default();
    compare("", &json(have), &json(want), &mut found);
    found
}

/// True if nothing but late values keeps this field from being equal.
pub(super) fn only_late(change: &FieldChange) -> bool {
    let Some(text) = late(&change.after) else {
        return false;
    };
    change
        .before
        .as_str()
        .is_none_or(|before| text.matches(before))
}

/// The resources whose attributes are late anywhere in `of`, sorted.
pub(super) fn late_sources<R: Serialize>(of: &R) -> Vec<Id> {
    let mut found = Vec::new();
    collect_late(&serde_json::to_value(of).unwrap_or_default(), &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect_late(value: &Value, found: &mut Vec<Id>) {
    if let Some(text) = late(value) {
        found.extend(text.needs());
        return;
    }
    match value {
        Value::Array(list) => list.iter().for_each(|item| collect_late(item, found)),
        Value::Object(map) => map.values().for_each(|item| collect_late(item, found)),
        _ => {}
    }
}

/// The text in `value`, if it is one with late parts.
fn late(value: &Value) -> Option<Text> {
    let parts = value.as_array()?;
    let text: Text = serde_json::from_value(Value::Array(parts.clone())).ok()?;
    text.as_known().is_none().then_some(text)
}

fn compare(path: &str, have: &Value, want: &Value, found: &mut Vec<FieldChange>) {
    if have == want {
        return;
    }
    match (have, want) {
        (Value::Object(have), Value::Object(want)) if !is_ref(have) && !is_ref(want) => {
            objects(path, have, want, found);
        }
        (Value::Array(have), Value::Array(want)) if is_nested(have) && is_nested(want) => {
            lists(path, have, want, found);
        }
        _ => found.push(FieldChange {
            field: path.to_owned(),
            before: have.clone(),
            after: want.clone(),
        }),
    }
}

/// A reference to another resource is one value, not an object with two fields.
fn is_ref(map: &Map<String, Value>) -> bool {
    map.len() == 2 && map.contains_key("type") && map.contains_key("name")
}

/// A list of objects is compared element by element; any other list is one value.
fn is_nested(list: &[Value]) -> bool {
    list.iter()
        .all(|item| item.as_object().is_some_and(|map| !is_ref(map)))
}

fn objects(
    path: &str,
    have: &Map<String, Value>,
    want: &Map<String, Value>,
    found: &mut Vec<FieldChange>,
) {
    let added = want.keys().filter(|key| !have.contains_key(*key));
    for key in have.keys().chain(added) {
        let field = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        compare(&field, at(have, key), at(want, key), found);
    }
}

fn at<'a>(map: &'a Map<String, Value>, key: &str) -> &'a Value {
    map.get(key).unwrap_or(&Value::Null)
}

fn lists(path: &str, have: &[Value], want: &[Value], found: &mut Vec<FieldChange>) {
    let keyed = KEYS
        .iter()
        .find_map(|key| Some((by_key(have, key)?, by_key(want, key)?)));
    if let Some((have, want)) = keyed {
        let added = want.iter().filter(|(key, _)| find(&have, key).is_null());
        for (key, _) in have.iter().chain(added) {
            let field = format!("{path}[{key}]");
            compare(&field, find(&have, key), find(&want, key), found);
        }
        return;
    }
    let null = Value::Null;
    for index in 0..have.len().max(want.len()) {
        let side = |list: &[Value]| list.get(index).unwrap_or(&null).clone();
        compare(&format!("{path}[{index}]"), &side(have), &side(want), found);
    }
}

type Keyed<'a> = Vec<(&'a str, &'a Value)>;

/// The list by that field, if every element has it and no two the same.
fn by_key<'a>(list: &'a [Value], key: &str) -> Option<Keyed<'a>> {
    let keyed: Option<Keyed<'a>> = list
        .iter()
        .map(|item| Some((item.get(key)?.as_str()?, item)))
        .collect();
    keyed.filter(|keyed| {
        let mut keys: Vec<&str> = keyed.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len() == list.len()
    })
}

fn find<'a>(list: &Keyed<'a>, key: &str) -> &'a Value {
    list.iter()
        .find(|(have, _)| *have == key)
        .map_or(&Value::Null, |(_, value)| value)
}
