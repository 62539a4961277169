//! Reads the signed list of addons and their manifests, whose sha256 is in the list, from the state store.

use anyhow::{Context, bail};
use aws_client::store::Store;
use node::addons::{CHANNEL_KEY, ChannelAddon, read_channel, read_manifest};
use node::digest::sha256_hex;
use protokube_role::signed_objects::SignedObjects;
use serde_json::Value;

/// Limit of the list, bytes.
const LIST_LIMIT: usize = 1024 * 1024;

/// Reads the list of addons, and its serial.
pub(super) async fn read_list(signed: &SignedObjects) -> anyhow::Result<(Vec<ChannelAddon>, u64)> {
    let list = signed.read(CHANNEL_KEY, LIST_LIMIT).await?;
    let list = list.with_context(|| missing_object(CHANNEL_KEY))?;
    Ok((read_channel(&list.text)?.spec.addons, list.serial))
}

fn missing_object(key: &str) -> String {
    format!("the state store has no {key}: run `kctl update --yes`, which writes it")
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
    let object = object.with_context(|| missing_object(key))?;
    String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))
}
