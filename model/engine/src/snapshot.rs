//! What one sweep over the world saw.

use super::resource::{Id, Resource};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Attributes that other resources may wait for, by name: `dns_name`, `latest_version`, `arn`, ...
pub type Attrs = BTreeMap<String, String>;

/// One object as the world has it, in logical names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed<R> {
    /// The object in the same type as the desired state; references already translated to logical names.
    pub resource: R,
    /// The world's own id: `vpc-0abc`, an ARN, a path.
    pub physical: String,
    /// Attributes of it that others may wait for.
    pub attrs: Attrs,
    /// When the world says it was made (RFC 3339), where it says so; decides which of two duplicates stays.
    pub created: Option<String>,
    /// Physical ids of the objects of this cluster that it refers to. Logical names cannot tell which of
    /// two duplicates is meant.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uses: BTreeSet<String>,
    /// True if something that is no resource of ours uses it: a volume is attached, an address serves.
    #[serde(default)]
    pub in_use: bool,
}

impl<R: Resource> Observed<R> {
    /// Whatever it may refer to: ids with physical ids. Physical ids of different kinds may be the same
    /// (names), so that neither says enough alone.
    pub(super) fn physical_ids(&self) -> impl Iterator<Item = (Id, &str)> {
        let needs = self.resource.needs();
        let pairs = self.uses.iter().map(move |used| {
            let with = |need: &Id| (need.clone(), used.as_str());
            needs.iter().map(with).collect::<Vec<_>>()
        });
        pairs.flatten()
    }
}

/// Everything of this cluster that one sweep saw. Two items may have the same id: duplicates, which
/// the planner resolves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot<R> {
    /// The objects, in any order.
    pub items: Vec<Observed<R>>,
}

impl<R> Default for Snapshot<R> {
    /// An empty world.
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<R: Resource> Snapshot<R> {
    /// The first object with that id.
    pub fn find(&self, id: &Id) -> Option<&Observed<R>> {
        self.items.iter().find(|item| item.resource.id() == *id)
    }

    /// The attribute of the object with that id, if both are there.
    pub fn attr(&self, id: &Id, attribute: &str) -> Option<String> {
        self.find(id)
            .and_then(|item| item.attrs.get(attribute).cloned())
    }
}
