//! Keysets with their private keys: read to sign something, minted once and never overwritten.

use super::{Keys, store_error};
use crate::error::{CommandError, Context};
use aws_client::store::{Expect, Store, StoreError, Version};
use node::pki::{KeyAlgorithm, Keyset, SystemKeys, read_keyset, write_keyset};
use time::OffsetDateTime;

const RESTORE: &str = "restore it from the bucket's versions";

/// A keyset of the cluster.
pub async fn keyset(store: &Store, keys: &Keys, name: &str) -> Result<Keyset, CommandError> {
    Ok(read(store, keys, name).await?.0)
}

async fn read(store: &Store, keys: &Keys, name: &str) -> Result<(Keyset, Version), CommandError> {
    let key = keys.keyset(name);
    let object = store.get(&key).await.map_err(store_error)?.ok_or_else(|| {
        CommandError::usage(
            format!("the cluster has no keyset {name} yet"),
            "make the cluster first with `kctl update --yes`",
        )
    })?;
    let text = String::from_utf8(object.bytes)
        .failed(format!("{key} in the store is not text"), RESTORE)?;
    let set =
        read_keyset(name, &text).failed(format!("{key} in the store is not a keyset"), RESTORE)?;
    Ok((set, object.version))
}

/// A new keyset that is stored nowhere.
pub fn mint_keyset(name: &str) -> Result<Keyset, CommandError> {
    node::pki::mint_keyset(
        name,
        KeyAlgorithm::default(),
        &mut SystemKeys::at(OffsetDateTime::now_utc()),
    )
    .failed(format!("could not make the keyset {name}"), "try again")
}

/// Makes a keyset and stores it, unless somebody else was faster: then theirs is it.
pub async fn mint_into(
    store: &Store,
    keys: &Keys,
    name: &str,
) -> Result<(Keyset, Version), CommandError> {
    let set = mint_keyset(name)?;
    let text =
        write_keyset(&set).failed(format!("could not write the keyset {name}"), "try again")?;
    let bytes = text.reveal().as_bytes().to_vec();
    match store.put(&keys.keyset(name), bytes, Expect::Absent).await {
        Ok(version) => Ok((set, version)),
        Err(StoreError::Conflict { .. }) => read(store, keys, name).await,
        Err(error) => Err(store_error(error)),
    }
}
