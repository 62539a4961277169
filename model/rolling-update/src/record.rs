//! What outlives the process of a rolling update: an object of the state store.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The record of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// Id of the operation.
    pub operation: String,
    /// Problems that were there before it began: they do not stop it.
    pub known_problems: BTreeMap<String, String>,
    /// With `--force`: instances that were launched before this time, in seconds since 1970, are replaced though they are
    /// current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_before: Option<i64>,
    /// The only instance that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
}
