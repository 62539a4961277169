//! Objects of the state store that machines read: completed spec, node configurations, binaries.

use super::Kind;
use engine::Ref;
use serde::{Deserialize, Serialize};

/// An object under the cluster's base in the state store (which may be `file://` too).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Object {
    /// Key relative to the cluster's base: `cluster-completed.spec`, `igconfig/node/nodes/nodeupconfig-SHA.yaml`, `assets/SHA/amd64/nodeup`.
    pub key: String,
    /// Its content.
    pub content: ObjectContent,
}

/// What an object holds, and how equality is told without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectContent {
    /// Text, compared as text. Never a secret.
    Text(String),
    /// Bytes whose sha256 (hex) is part of the key: presence is equality.
    Sha256(String),
}

impl Kind for S3Object {
    const TYPE: &'static str = "s3_object";

    fn name(&self) -> String {
        self.key.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}
