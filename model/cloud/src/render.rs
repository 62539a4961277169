//! AWS objects as JSON for people and for other programs: what `kctl render` writes.

use super::Cloud;
use engine::Resource;
use serde_json::{Map, Value, json};

/// A list of `{type, name, tags, properties}`, sorted by type and name. Properties have AWS' names in snake_case;
/// objects of the cluster appear in them as `{type, name}`, values known only later as `{type, name, attribute}`,
/// or as a list of such and of text where they are part of a text. Tags that an Auto Scaling group does not hand on
/// to its instances are named under `tags_not_propagated`.
pub fn cloud_json(all: &[Cloud]) -> Value {
    let mut all: Vec<&Cloud> = all.iter().collect();
    all.sort_by_key(|one| one.id());
    all.into_iter().map(render_object).collect()
}

fn render_object(cloud: &Cloud) -> Value {
    let id = cloud.id();
    // Plain data with text keys always has a JSON form.
    let json = serde_json::to_value(cloud).unwrap_or_default();
    let mut properties = match json {
        Value::Object(properties) => properties,
        _ => Map::new(),
    };
    properties.remove("type");
    // The logical name is beside the properties already.
    for field in ["name", "logical_name"] {
        if properties.get(field).and_then(Value::as_str) == Some(id.name()) {
            properties.remove(field);
        }
    }
    properties.retain(|_, value| !value.is_null());
    let tags = properties.remove("tags").unwrap_or_else(|| json!({}));
    let (tags, kept) = by_key(tags);
    if !kept.is_empty() {
        properties.insert("tags_not_propagated".into(), kept.into());
    }
    let properties = properties
        .into_iter()
        .map(|(key, value)| (key, flatten_late(value)));
    json!({
        "type": id.kind(),
        "name": id.name(),
        "tags": tags,
        "properties": properties.collect::<Map<String, Value>>(),
    })
}

/// Tags by key, and the keys of those that are not propagated.
fn by_key(tags: Value) -> (Value, Vec<Value>) {
    let Value::Array(list) = tags else {
        return (tags, Vec::new());
    };
    let mut map = Map::new();
    let mut kept = Vec::new();
    for tag in list {
        let Some(key) = tag.get("key").and_then(Value::as_str) else {
            continue;
        };
        if tag.get("propagate_at_launch") == Some(&Value::Bool(false)) {
            kept.push(key.into());
        }
        map.insert(
            key.to_owned(),
            tag.get("value").cloned().unwrap_or_default(),
        );
    }
    (map.into(), kept)
}

/// A text that is one late value alone, as that value.
fn flatten_late(value: Value) -> Value {
    match value {
        Value::Array(list) => match list.as_slice() {
            [only] if only.get("attribute").is_some() => only.clone(),
            _ => list.into_iter().map(flatten_late).collect(),
        },
        Value::Object(map) => {
            let map = map
                .into_iter()
                .map(|(key, value)| (key, flatten_late(value)));
            map.collect::<Map<String, Value>>().into()
        }
        other => other,
    }
}
