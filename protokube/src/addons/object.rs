//! Identity of an API object.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Kind, namespace and name of an API object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectId {
    /// API version, for example `apps/v1`.
    pub api_version: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
    /// Namespace; empty if the object has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

impl ObjectId {
    /// The identity of an object; fails if a part is missing.
    pub(crate) fn from_object(object: &Value) -> anyhow::Result<Self> {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let needed =
            |pointer: &str| text(pointer).with_context(|| format!("an object has no {pointer}"));
        Ok(Self {
            api_version: needed("/apiVersion")?,
            kind: needed("/kind")?,
            namespace: text("/metadata/namespace").unwrap_or_default(),
            name: needed("/metadata/name")?,
        })
    }

    /// The namespace for an object of a namespaced kind: `default` if it has none.
    pub(crate) fn namespace(&self) -> &str {
        if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}
