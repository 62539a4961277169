//! A backup store: whose it is, which snapshots are in it, and their deletion by the exact keys of their objects. kctl, protokube and
//! `protokube etcd-backup` read and change one through these functions only.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError};
use etcd_rules::backup::{
    FoundSnapshot, MANIFEST_LIMIT, ManifestError, OWNER_KEY, OWNER_LIMIT, SnapshotManifest,
    StoreOwner, StoredSnapshot, Unread, group_snapshots, manifest_key, sort_newest_first,
};
use futures::{StreamExt, stream};

/// Manifests that are read at the same time.
const PARALLEL: usize = 10;

/// Why nothing is written to a backup store, or deleted there.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// A [`StoreError`] with the address.
    #[error("{0:#}")]
    Unread(anyhow::Error),
    /// The object says nothing that this release understands.
    #[error(transparent)]
    Damaged(#[from] node::formatted::Error),
    /// It is another etcd cluster's: whose, and what to do.
    #[error("{0}")]
    Other(String),
}

/// Makes the store that of an etcd cluster, unless it is another one's.
pub async fn claim_store(backups: &Store, own: &StoreOwner) -> anyhow::Result<()> {
    let address = || format!("{}/{OWNER_KEY}", backups.url());
    let (owner, expect) = match require_own(backups, own).await? {
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
        Err(StoreError::Conflict { .. }) => require_own(backups, own).await.map(drop),
        Err(error) => Err(error).with_context(|| format!("could not write {}", address())),
    }
}

/// As [`check_owner`]. The error is a [`StoreError`] if the store could not be read.
pub async fn require_own(backups: &Store, own: &StoreOwner) -> anyhow::Result<Option<StoreOwner>> {
    check_owner(backups, own)
        .await
        .map_err(|error| match error {
            OwnerError::Unread(error) => error,
            other => other.into(),
        })
}

/// Checks that the store is not that of another etcd cluster. Returns what it says; `None`: it is nobody's yet.
pub async fn check_owner(
    backups: &Store,
    own: &StoreOwner,
) -> Result<Option<StoreOwner>, OwnerError> {
    let address = format!("{}/{OWNER_KEY}", backups.url());
    let read = backups.get_first(OWNER_KEY, OWNER_LIMIT).await;
    let read = read.with_context(|| format!("could not read {address}"));
    let read = read.map_err(OwnerError::Unread)?;
    let Some(bytes) = read else { return Ok(None) };
    let owner = StoreOwner::parse(&address, &bytes)?;
    let checked = owner.check(backups.url(), own);
    checked.map_err(OwnerError::Other)?;
    Ok(Some(owner))
}

/// All snapshots, from a complete listing, sorted by name.
pub async fn list_snapshots(backups: &Store) -> anyhow::Result<Vec<StoredSnapshot>> {
    let listed = backups.list("", None).await;
    let listed = listed.with_context(|| format!("could not list {}", backups.url()))?;
    let objects = listed
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
    Ok(group_snapshots(objects))
}

/// All snapshots with their manifests, the newest first. A manifest that cannot be read, or used, is a problem of its snapshot.
pub async fn read_snapshots(backups: &Store) -> anyhow::Result<Vec<FoundSnapshot>> {
    let reads = list_snapshots(backups)
        .await?
        .into_iter()
        .map(|stored| async move {
            let read = match stored.has_manifest {
                true => read_manifest(backups, &stored.name).await,
                false => Ok(None),
            };
            let (manifest, problem) = match read {
                Ok(manifest) => (manifest, None),
                Err(error) => (None, Some(describe_unread(&error))),
            };
            FoundSnapshot {
                stored,
                manifest,
                problem,
            }
        });
    let mut all: Vec<FoundSnapshot> = stream::iter(reads).buffered(PARALLEL).collect().await;
    sort_newest_first(&mut all);
    Ok(all)
}

/// What the error of [`read_manifest`] says of the manifest.
pub fn describe_unread(error: &anyhow::Error) -> Unread {
    let why = format!("{error:#}");
    match error.is::<ManifestError>() {
        true => Unread::Unusable(why),
        false => Unread::Unreachable(why),
    }
}

/// The manifest of a snapshot; `None`: there is none. The error is a [`StoreError`] if it could not be read, and a [`ManifestError`] if it
/// is damaged, or of something else.
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
