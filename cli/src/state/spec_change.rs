//! What a command changed in the spec, for the log of operations: which object, how much of it, and digests of it
//! before and after. No values.

use crate::saved_plan::sha256;
use engine::{Action, changes};
use node::yaml;
use serde::{Deserialize, Serialize};
use spec::api::{Resource, Spec};

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecChange {
    /// `InstanceGroup nodes-eu-west-1a`.
    pub object: String,
    /// What was done to it.
    pub action: Action,
    /// How many fields differ, of an update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<usize>,
    /// sha256 of its text before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// sha256 of its text after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl SpecChange {
    /// From one state of an object to another; `None` if there is neither, or they are the same.
    pub fn of<S: Spec>(before: Option<&Resource<S>>, after: Option<&Resource<S>>) -> Option<Self> {
        let name = before.or(after)?.name();
        let action = match (before, after) {
            (None, _) => Action::Create,
            (_, None) => Action::Delete,
            _ => Action::Update,
        };
        let fields = before
            .zip(after)
            .map(|(before, after)| changes(before, after).len());
        // The digest of the text that is stored.
        let digest = |object: &Resource<S>| {
            yaml::to_yaml(object)
                .ok()
                .map(|text| sha256(text.as_bytes()))
        };
        (fields != Some(0)).then(|| Self {
            object: format!("{} {name}", S::KIND),
            action,
            fields,
            before: before.and_then(digest),
            after: after.and_then(digest),
        })
    }
}
