//! What differs between two objects of one kind, field by field, from their JSON forms.

use super::plan::FieldChange;
use super::resource::Id;
use super::text::Text;
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that identify the elements of a list, where they have one.
const KEYS: [&str; 2] = ["key", "Sid"];

/// Every field in which `want` differs from `have`, in the order of the JSON form.
pub fn changes<R: Serialize>(have: &R, want: &R) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let json = |of: &R| serde_json::to_value(of).unwrap_or_default();
    compare_values("", &json(have), &json(want), &mut found);
    found
}

/// True if nothing but late values keeps this field from being equal.
pub(super) fn only_late(change: &FieldChange) -> bool {
    let Some(text) = late_text(&change.after) else {
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
    if let Some(text) = late_text(value) {
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
fn late_text(value: &Value) -> Option<Text> {
    let parts = value.as_array()?;
    let text: Text = serde_json::from_value(Value::Array(parts.clone())).ok()?;
    text.as_known().is_none().then_some(text)
}

fn compare_values(path: &str, have: &Value, want: &Value, found: &mut Vec<FieldChange>) {
    if have == want {
        return;
    }
    match (have, want) {
        (Value::Object(have), Value::Object(want)) if !is_ref(have) && !is_ref(want) => {
            compare_objects(path, have, want, found);
        }
        (Value::Array(have), Value::Array(want)) if is_nested(have) && is_nested(want) => {
            compare_lists(path, have, want, found);
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

fn compare_objects(
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
        compare_values(&field, value_at(have, key), value_at(want, key), found);
    }
}

fn value_at<'a>(map: &'a Map<String, Value>, key: &str) -> &'a Value {
    map.get(key).unwrap_or(&Value::Null)
}

fn compare_lists(path: &str, have: &[Value], want: &[Value], found: &mut Vec<FieldChange>) {
    let keyed = KEYS
        .iter()
        .find_map(|key| Some((by_key(have, key)?, by_key(want, key)?)));
    if let Some((have, want)) = keyed {
        let added = want
            .iter()
            .filter(|(key, _)| find_keyed(&have, key).is_null());
        for (key, _) in have.iter().chain(added) {
            let field = format!("{path}[{key}]");
            compare_values(
                &field,
                find_keyed(&have, key),
                find_keyed(&want, key),
                found,
            );
        }
        return;
    }
    let null = Value::Null;
    for index in 0..have.len().max(want.len()) {
        let side = |list: &[Value]| list.get(index).unwrap_or(&null).clone();
        compare_values(&format!("{path}[{index}]"), &side(have), &side(want), found);
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

fn find_keyed<'a>(list: &Keyed<'a>, key: &str) -> &'a Value {
    list.iter()
        .find(|(have, _)| *have == key)
        .map_or(&Value::Null, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn key_fields(have: &Value, want: &Value) -> Vec<String> {
        let one = |change: FieldChange| {
            format!("{}: {} -> {}", change.field, change.before, change.after)
        };
        changes(have, want).into_iter().map(one).collect()
    }

    #[test]
    fn a_field_is_named_by_its_path() {
        let have = json!({"tags": {"a": "1"}, "disks": [{"ebs": {"size": 8}}], "size": 1});
        let want = json!({"tags": {"b": "2"}, "disks": [{"ebs": {"size": 9}}], "size": 1});
        let changes = [
            "disks[0].ebs.size: 8 -> 9",
            "tags.a: \"1\" -> null",
            "tags.b: null -> \"2\"",
        ];
        assert_eq!(key_fields(&have, &want), changes);
    }

    #[test]
    fn elements_with_a_key_are_compared_by_it_and_plain_lists_as_a_whole() {
        let have = json!({"tags": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}], "zones": ["a"]});
        let want = json!({"tags": [{"key": "b", "value": "3"}], "zones": ["a", "b"]});
        let changes = [
            r#"tags[a]: {"key":"a","value":"1"} -> null"#,
            r#"tags[b].value: "2" -> "3""#,
            r#"zones: ["a"] -> ["a","b"]"#,
        ];
        assert_eq!(key_fields(&have, &want), changes);
    }

    #[test]
    fn a_reference_is_one_value() {
        let to = |name: &str| json!({"vpc": {"type": "vpc", "name": name}});
        let changes = key_fields(&to("a"), &to("b"));
        assert_eq!(changes.len(), 1);
        assert!(changes[0].starts_with("vpc: "));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[kn]ey|type|name", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_have_no_changes_and_others_name_real_ones(have in value(), want in value()) {
            prop_assert!(changes(&have, &have).is_empty());
            // A field that is null and one that is not there are the same.
            for change in changes(&have, &want) {
                prop_assert_ne!(change.before, change.after);
            }
        }
    }
}
