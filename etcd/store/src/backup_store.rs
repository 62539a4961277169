//! A backup store: whose it is, which snapshots are in it, and their deletion by the exact keys of their objects.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError};
use etcd_rules::backup::{
    MANIFEST_LIMIT, OWNER_KEY, OWNER_LIMIT, SnapshotManifest, StoreOwner, StoredSnapshot,
    group_snapshots, manifest_key,
};

/// Makes the store that of an etcd cluster, unless it is another one's.
pub async fn claim_store(backups: &Store, own: &StoreOwner) -> anyhow::Result<()> {
    let address = || format!("{}/{OWNER_KEY}", backups.url());
    let (owner, expect) = match check_owner(backups, own).await? {
        None => (own.clone(), Expect::Absent),
        Some(stored) => {
            let Some(renewed) = stored.renew(own) else {
                return Ok(());
            };
            let read = backups.get(OWNER_KEY).await;
            let read = read.with_context(|| format!("could not read {}", address()))?;
            (
                renewed,
                read.map_or(Expect::Absent, |found| Expect::Version(found.version)),
            )
        }
    };
    let put = backups.put(OWNER_KEY, owner.to_json().into_bytes(), expect);
    match put.await {
        Ok(_) => Ok(()),
        // Somebody else was first.
        Err(StoreError::Conflict { .. }) => check_owner(backups, own).await.map(drop),
        Err(error) => Err(error).with_context(|| format!("could not write {}", address())),
    }
}

/// Checks that the store is not that of another etcd cluster. Returns what it says; `None`: it is nobody's yet.
pub async fn check_owner(backups: &Store, own: &StoreOwner) -> anyhow::Result<Option<StoreOwner>> {
    let read = backups.get_first(OWNER_KEY, OWNER_LIMIT).await;
    let read = read.with_context(|| format!("could not read {}/{OWNER_KEY}", backups.url()))?;
    let Some(bytes) = read else { return Ok(None) };
    let owner = StoreOwner::parse(OWNER_KEY, &bytes)?;
    let checked = owner.check(backups.url(), own);
    checked.map_err(anyhow::Error::msg)?;
    Ok(Some(owner))
}

/// All snapshots, from a complete listing.
pub async fn list_snapshots(backups: &Store) -> anyhow::Result<Vec<StoredSnapshot>> {
    let listed = backups.list("", None).await;
    let listed = listed.with_context(|| format!("could not list {}", backups.url()))?;
    let objects = listed
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
    Ok(group_snapshots(objects))
}

/// The manifest of a snapshot; `None`: there is none. The error is a [`StoreError`] if it could not be read; else it is damaged, or of
/// something else.
pub async fn read_manifest(
    backups: &Store,
    name: &str,
) -> anyhow::Result<Option<SnapshotManifest>> {
    let key = manifest_key(name);
    let address = format!("{}/{key}", backups.url());
    let read = backups.get_first(&key, MANIFEST_LIMIT).await;
    let read = read.with_context(|| format!("could not read {address}"))?;
    read.map(|bytes| Ok(SnapshotManifest::parse_of(name, &address, &bytes)?))
        .transpose()
}

/// The manifest of a snapshot that must be there.
pub async fn require_manifest(backups: &Store, name: &str) -> anyhow::Result<SnapshotManifest> {
    let found = read_manifest(backups, name).await?;
    found.with_context(|| format!("{} has no snapshot {name} with a manifest", backups.url()))
}

/// Deletes the objects of a snapshot.
pub async fn delete_snapshot(backups: &Store, snapshot: &StoredSnapshot) -> anyhow::Result<()> {
    for key in snapshot.keys_to_delete() {
        match backups.delete(&key, Expect::Any).await {
            Ok(()) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("could not delete {}/{key}", backups.url()));
            }
        }
    }
    Ok(())
}
