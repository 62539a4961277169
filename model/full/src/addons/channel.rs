//! The stored list of a cluster's addons (kOps: channel).

use super::Addon;
use node::addons::{Channel, ChannelAddon, ChannelMetadata, ChannelSpec};
use node::yaml::{self, to_yaml};

/// Key of an addon's manifest, relative to the cluster's base in the state store.
pub fn manifest_key(addon: &Addon) -> String {
    format!("addons/{}", manifest_path(addon))
}

fn manifest_path(addon: &Addon) -> String {
    format!("{}/{}.yaml", addon.name, addon.id)
}

/// The list of addons as YAML.
pub fn channel_yaml(addons: &[Addon]) -> Result<String, yaml::Error> {
    let listed = addons.iter().map(|addon| ChannelAddon {
        name: addon.name.clone(),
        id: addon.id.clone(),
        manifest: manifest_path(addon),
        manifest_hash: addon.sha256.clone(),
        selector: [addon.selector.clone()].into(),
    });
    to_yaml(&Channel {
        kind: "Addons".to_owned(),
        metadata: ChannelMetadata {
            name: "bootstrap".to_owned(),
        },
        spec: ChannelSpec {
            addons: listed.collect(),
        },
    })
}
