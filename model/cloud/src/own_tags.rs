//! Which tags are kctl's, and which issuers of tokens. Tools of an account tag everything they see (cost reports, AWS Config,
//! backups), and add-ons want tags on subnets and groups: what others set is no difference and is not removed. So kctl remembers the keys that it has
//! ever set, by kind of object, and looks at no other. (kOps compares the keys that it wants only, `intersectTags`, and so
//! never removes what was taken out of the spec.)

use super::{Cloud, Tags};
use engine::{Id, Resource};
use node::names::{NAME_TAG, REVISION_TAG};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The format of the stored form.
const FORMAT: u32 = 1;

/// Keys of tags that kctl sets or has set, by kind of object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTags {
    format: u32,
    keys: BTreeMap<String, BTreeSet<String>>,
    /// Issuers that the cluster has or has had, with their discovery store. What AWS has of them is found by their names only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    issuers: BTreeMap<String, String>,
}

impl Default for OwnTags {
    /// None yet.
    fn default() -> Self {
        Self {
            format: FORMAT,
            keys: BTreeMap::new(),
            issuers: BTreeMap::new(),
        }
    }
}

/// Why the stored form cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is something else.
    #[error("it is not a list of the keys of kctl's tags")]
    Unreadable(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("it has format {0}, and this release knows {FORMAT}")]
    Format(u32),
}

impl OwnTags {
    /// Key of the stored form, relative to the cluster's base in the state store.
    pub const KEY: &str = "tags.json";

    /// Reads the stored form.
    pub fn parse_stored(bytes: &[u8]) -> Result<Self, Error> {
        let read: Self = serde_json::from_slice(bytes)?;
        if read.format == FORMAT {
            Ok(read)
        } else {
            Err(Error::Format(read.format))
        }
    }

    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        format!("{value:#}\n")
    }

    /// Adds what is set on these objects.
    pub fn add_tags_of(&mut self, of: &[Cloud]) {
        for one in of {
            let keys = keys_of(one);
            if !keys.is_empty() {
                let known = self.keys.entry(one.id().kind().to_owned()).or_default();
                known.extend(keys);
            }
        }
    }

    /// Adds an issuer of service accounts' tokens, and its store.
    pub fn add_issuer(&mut self, issuer: &str, store: &str) {
        self.issuers.insert(issuer.to_owned(), store.to_owned());
    }

    /// Issuers that the cluster has or has had, with their discovery store.
    pub fn issuers(&self) -> &BTreeMap<String, String> {
        &self.issuers
    }

    /// Adds these keys to every kind of object that has tags.
    pub fn add_everywhere<'a>(&mut self, keys: impl Iterator<Item = &'a String>) {
        for key in keys {
            for known in self.keys.values_mut() {
                known.insert(key.clone());
            }
        }
    }

    /// True if kctl sets or has set that tag on objects of that kind.
    pub fn has_set(&self, kind: &str, key: &str) -> bool {
        let always = [NAME_TAG, REVISION_TAG].contains(&key);
        always || self.keys.get(kind).is_some_and(|keys| keys.contains(key))
    }

    /// Those of the tags of an object of that kind that are kctl's.
    pub fn only_own(&self, kind: &str, mut tags: Tags) -> Tags {
        tags.retain(|key, _| self.has_set(kind, key));
        tags
    }

    /// The object without the tags of others.
    #[must_use]
    pub fn without_others(&self, mut of: Cloud) -> Cloud {
        let id: Id = of.id();
        if let Cloud::AutoscalingGroup(group) = &mut of {
            group.tags.retain(|tag| self.has_set(id.kind(), &tag.key));
        } else if let Some(tags) = of.tags_mut() {
            tags.retain(|key, _| self.has_set(id.kind(), key));
        }
        of
    }
}

fn keys_of(of: &Cloud) -> Vec<String> {
    if let Cloud::AutoscalingGroup(group) = of {
        return group.tags.iter().map(|tag| tag.key.clone()).collect();
    }
    let mut of = of.clone();
    let tags = of.tags_mut();
    tags.map(|tags| tags.keys().cloned().collect())
        .unwrap_or_default()
}
