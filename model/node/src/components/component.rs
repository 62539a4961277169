//! Components of Kubernetes that run as pods.

use super::Flags;
use crate::manifests::{EnvVar, Resources};
use serde::{Deserialize, Serialize};

/// Image, flags and resources of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    pub image: String,
    /// Flags, except those that depend on the instance.
    pub flags: Flags,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Resource requests and limits.
    pub resources: Resources,
}
