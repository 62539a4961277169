//! Helpers that fill in defaults. A value that is set is never changed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Sets a field that is not set.
pub(super) fn fill<T>(field: &mut Option<T>, value: impl Into<T>) {
    field.get_or_insert_with(|| value.into());
}

/// Fills an empty list.
pub(super) fn fill_list(field: &mut Vec<String>, values: &[&str]) {
    if field.is_empty() {
        *field = values.iter().map(|value| (*value).to_owned()).collect();
    }
}

/// `base` with all set fields of `over` on top, maps key by key. Fields of the spec's structs that
/// are not set are not serialized, so everything in the serialized form of `over` was set.
pub(super) fn overlay_fields<T: Serialize + DeserializeOwned>(
    base: &T,
    over: &T,
) -> Result<T, serde_json::Error> {
    let mut merged = serde_json::to_value(base)?;
    merge_values(&mut merged, serde_json::to_value(over)?);
    serde_json::from_value(merged)
}

fn merge_values(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge_values(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use super::{fill, fill_list, overlay_fields};
    use crate::api::kubelet::KubeletConfigSpec;

    #[test]
    fn what_is_there_stays() {
        let mut field = Some(1);
        fill(&mut field, 2);
        assert_eq!(field, Some(1));
        let mut list = vec!["said".to_owned()];
        fill_list(&mut list, &["default"]);
        assert_eq!(list, ["said"]);
    }

    #[test]
    fn an_overlay_wins_field_by_field_and_false_is_a_value() {
        let gates = |gates: &[(&str, &str)]| {
            let pairs = gates
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            pairs.collect()
        };
        let base = KubeletConfigSpec {
            log_level: Some(2),
            fail_swap_on: Some(true),
            feature_gates: gates(&[("A", "true"), ("B", "true")]),
            ..KubeletConfigSpec::default()
        };
        let over = KubeletConfigSpec {
            max_pods: Some(30),
            fail_swap_on: Some(false),
            feature_gates: gates(&[("B", "false")]),
            ..KubeletConfigSpec::default()
        };
        let merged = overlay_fields(&base, &over).unwrap();
        assert_eq!(merged.log_level, Some(2));
        assert_eq!(merged.max_pods, Some(30));
        assert_eq!(merged.fail_swap_on, Some(false));
        assert_eq!(
            merged.feature_gates,
            gates(&[("A", "true"), ("B", "false")])
        );
    }
}
