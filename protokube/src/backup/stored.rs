//! Snapshots in a backup store: lists them, reads their manifests, and deletes them by the exact keys of their objects.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use node::backup::{SnapshotManifest, StoredSnapshot, group_snapshots, manifest_key};

/// All snapshots, from a complete listing.
pub(crate) async fn list_snapshots(backups: &Store) -> anyhow::Result<Vec<StoredSnapshot>> {
    let listed = backups.list("", None).await;
    let listed = listed.with_context(|| format!("could not list {}", backups.url()))?;
    let objects = listed
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
    Ok(group_snapshots(objects))
}

/// The manifest of a snapshot, and the version of the object; `None`: there is none.
pub(crate) async fn read_manifest(
    backups: &Store,
    name: &str,
) -> anyhow::Result<Option<(SnapshotManifest, Version)>> {
    let key = manifest_key(name);
    let read = backups.get(&key).await;
    let read = read.with_context(|| format!("could not read {}/{key}", backups.url()))?;
    read.map(|object| {
        let manifest = SnapshotManifest::parse(&key, &object.bytes)?;
        Ok((manifest, object.version))
    })
    .transpose()
}

/// The manifest of a snapshot that must be there.
pub(crate) async fn require_manifest(
    backups: &Store,
    name: &str,
) -> anyhow::Result<(SnapshotManifest, Version)> {
    let found = read_manifest(backups, name).await?;
    found.with_context(|| format!("{} has no snapshot {name} with a manifest", backups.url()))
}

/// Deletes the objects of a snapshot.
pub(crate) async fn delete_snapshot(
    backups: &Store,
    snapshot: &StoredSnapshot,
) -> anyhow::Result<()> {
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
