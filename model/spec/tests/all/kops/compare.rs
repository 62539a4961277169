//! What two values differ in, place by place.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

/// A place at which kctl and kOps differ. `None`: there is nothing there.
pub struct Difference {
    pub place: String,
    pub ours: Option<Value>,
    pub theirs: Option<Value>,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
        let (ours, theirs) = (said(&self.ours), said(&self.theirs));
        write!(f, "{}: kctl {ours} kOps {theirs}", self.place)
    }
}

/// Objects by place. The second part of a key tells objects apart that have the same place.
pub type Objects = BTreeMap<(String, String), Value>;

/// An object of one side or both.
pub struct ComparedObject {
    pub place: String,
    pub is_ours: bool,
    pub is_theirs: bool,
    pub differences: Vec<Difference>,
}

/// Every object of either side.
pub fn compare_objects(ours: &Objects, theirs: &Objects) -> Vec<ComparedObject> {
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let compared = keys.into_iter().map(|key| {
        let (ours, theirs) = (ours.get(key), theirs.get(key));
        ComparedObject {
            place: key.0.clone(),
            is_ours: ours.is_some(),
            is_theirs: theirs.is_some(),
            differences: compare(&key.0, ours, theirs),
        }
    });
    compared.collect()
}

/// The deepest places that differ. The order of arguments and the end of a text say nothing.
pub fn compare(place: &str, ours: Option<&Value>, theirs: Option<&Value>) -> Vec<Difference> {
    if ours == theirs {
        return Vec::new();
    }
    let below = |step: &dyn Display| match place.contains(" /") {
        true => format!("{place}/{step}"),
        false => format!("{place} /{step}"),
    };
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            let each = names
                .into_iter()
                .flat_map(|name| compare(&below(name), ours.get(name), theirs.get(name)));
            each.collect()
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) if place.ends_with("/args") => {
            let only = |these: &[Value], those: &[Value]| -> Value {
                let only = these.iter().filter(|one| !those.contains(one));
                only.cloned().collect()
            };
            let (mine, other) = (only(ours, theirs), only(theirs, ours));
            if mine == other {
                return Vec::new();
            }
            one_difference(place, Some(&mine), Some(&other))
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs).enumerate();
            let each = pairs.flat_map(|(index, (ours, theirs))| {
                compare(&below(&index), Some(ours), Some(theirs))
            });
            each.collect()
        }
        (Some(Value::String(ours)), Some(Value::String(theirs)))
            if ours.trim_end() == theirs.trim_end() =>
        {
            Vec::new()
        }
        (ours, theirs) => one_difference(place, ours, theirs),
    }
}

fn one_difference(place: &str, ours: Option<&Value>, theirs: Option<&Value>) -> Vec<Difference> {
    vec![Difference {
        place: place.to_owned(),
        ours: ours.cloned(),
        theirs: theirs.cloned(),
    }]
}

/// How many single values there are in it; what is empty counts as one.
pub fn count_values(value: &Value) -> usize {
    let sum: usize = match value {
        Value::Object(map) => map.values().map(count_values).sum(),
        Value::Array(list) => list.iter().map(count_values).sum(),
        _ => 1,
    };
    sum.max(1)
}
