//! What the state store wants: the list of addons, and the manifest of each.

use anyhow::{Context, bail};
use aws_client::store::Store;
use node::addons::{CHANNEL_KEY, ChannelAddon, read_channel, read_manifest};
use node::config::sha256;
use serde_json::Value;

/// The list of addons.
pub(super) async fn list(store: &Store) -> anyhow::Result<Vec<ChannelAddon>> {
    let text = text(store, CHANNEL_KEY).await?;
    Ok(read_channel(&text)?.spec.addons)
}

/// The objects of an addon.
pub(super) async fn objects(store: &Store, addon: &ChannelAddon) -> anyhow::Result<Vec<Value>> {
    let key = addon.key();
    let text = text(store, &key).await?;
    if sha256(&text) != addon.manifest_hash {
        bail!(
            "{key} is not the one that {CHANNEL_KEY} names: an update is writing it, or was broken off; run `kctl update cluster --yes`"
        );
    }
    Ok(read_manifest(&key, &text)?)
}

async fn text(store: &Store, key: &str) -> anyhow::Result<String> {
    let read = store.get(key).await;
    let object = read.with_context(|| format!("could not read {key} of the state store"))?;
    let object = object.with_context(|| {
        format!("the state store has no {key}: run `kctl update cluster --yes`, which writes it")
    })?;
    String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))
}
