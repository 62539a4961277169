//! Reads NodeConfig, keysets, secrets and agents from the state store. Waits without limit while the store is unavailable; a
//! missing object is an error.

use crate::download::Downloads;
use crate::retry::{AttemptError, AttemptLog, repeat_until_final, unlimited_backoff};
use anyhow::{Context, Error, anyhow};
use aws_client::store::{Object, Owner, Store, StoreError};
use futures::future::try_join_all;
use node::config::{Agent, Asset, BootConfig, agent_key, node_config_key};
use node::digest::to_hex;
use node::pki::{Keyset, keyset_path, read_keyset};
use node::secret::{Secret, read_stored, stored_path};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Opens the state store that user data names, of the owner that it names.
pub(crate) fn open_store(
    base: &str,
    boot: &BootConfig,
    clients: &aws_client::Clients,
) -> anyhow::Result<Store> {
    let store = Store::open(base, clients);
    let store =
        store.with_context(|| format!("could not open the state store {base} in user data"))?;
    Ok(store.owned_by(Owner::from(boot.state_owner.clone())))
}

/// Reads the NodeConfig that BootConfig names. Its text is not verified.
pub(crate) async fn read_node_config_text(
    store: &Store,
    boot: &BootConfig,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<String> {
    let key = node_config_key(boot.role, &boot.group, &boot.node_config);
    object_text(read_object(store, &key, attempt_log).await?, &key)
}

/// Reads keysets with their private keys, by name.
pub(crate) async fn read_keysets(
    store: &Store,
    names: &[String],
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<BTreeMap<String, Keyset>> {
    let all = names.iter().map(|name| async move {
        let key = keyset_path(name);
        let text = object_text(read_object(store, &key, attempt_log).await?, &key)?;
        Ok::<_, Error>((name.clone(), read_keyset(name, &text)?))
    });
    Ok(try_join_all(all).await?.into_iter().collect())
}

/// Reads the user's secrets, by name.
pub(crate) async fn read_secrets(
    store: &Store,
    names: &[String],
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<BTreeMap<String, Secret>> {
    let all = names.iter().map(|name| async move {
        let key = stored_path(name);
        let object = repeat_until_final(unlimited_backoff(), attempt_log, || async {
            let read = store.get(&key).await.map_err(classify_error)?;
            let missing = || {
                anyhow!("{key} is not in the state store: create it with kctl create secret {name}")
            };
            read.ok_or_else(|| AttemptError::Final(missing()))
        });
        let text = object_text(object.await?, &key)?;
        // The error must not quote the text.
        let wrong =
            || anyhow!("{key} is not a valid secret: expected JSON with base64 of a text in Data");
        Ok::<_, Error>((name.clone(), read_stored(&text).ok_or_else(wrong)?))
    });
    Ok(try_join_all(all).await?.into_iter().collect())
}

/// The text of an object. Invalid text is not shown, because it may be a key.
fn object_text(object: Object, key: &str) -> anyhow::Result<String> {
    String::from_utf8(object.bytes).map_err(|_| anyhow!("{key} is not text"))
}

/// Returns the path of a verified agent binary, from the cache, the state store or a mirror.
pub(crate) async fn fetch_agent(
    store: &Store,
    name: &str,
    agent: &Agent,
    downloads: &Downloads,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<PathBuf> {
    if let Some(path) = downloads.find_cached(&agent.sha256, attempt_log).await? {
        return Ok(path);
    }
    let path = downloads.cache_path(&agent.sha256)?;
    let beside = path.with_extension("store");
    let key = agent_key(name, agent);
    let read = repeat_until_final(unlimited_backoff(), attempt_log, || async {
        store.get_file(&key, &beside).await.map_err(classify_error)
    });
    let found = read.await?.map(|digest| to_hex(&digest));
    if found.as_deref() == Some(&agent.sha256) {
        std::fs::rename(&beside, &path)
            .with_context(|| format!("could not make {}", path.display()))?;
        return Ok(path);
    }
    let wrong = match found {
        Some(found) => {
            let _ = std::fs::remove_file(&beside);
            anyhow!("{key} in the state store has the wrong sha256 {found}")
        }
        None => missing_object(&key),
    };
    if agent.mirrors.is_empty() {
        return Err(wrong);
    }
    attempt_log(&format!("{wrong:#}"));
    let asset = Asset {
        name: name.to_owned(),
        arch: agent.arch,
        urls: agent.mirrors.clone(),
        sha256: Some(agent.sha256.clone()),
    };
    downloads.fetch_one(&asset, attempt_log).await
}

/// Reads an object that must exist. Failures of access are retried, because permissions of a new role take effect with a
/// delay.
pub(crate) async fn read_object(
    store: &Store,
    key: &str,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<Object> {
    repeat_until_final(unlimited_backoff(), attempt_log, || async {
        let read = store.get(key).await.map_err(classify_error)?;
        read.ok_or_else(|| AttemptError::Final(missing_object(key)))
    })
    .await
}

/// Classifies an error of the state store for retries.
pub(crate) fn classify_error(error: StoreError) -> AttemptError {
    let final_ = matches!(
        error,
        StoreError::Address { .. }
            | StoreError::Key(_)
            | StoreError::TooLarge { .. }
            | StoreError::File { .. }
    );
    let error = Error::new(error);
    if final_ {
        AttemptError::Final(error)
    } else {
        AttemptError::Passing(error)
    }
}

/// The error for a missing object.
pub(crate) fn missing_object(key: &str) -> Error {
    anyhow!(
        "{key} is not in the state store: run `kctl update --yes`, unless the cluster was deleted"
    )
}
