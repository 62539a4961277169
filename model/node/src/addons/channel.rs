//! The list of a cluster's addons in the state store, in the form and at the place of kOps' bootstrap channel.

use super::NotAManifest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Key of the list, relative to the cluster's base in the state store.
pub const CHANNEL_KEY: &str = "addons/bootstrap-channel.yaml";

/// The list. Fields that this release does not know are passed over: a newer kctl may have written it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// `Addons`.
    pub kind: String,
    /// Its name.
    pub metadata: ChannelMetadata,
    /// The addons.
    pub spec: ChannelSpec,
}

/// What the list is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMetadata {
    /// `bootstrap`.
    pub name: String,
}

/// The addons of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSpec {
    /// In the order in which they are applied.
    pub addons: Vec<ChannelAddon>,
}

/// An addon in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelAddon {
    /// Its name, each once.
    pub name: String,
    /// Which of its manifests this is.
    pub id: String,
    /// Where that is, relative to `addons/`.
    pub manifest: String,
    /// sha256 (hex) of it.
    pub manifest_hash: String,
    /// Labels that its objects carry.
    pub selector: BTreeMap<String, String>,
}

impl ChannelAddon {
    /// Key of its manifest, relative to the cluster's base in the state store.
    pub fn key(&self) -> String {
        format!("addons/{}", self.manifest)
    }
}

/// Reads the list; refuses one that has an addon twice.
pub fn read_channel(text: &str) -> Result<Channel, NotAManifest> {
    let wrong = |why: String| NotAManifest {
        what: CHANNEL_KEY.to_owned(),
        why,
    };
    let channel: Channel =
        serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut names: Vec<&str> = channel
        .spec
        .addons
        .iter()
        .map(|addon| addon.name.as_str())
        .collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair.first() == pair.last());
    match twice.and_then(|pair| pair.first()) {
        Some(name) => Err(wrong(format!("{name} is there twice"))),
        None => Ok(channel),
    }
}
