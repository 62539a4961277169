//! Keysets with private keys: read for signing, created once and never overwritten.

use super::{StoreKeys, store_error};
use crate::error::{CommandError, ErrorContext};
use aws_client::store::{Expect, Store, StoreError, Version};
use node::pki::{KeyAlgorithm, Keyset, SystemKeys, read_keyset, write_keyset};
use time::OffsetDateTime;

const RESTORE: &str = "restore it from the bucket's versions";

/// Reads a keyset of the cluster.
pub async fn load_keyset(
    store: &Store,
    keys: &StoreKeys,
    name: &str,
) -> Result<Keyset, CommandError> {
    Ok(load_versioned(store, keys, name).await?.0)
}

async fn load_versioned(
    store: &Store,
    keys: &StoreKeys,
    name: &str,
) -> Result<(Keyset, Version), CommandError> {
    let key = keys.keyset(name);
    let object = store.get(&key).await.map_err(store_error)?.ok_or_else(|| {
        CommandError::usage_error(
            format!("the cluster has no keyset {name} yet"),
            "make the cluster first with `kctl update --yes`",
        )
    })?;
    let text = String::from_utf8(object.bytes)
        .or_failed(format!("{key} in the store is not text"), RESTORE)?;
    let set = read_keyset(name, &text)
        .or_failed(format!("{key} in the store is not a keyset"), RESTORE)?;
    Ok((set, object.version))
}

/// Creates a keyset without storing it.
pub fn mint_keyset(name: &str) -> Result<Keyset, CommandError> {
    node::pki::mint_keyset(
        name,
        KeyAlgorithm::default(),
        &mut SystemKeys::issuing_at(OffsetDateTime::now_utc()),
    )
    .or_failed(format!("could not make the keyset {name}"), "try again")
}

/// Creates and stores a keyset. If another process stored one first, returns that one.
pub async fn mint_and_store(
    store: &Store,
    keys: &StoreKeys,
    name: &str,
) -> Result<(Keyset, Version), CommandError> {
    let set = mint_keyset(name)?;
    let text =
        write_keyset(&set).or_failed(format!("could not write the keyset {name}"), "try again")?;
    let bytes = text.reveal().as_bytes().to_vec();
    match store.put(&keys.keyset(name), bytes, Expect::Absent).await {
        Ok(version) => Ok((set, version)),
        Err(StoreError::Conflict { .. }) => load_versioned(store, keys, name).await,
        Err(error) => Err(store_error(error)),
    }
}
