//! How IAM gives policy documents back, and what is fixed about the tags of roles.

use crate::names::tags;
use aws_sdk_iam::types::Tag;
use cloud::Tags;
use serde_json::Value;

/// Says that a role has policies beside its own, so that they are looked for: AWS lists them role by role.
/// Written before the first of them and removed after the last; no part of the wanted tags.
pub(super) const POLICIES_TAG: &str = "kctl.dev/policies";

/// A document as IAM gives it: JSON in percent encoding.
pub(super) fn parse_document(document: &str) -> Value {
    let text = percent_decoded(document);
    serde_json::from_str(&text).map_or(Value::String(text), sort_document)
}

/// Lists of actions and resources in order: IAM does not mind it, and may not keep it.
pub(super) fn sort_document(document: Value) -> Value {
    match document {
        Value::Array(mut items) => {
            if items.iter().all(Value::is_string) {
                items.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
            Value::Array(items.into_iter().map(sort_document).collect())
        }
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, sort_document(value)))
            .collect(),
        other => other,
    }
}

/// The observed document as it is wanted, if it says the same.
pub(super) fn as_wanted(seen: Value, wanted: Option<&Value>) -> Value {
    match wanted {
        Some(wanted) if sort_document(wanted.clone()) == seen => wanted.clone(),
        _ => seen,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let pair = after.get(..2).filter(|_| *first == b'%');
        let pair = pair.and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name at the end of an ARN: IAM's ids are unique only with what stands before, its calls take names.
pub(crate) fn name_of(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// Tags as IAM gives them.
pub(super) fn read_tags(of: &[Tag]) -> Tags {
    tags(of.iter().map(|tag| (tag.key(), tag.value())))
}

/// Tags as IAM takes them.
pub(super) fn write_tags(of: &Tags) -> Vec<Tag> {
    let write = |(key, value)| Tag::builder().key(key).value(value).build().ok();
    of.iter().filter_map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::{as_wanted, parse_document, percent_decoded};
    use serde_json::json;

    #[test]
    fn a_document_is_read_from_percent_encoding() {
        assert_eq!(percent_decoded("%7B%22a%22%3A%201%7D"), "{\"a\": 1}");
        assert_eq!(percent_decoded("100% sure, 5%"), "100% sure, 5%");
        assert_eq!(
            parse_document("%7B%22Action%22%3A%5B%22b%22%2C%22a%22%5D%7D"),
            json!({"Action": ["a", "b"]})
        );
    }

    #[test]
    fn the_order_of_a_list_of_names_is_no_difference() {
        let wanted = json!({"Statement": [{"Action": ["z", "a"], "Sid": "1"}, {"Action": "b"}]});
        let same = json!({"Statement": [{"Action": ["a", "z"], "Sid": "1"}, {"Action": "b"}]});
        let other = json!({"Statement": [{"Action": "b"}, {"Action": ["a", "z"], "Sid": "1"}]});
        assert_eq!(as_wanted(same, Some(&wanted)), wanted);
        assert_eq!(as_wanted(other.clone(), Some(&wanted)), other);
    }
}
