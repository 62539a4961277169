//! A component of Kubernetes.

use super::Flags;
use crate::manifests::{EnvVar, Resources};
use serde::{Deserialize, Serialize};

/// A component of Kubernetes, as its pod runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Image.
    pub image: String,
    /// Flags, without those of the instance.
    pub flags: Flags,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Requests and limits.
    pub resources: Resources,
}
