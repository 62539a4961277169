//! `metadata` of an object. What we do not know is kept: other tools put their own there.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::fields::described;

described! {
    /// Name, labels and annotations of an object.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Metadata {
        /// Name, unique among the objects of its kind in the cluster. That of a Cluster is a DNS name.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub name: String,
        /// Labels; `kops.k8s.io/cluster` names the cluster that an InstanceGroup or SSHCredential belongs to.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        /// Annotations. kctl keeps them and does not act on them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub annotations: BTreeMap<String, String>,
        /// When the object was first stored, in RFC 3339. kctl writes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub creation_timestamp: Option<String>,
        /// Everything else, as it was read.
        #[serde(flatten)]
        pub other: BTreeMap<String, Value>,
    }
}

/// Label that names the cluster of an InstanceGroup or SSHCredential.
pub const CLUSTER_LABEL: &str = "kops.k8s.io/cluster";

impl Metadata {
    /// Metadata with a name and nothing else.
    pub fn with_name(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The cluster an object says it belongs to.
    pub fn cluster(&self) -> Option<&str> {
        self.labels.get(CLUSTER_LABEL).map(String::as_str)
    }
}

// By hand: serde's flatten would read values before it knows their types, and so lose both the
// text of scalars and the place of errors.
impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
                let mut metadata = Metadata::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => metadata.name = map.next_value()?,
                        "labels" => metadata.labels = map.next_value()?,
                        "annotations" => metadata.annotations = map.next_value()?,
                        "creationTimestamp" => metadata.creation_timestamp = map.next_value()?,
                        _ => {
                            metadata.other.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(metadata)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
