//! Reads the list of addons and their manifests from the state store.

use anyhow::{Context, bail};
use aws_client::store::Store;
use node::addons::{CHANNEL_KEY, ChannelAddon, read_channel, read_manifest};
use node::digest::sha256_hex;
use serde_json::Value;

/// Reads the list of addons.
pub(super) async fn read_list(store: &Store) -> anyhow::Result<Vec<ChannelAddon>> {
    let text = read_text(store, CHANNEL_KEY).await?;
    Ok(read_channel(&text)?.spec.addons)
}

/// Reads the objects of an addon, and checks the manifest's sha256.
pub(super) async fn read_objects(
    store: &Store,
    addon: &ChannelAddon,
) -> anyhow::Result<Vec<Value>> {
    let key = addon.manifest_key();
    let text = read_text(store, &key).await?;
    if sha256_hex(&text) != addon.manifest_hash {
        bail!(
            "{key} does not have the sha256 in {CHANNEL_KEY}: an update is in progress or was interrupted; run `kctl update --yes`"
        );
    }
    Ok(read_manifest(&key, &text)?)
}

async fn read_text(store: &Store, key: &str) -> anyhow::Result<String> {
    let read = store.get(key).await;
    let object = read.with_context(|| format!("could not read {key} of the state store"))?;
    let object = object.with_context(|| {
        format!("the state store has no {key}: run `kctl update --yes`, which writes it")
    })?;
    String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))
}
