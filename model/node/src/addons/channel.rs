//! The list of a cluster's addons in the state store. Format and key are those of kOps' bootstrap channel.

use super::NotAManifest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Key of the list, relative to the cluster's base in the state store.
pub const CHANNEL_KEY: &str = "addons/bootstrap-channel.yaml";

/// The list of addons. Unknown fields are ignored, because a newer kctl may have written the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Always `Addons`.
    pub kind: String,
    /// Name of the list.
    pub metadata: ChannelMetadata,
    pub spec: ChannelSpec,
}

/// Metadata of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMetadata {
    /// Always `bootstrap`.
    pub name: String,
}

/// Content of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSpec {
    /// Addons in the order in which they are applied.
    pub addons: Vec<ChannelAddon>,
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelAddon {
    /// Name of the addon; unique in the list.
    pub name: String,
    /// Id of this manifest among those of the addon.
    pub id: String,
    /// Key of the manifest relative to `addons/`.
    pub manifest: String,
    /// sha256 (hex) of the manifest.
    pub manifest_hash: String,
    /// Labels of the addon's objects.
    pub selector: BTreeMap<String, String>,
}

impl ChannelAddon {
    /// Key of the manifest, relative to the cluster's base in the state store.
    pub fn manifest_key(&self) -> String {
        format!("addons/{}", self.manifest)
    }
}

/// Parses the list. Fails if it has an addon twice.
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
        Some(name) => Err(wrong(format!("the addon {name} is listed twice"))),
        None => Ok(channel),
    }
}
