//! A change of the spec in the log of operations: the object, the number of changed fields, and digests before and after. No
//! values.

use engine::{Action, changes};
use node::digest::sha256_hex;
use node::yaml;
use serde::{Deserialize, Serialize};
use spec::api::{Resource, Spec};

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecChange {
    /// `InstanceGroup nodes-eu-west-1a`.
    pub object: String,
    /// Created, updated or deleted.
    pub action: Action,
    /// Number of changed fields of an update.
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
    /// The change between two states of an object; `None` if there is none.
    pub fn from_objects<S: Spec>(
        before: Option<&Resource<S>>,
        after: Option<&Resource<S>>,
    ) -> Option<Self> {
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
        let digest =
            |object: &Resource<S>| yaml::to_yaml(object).ok().map(|text| sha256_hex(&text));
        (fields != Some(0)).then(|| Self {
            object: format!("{} {name}", S::KIND),
            action,
            fields,
            before: before.and_then(digest),
            after: after.and_then(digest),
        })
    }
}
