//! What the engine asks of a resource: a name, what it refers to, what cannot change in place.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Names one resource: its kind (Terraform's type without `aws_`) and its logical name.
/// Written `kind/name`; stable, unique within a cluster, shown to users.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Id {
    kind: String,
    name: String,
}

impl Id {
    /// An id from its two parts.
    pub fn new(kind: &str, name: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.into(),
        }
    }

    /// The kind: Terraform's type without `aws_`, for example `launch_template`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The logical name, for example `nodes.prod.example.com`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(Self::new(kind, name)),
            _ => Err(format!(
                "{text:?} is not a resource id of the form kind/name"
            )),
        }
    }
}

/// A reference from one resource to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ref {
    /// A resource of this cluster, by kind and logical name.
    Own {
        /// The kind of the resource referred to.
        #[serde(rename = "type")]
        kind: String,
        name: String,
    },
    /// Something the user gave by its AWS id (or name, or ARN); never written by kctl.
    Given(String),
}

impl Ref {
    /// A reference to a resource of this cluster.
    pub fn own(id: &Id) -> Self {
        Self::Own {
            kind: id.kind().to_owned(),
            name: id.name().to_owned(),
        }
    }

    /// The resource of this cluster that is referred to, if it is one.
    pub fn id(&self) -> Option<Id> {
        match self {
            Self::Own { kind, name } => Some(Id::new(kind, name.clone())),
            Self::Given(_) => None,
        }
    }
}

/// One object of some world, as plain data: the desired state and the observed state have the same type.
/// Only fields that kctl owns exist in it, so that nothing else can show as a difference.
pub trait Resource: Clone + fmt::Debug + PartialEq + Serialize {
    fn id(&self) -> Id;

    /// Every resource of this cluster it refers to: those must exist before it and outlive it.
    fn needs(&self) -> Vec<Id>;

    /// Why the world cannot turn `have` into `self` in place, or `None` if it can.
    /// The text says what to do by hand. Kinds whose successor can stand beside the old object never
    /// get here: they take the next name of their series before planning.
    fn refuses(&self, have: &Self) -> Option<String>;

    /// Itself, with what `have` has beyond what was asked for and the world gives unasked: that is no difference.
    #[must_use]
    fn accepting(&self, _have: &Self) -> Self {
        self.clone()
    }

    /// The series of successors that it belongs to, and its place there, from 1; `None`: it has no successors.
    /// Names of a series need not show it: AWS' short names end in a hash.
    fn series(&self) -> Option<(String, u32)> {
        None
    }

    /// True if turning `have` into `self` can change that attribute, so that who waits for it has to
    /// wait for the change: the `latest_version` of a launch template does, a DNS name does not.
    fn attr_changes(&self, _have: &Self, _attribute: &str) -> bool {
        false
    }

    /// True if removing it and making it again loses nothing that matters: no content, no instances. Decides
    /// whether what hangs on the wrong one of two duplicates may be made again on the right one.
    fn can_be_remade(&self) -> bool {
        false
    }

    /// True if removing it loses what nothing brings back. Only the plan for nothing, in which everything goes, deletes
    /// such an object: every other plan keeps it, whether it is wanted, and whether there are two of it.
    fn holds_data(&self) -> bool {
        false
    }

    /// Itself with every late value that `attr(id, attribute)` knows written in.
    #[must_use]
    fn resolved(&self, attr: &dyn Fn(&Id, &str) -> Option<String>) -> Self;

    /// True if a create that dies half-way can leave an object that a second create would duplicate:
    /// the world has neither a unique name nor a client token for it. Such creates are journaled.
    fn needs_journal(&self) -> bool;
}
