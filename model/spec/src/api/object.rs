//! The objects of the spec: an envelope of `apiVersion`, `kind` and `metadata` around a spec.

use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::cluster::ClusterSpec;
use super::instance_group::InstanceGroupSpec;
use super::keyset::KeysetSpec;
use super::metadata::Metadata;
use super::ssh_credential::SSHCredentialSpec;

/// The one version of the wire format.
pub const API_VERSION: &str = "kops.k8s.io/v1alpha2";

/// How files may write it; the second is kOps' of old.
pub const API_VERSIONS: [&str; 2] = [API_VERSION, "kops/v1alpha2"];

/// A spec that has an envelope.
pub trait Spec: Serialize + DeserializeOwned {
    /// The envelope's `kind`.
    const KIND: &'static str;
}

impl Spec for ClusterSpec {
    const KIND: &'static str = "Cluster";
}

impl Spec for InstanceGroupSpec {
    const KIND: &'static str = "InstanceGroup";
}

impl Spec for SSHCredentialSpec {
    const KIND: &'static str = "SSHCredential";
}

impl Spec for KeysetSpec {
    const KIND: &'static str = "Keyset";
}

/// A spec with its envelope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource<S> {
    /// Name, labels and the like.
    pub metadata: Metadata,
    /// What the user said. On the heap: tens of kilobytes, of which callers hold several copies.
    pub spec: Box<S>,
}

pub type Cluster = Resource<ClusterSpec>;
/// A group of instances of a cluster.
pub type InstanceGroup = Resource<InstanceGroupSpec>;
/// A public SSH key of a cluster.
pub type SSHCredential = Resource<SSHCredentialSpec>;
/// A set of keys of a cluster.
pub type Keyset = Resource<KeysetSpec>;

impl<S> Resource<S> {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

impl<S: Spec> Serialize for Resource<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let mut object = serializer.serialize_struct("Resource", 4)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", S::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire<S> {
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Box<S>>,
}

impl<'de, S: Spec + Default> Deserialize<'de> for Resource<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::<S>::deserialize(deserializer)?;
        if wire.kind != S::KIND {
            return Err(D::Error::custom(format!(
                "kind is {}, not {}",
                wire.kind,
                S::KIND
            )));
        }
        if !API_VERSIONS.contains(&wire.api_version.as_str()) {
            return Err(D::Error::custom(format!(
                "apiVersion is {}, not {API_VERSION}",
                wire.api_version
            )));
        }
        Ok(Self {
            metadata: wire.metadata,
            spec: wire.spec.unwrap_or_default(),
        })
    }
}

/// Any object that a spec file may hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // A few per run; a box would be in every match.
pub enum Object {
    Cluster(Cluster),
    /// A group of instances.
    InstanceGroup(InstanceGroup),
    /// A public SSH key.
    SSHCredential(SSHCredential),
    /// A set of keys.
    Keyset(Keyset),
}

impl Object {
    /// The object's `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(_) => ClusterSpec::KIND,
            Self::InstanceGroup(_) => InstanceGroupSpec::KIND,
            Self::SSHCredential(_) => SSHCredentialSpec::KIND,
            Self::Keyset(_) => KeysetSpec::KIND,
        }
    }

    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Cluster(object) => &object.metadata,
            Self::InstanceGroup(object) => &object.metadata,
            Self::SSHCredential(object) => &object.metadata,
            Self::Keyset(object) => &object.metadata,
        }
    }
}
