//! What the state store holds for this machine: NodeConfig, keysets, our own binaries. Waits for the store as long as
//! it takes; what is not in it is an error.

use crate::digest::hex;
use crate::download::Downloads;
use crate::retry::{Told, Trouble, patient, repeat};
use anyhow::{Context, Error, anyhow};
use aws_client::store::{Object, Store, StoreError};
use futures::future::try_join_all;
use node::config::{Agent, Asset, BootConfig, agent_key, node_config_key};
use node::pki::{Keyset, keyset_path, read_keyset};
use node::secret::{Secret, read_stored, stored_path};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The store that a control plane's user data names.
pub fn open(base: &str, clients: &aws_client::Clients) -> anyhow::Result<Store> {
    Store::open(base, clients).context("user data names the state store")
}

/// The text of the NodeConfig that BootConfig names. Not yet verified.
pub async fn node_config(
    store: &Store,
    boot: &BootConfig,
    told: Told<'_>,
) -> anyhow::Result<String> {
    let key = node_config_key(boot.role, &boot.group, &boot.node_config);
    text(object(store, &key, told).await?, &key)
}

/// Keysets with their private keys, by name.
pub async fn keysets(
    store: &Store,
    names: &[String],
    told: Told<'_>,
) -> anyhow::Result<BTreeMap<String, Keyset>> {
    let all = names.iter().map(|name| async move {
        let key = keyset_path(name);
        let text = text(object(store, &key, told).await?, &key)?;
        Ok::<_, Error>((name.clone(), read_keyset(name, &text)?))
    });
    Ok(try_join_all(all).await?.into_iter().collect())
}

/// Secrets that the user put into the store, by name.
pub async fn secrets(
    store: &Store,
    names: &[String],
    told: Told<'_>,
) -> anyhow::Result<BTreeMap<String, Secret>> {
    let all = names.iter().map(|name| async move {
        let key = stored_path(name);
        let object = repeat(patient(), told, || async {
            let read = store.get(&key).await.map_err(trouble)?;
            let missing = || {
                anyhow!("{key} is not in the state store: write it with kctl create secret {name}")
            };
            read.ok_or_else(|| Trouble::Final(missing()))
        });
        let text = text(object.await?, &key)?;
        // Neither the text nor a part of it may stand in an error.
        let wrong =
            || anyhow!("{key} is no secret as kOps writes it: JSON with base64 of a text in Data");
        Ok::<_, Error>((name.clone(), read_stored(&text).ok_or_else(wrong)?))
    });
    Ok(try_join_all(all).await?.into_iter().collect())
}

/// An object's text. What is not text is not shown: it may be a key.
fn text(object: Object, key: &str) -> anyhow::Result<String> {
    String::from_utf8(object.bytes).map_err(|_| anyhow!("{key} is not text"))
}

/// Where a binary of ours lies, verified: from the cache, the store, or a mirror.
pub async fn agent(
    store: &Store,
    name: &str,
    agent: &Agent,
    downloads: &Downloads,
    told: Told<'_>,
) -> anyhow::Result<PathBuf> {
    if let Some(path) = downloads.have(&agent.sha256, told).await? {
        return Ok(path);
    }
    let path = downloads.path(&agent.sha256)?;
    let beside = path.with_extension("store");
    let key = agent_key(name, agent);
    let read = repeat(patient(), told, || async {
        store.get_file(&key, &beside).await.map_err(trouble)
    });
    let found = read.await?.map(|digest| hex(&digest));
    if found.as_deref() == Some(&agent.sha256) {
        std::fs::rename(&beside, &path)
            .with_context(|| format!("could not make {}", path.display()))?;
        return Ok(path);
    }
    let wrong = match found {
        Some(found) => {
            let _ = std::fs::remove_file(&beside);
            anyhow!("{key} has another sha256 in the state store: {found}")
        }
        None => absent(&key),
    };
    if agent.mirrors.is_empty() {
        return Err(wrong);
    }
    told(&format!("{wrong:#}"));
    let asset = Asset {
        name: name.to_owned(),
        arch: agent.arch,
        urls: agent.mirrors.clone(),
        sha256: Some(agent.sha256.clone()),
    };
    downloads.one(&asset, told).await
}

/// An object that has to be there. What the store or the way to it does not let us read now is waited for: a role's
/// rights too come some time after the role.
pub async fn object(store: &Store, key: &str, told: Told<'_>) -> anyhow::Result<Object> {
    repeat(patient(), told, || async {
        let read = store.get(key).await.map_err(trouble)?;
        read.ok_or_else(|| Trouble::Final(absent(key)))
    })
    .await
}

/// What an error of the store means for the next attempt.
pub fn trouble(error: StoreError) -> Trouble {
    let final_ = matches!(
        error,
        StoreError::Address { .. } | StoreError::Key(_) | StoreError::File { .. }
    );
    let error = Error::new(error);
    if final_ {
        Trouble::Final(error)
    } else {
        Trouble::Passing(error)
    }
}

/// The error that something is not in the store.
pub fn absent(key: &str) -> Error {
    anyhow!("{key} is not in the state store: `kctl update` writes it; was the cluster deleted?")
}
