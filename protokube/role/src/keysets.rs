//! Reads keysets from the state store.

use anyhow::Context;
use aws_client::store::Store;
use node::pki::{Keyset, keyset_path, read_keyset};

/// Reads a keyset with its private keys.
pub async fn read_keyset_object(store: &Store, name: &str) -> anyhow::Result<Keyset> {
    let key = keyset_path(name);
    let object = store
        .get(&key)
        .await
        .with_context(|| format!("could not read keyset {name}"))?;
    let object = object.with_context(|| {
        format!("the state store has no {key}: run `kctl update --yes`, which creates it")
    })?;
    let text = String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))?;
    Ok(read_keyset(name, &text)?)
}
