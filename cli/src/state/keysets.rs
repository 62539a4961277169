//! Keysets with private keys: read for signing, created once, and replaced only if nobody else has changed them.

use super::{StoreKeys, store_error};
use crate::error::{CommandError, ErrorContext, ErrorKind};
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

/// Reads a keyset and the version to expect when it is replaced.
pub async fn load_versioned(
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

/// Stores a keyset, if it is still the one that was read; `None`: if there is none.
pub async fn store_keyset(
    store: &Store,
    keys: &StoreKeys,
    set: &Keyset,
    version: Option<Version>,
) -> Result<(), CommandError> {
    let name = &set.name;
    let text = write_keyset(set).or_failed(
        format!("could not write the keyset {name}"),
        "report this: it is a defect of kctl",
    )?;
    let bytes = text.reveal().as_bytes().to_vec();
    let expect = version.map_or(Expect::Absent, Expect::Version);
    let put = store.put(&keys.keyset(name), bytes, expect).await;
    put.map(drop).map_err(|error| match error {
        StoreError::Conflict { .. } => CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "the keyset {name} was changed by somebody else at the same time: it was not stored"
            ),
            "see what is there now with `kctl get keypairs`, and repeat the command",
        ),
        error => store_error(error),
    })
}
