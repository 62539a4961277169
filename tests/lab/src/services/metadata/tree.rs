//! An instance's metadata as paths: what is at a path, and what a folder lists.

use crate::services::mirror::percent_decode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Versions of the metadata, oldest first; all have the same tree here.
pub const VERSIONS: [&str; 18] = [
    "1.0",
    "2007-01-19",
    "2007-03-01",
    "2007-08-29",
    "2007-10-10",
    "2007-12-15",
    "2008-02-01",
    "2008-09-01",
    "2009-04-04",
    "2011-01-01",
    "2014-11-05",
    "2016-09-02",
    "2018-09-24",
    "2019-10-01",
    "2021-03-23",
    "2021-07-15",
    "2022-09-24",
    "latest",
];

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub enum TreeEntry {
    Text(String),
    /// User data: bytes of any kind.
    Data(Vec<u8>),
}

/// What EC2 has at `path` for an instance whose tree is `{"meta-data": ..., "dynamic": ..., "user-data": base64}`.
/// Folders answer with and without a slash at the end, leaves too.
pub fn find_path(tree: &Value, path: &str) -> Option<TreeEntry> {
    let path = percent_decode(path)?;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let Some(version) = parts.next() else {
        return Some(TreeEntry::Text(VERSIONS.join("\n")));
    };
    if !VERSIONS.contains(&version) {
        return None;
    }
    let rest: Vec<&str> = parts.collect();
    match rest.as_slice() {
        [] => {
            let there = |name: &&str| tree.get(*name).is_some_and(|value| !value.is_null());
            let names = ["dynamic", "meta-data", "user-data"]
                .into_iter()
                .filter(there);
            Some(TreeEntry::Text(names.collect::<Vec<_>>().join("\n")))
        }
        ["user-data"] => {
            let data = STANDARD.decode(tree.get("user-data")?.as_str()?).ok()?;
            Some(TreeEntry::Data(data))
        }
        [root @ ("meta-data" | "dynamic"), below @ ..] => {
            let mut at = tree.get(root)?;
            for name in below {
                at = at.as_object()?.get(*name)?;
            }
            match (below, at) {
                (["public-keys"], Value::Object(keys)) => Some(TreeEntry::Text(key_list(keys))),
                _ => value_text(at).map(TreeEntry::Text),
            }
        }
        _ => None,
    }
}

/// What lists the launch's keys: `0=NAME`, reached as `0`. The name is the key's comment.
fn key_list(keys: &Map<String, Value>) -> String {
    let line = |(index, key): (&String, &Value)| {
        let key = key.get("openssh-key").and_then(Value::as_str);
        let comment = key.and_then(|key| key.trim_end().splitn(3, ' ').nth(2));
        format!("{index}={}", comment.unwrap_or_default())
    };
    keys.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(folder) => {
            let entries = folder.iter().filter(|(_, value)| !value.is_null());
            let line = |(name, value): (&String, &Value)| {
                format!("{name}{}", if value.is_object() { "/" } else { "" })
            };
            Some(entries.map(line).collect::<Vec<_>>().join("\n"))
        }
        Value::Array(lines) => {
            let lines: Option<Vec<String>> = lines.iter().map(value_text).collect();
            lines.map(|lines| lines.join("\n"))
        }
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}
