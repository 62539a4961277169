//! Equality that says what differs.

use node::yaml::to_yaml;
use serde::Serialize;

/// Panics with the first line that differs, as YAML.
pub fn same<T: PartialEq + Serialize>(after: &T, before: &T, law: &str) {
    if after == before {
        return;
    }
    let text = |value: &T| to_yaml(value).expect("a YAML form");
    let (after, before) = (text(after), text(before));
    let pair = after.lines().zip(before.lines()).find(|(a, b)| a != b);
    panic!("{law}: {pair:?} differ, or nothing that is written");
}
