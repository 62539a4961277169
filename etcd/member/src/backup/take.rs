//! Takes a snapshot of the local member, verifies it and stores it.

use super::cluster_state::seal_cluster_state;
use super::source::{SnapshotSource, describe_source};
use super::verify::{self, Compared, Found};
use super::work_folder::{FILE, PACKED, WorkFolder};
use crate::run_blocking;
use anyhow::{Context, bail};
use aws_client::packed::{FileDigest, pack_file};
use aws_client::store::{Encryption, Expect, Store, StoreError};
use etcd_rules::RunningMember;
use etcd_rules::backup::{
    MANIFEST_FORMAT, MANIFEST_LIMIT, SealedClusterState, SnapshotManifest, StoreOwner,
    check_asked_name, cluster_state_key, data_key, manifest_key, meta_key,
};
use host::Host;
use node::formatted::UnknownFields;
use protokube_role::signed_objects::SignedObjects;
use std::future::Future;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Takes snapshots of the local member of one etcd cluster.
#[derive(Debug)]
pub struct SnapshotTaker<S> {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Id of its certificate authority.
    pub incarnation: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    /// Name of its folder on the root disk and of its containers. Two processes must not share it.
    pub work: String,
    pub instance: String,
    /// Version of Kubernetes that its API server serves.
    pub kubernetes_version: String,
    /// Image of the member's pod.
    pub image: String,
    /// Path of the API server's EncryptionConfiguration, if it has one.
    pub encryption_config: Option<String>,
    /// How many members the spec has.
    pub members: usize,
    pub source: S,
    pub host: Host,
    /// State store at the cluster's base.
    pub store: Store,
    /// Its signed objects.
    pub signed: SignedObjects,
    pub clock: fn() -> OffsetDateTime,
    /// How long to wait between two looks at the scratch etcd.
    pub interval: Duration,
    /// One at a time: they share a folder.
    pub busy: tokio::sync::Mutex<()>,
}

/// There is a manifest in the place of this one: the objects beside it may be those of somebody else's snapshot.
#[derive(Debug, thiserror::Error)]
#[error(
    "somebody else has stored a snapshot meanwhile, and nothing of it is deleted: {0} is there already; choose another name"
)]
struct NameTaken(String);

/// A snapshot that was verified.
struct Verified {
    found: Found,
    plain: FileDigest,
    packed: FileDigest,
    own: RunningMember,
    seconds: u64,
}

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// The etcd cluster as the owner of a backup store.
    pub(crate) fn owner(&self) -> StoreOwner {
        let (base, incarnation) = (self.store.url(), Some(&*self.incarnation));
        StoreOwner::new(&self.cluster, &self.etcd, base, incarnation)
    }

    /// Takes a snapshot under a name that somebody chose. Returns what was done.
    pub(crate) async fn take_asked(&self, name: &str, reason: &str) -> anyhow::Result<String> {
        check_asked_name(name).map_err(anyhow::Error::msg)?;
        let settings = self.require_settings().await?;
        let backups = self.open_own_backups(&settings.store).await?;
        let taken = self.take(&backups, (name, reason), || async { Ok(true) });
        Ok(describe_taken(&taken.await?, &backups))
    }

    /// Takes a snapshot under this name, and returns what it is. `counts` is asked last, before the manifest makes it one that counts: if it
    /// says no, what was stored is deleted.
    pub async fn take<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        backups: &Store,
        (name, reason): (&str, &str),
        counts: impl FnOnce() -> F,
    ) -> anyhow::Result<SnapshotManifest> {
        let _alone = self.busy.lock().await;
        let folder = self.work_folder();
        let taken = self.take_alone(&folder, backups, (name, reason), counts);
        let taken = taken.await;
        let removed = run_blocking(move || folder.remove()).await;
        let manifest = taken?;
        removed?;
        Ok(manifest)
    }

    async fn take_alone<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        folder: &WorkFolder,
        backups: &Store,
        (name, reason): (&str, &str),
        counts: impl FnOnce() -> F,
    ) -> anyhow::Result<SnapshotManifest> {
        let verified = self.save_and_verify(folder).await?;
        self.check_same_cluster(&verified.own).await?;
        let now = (self.clock)();
        let mut manifest = self.describe(name, reason, &verified, now);
        let key = data_key(name);
        let sha256 = aws_client::store::sha256_of_file(&folder.file(PACKED)).await?;
        let put = backups
            .put_file(&key, &folder.file(PACKED), &sha256, Encryption::Bucket)
            .await;
        put.with_context(|| format!("could not write {}/{key}", backups.url()))?;
        // A snapshot without the keys is worth more than none.
        match self.store_cluster_state(backups, name).await {
            Ok(sealed) => manifest.cluster_state = sealed,
            Err(error) => manifest.cluster_state_problem = Some(format!("{error:#}")),
        }
        let still_counts = || async {
            // The upload may have taken long.
            self.check_same_cluster(&verified.own).await?;
            counts().await
        };
        if let Err(error) = self.store_manifest(backups, &manifest, still_counts).await {
            return Err(match error.is::<NameTaken>() {
                true => error,
                false => remove_stored(backups, name, error).await,
            });
        }
        let meta = manifest.to_etcd_manager_json(self.members, now.unix_timestamp());
        let key = meta_key(name);
        let put = backups.put(&key, meta.into_bytes(), Expect::Absent);
        match put.await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(manifest),
            Err(error) => {
                let error = anyhow::Error::from(error);
                let error = error.context(format!("could not write {}/{key}", backups.url()));
                Err(remove_stored(backups, name, error).await)
            }
        }
    }

    /// A snapshot of a cluster that was given up meanwhile would be the newest one.
    async fn check_same_cluster(&self, before: &RunningMember) -> anyhow::Result<()> {
        let now = self.source.describe_member().await?;
        if now.cluster_id != before.cluster_id {
            bail!(
                "etcd {} is another cluster since: it was {}, and is {}",
                self.etcd,
                before.cluster_id,
                now.cluster_id
            );
        }
        Ok(())
    }

    /// Stores the spec and the keys of the cluster, sealed; `None`: the spec names nobody who may read them.
    async fn store_cluster_state(
        &self,
        backups: &Store,
        name: &str,
    ) -> anyhow::Result<Option<SealedClusterState>> {
        let settings = self.read_settings().await?;
        let recipients = settings.map(|settings| settings.recipients);
        let Some(recipients) = recipients.filter(|recipients| !recipients.is_empty()) else {
            return Ok(None);
        };
        let sealed = seal_cluster_state(&self.store, &recipients).await;
        let (sealed, state) = sealed.context("the keys of the cluster could not be sealed")?;
        let key = cluster_state_key(name);
        let put = backups.put(&key, sealed, Expect::Absent).await;
        put.with_context(|| format!("could not write {}/{key}", backups.url()))?;
        Ok(Some(state))
    }

    async fn store_manifest<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        backups: &Store,
        manifest: &SnapshotManifest,
        counts: impl FnOnce() -> F,
    ) -> anyhow::Result<()> {
        if !counts().await? {
            bail!("another instance has taken over meanwhile: this one took too long");
        }
        let key = manifest_key(&manifest.name);
        let text = manifest.to_json().into_bytes();
        let put = backups.put(&key, text.clone(), Expect::Absent).await;
        let address = || format!("{}/{key}", backups.url());
        if let Err(StoreError::Conflict { .. }) = put {
            let stored = backups.get_first(&key, MANIFEST_LIMIT).await;
            let stored = stored.with_context(|| format!("could not read {}", address()));
            // The answer to an attempt before this one was lost.
            return match stored {
                Ok(Some(stored)) if stored == text => Ok(()),
                Ok(_) => Err(NameTaken(address()).into()),
                Err(error) => Err(error.context(NameTaken(address()))),
            };
        }
        put.with_context(|| format!("could not write {}", address()))?;
        Ok(())
    }

    /// Writes the snapshot to the folder, verifies it and compresses it. If the member compacted its keys between what it said and the
    /// snapshot, the two cannot be compared, and it is asked once more.
    async fn save_and_verify(&self, folder: &WorkFolder) -> anyhow::Result<Verified> {
        let begun = Instant::now();
        let mut is_repeated = false;
        loop {
            let own = describe_source(&self.source).await?;
            let (here, bytes) = (folder.clone(), own.database_bytes);
            run_blocking(move || here.prepare(bytes)).await?;
            // Before the snapshot: the keys at that revision are in it, and nothing has to be asked once the member has gone on.
            let keys = self.source.describe_keys(own.database_used_bytes).await?;
            self.source.save_snapshot(&folder.path_of(FILE)).await?;
            let here = folder.clone();
            let compared = run_blocking(move || {
                let (found, ()) = verify::inspect_snapshot(&here, (Some(&keys), None), |_| Ok(()))?;
                let compared = verify::compare(&found, &keys)?;
                Ok((found, compared))
            });
            let (found, compared) = compared.await?;
            if compared == Compared::Compacted && !is_repeated {
                is_repeated = true;
                continue;
            }
            if compared == Compared::Compacted {
                bail!("the member compacts its keys all the time, and they cannot be compared");
            }
            let here = folder.clone();
            let packed = run_blocking(move || Ok(pack_file(&here.file(FILE), &here.file(PACKED))?));
            let (plain, packed) = packed.await?;
            return Ok(Verified {
                found,
                plain,
                packed,
                own,
                seconds: begun.elapsed().as_secs(),
            });
        }
    }

    fn describe(
        &self,
        name: &str,
        reason: &str,
        verified: &Verified,
        now: OffsetDateTime,
    ) -> SnapshotManifest {
        let at = now.format(&Rfc3339).unwrap_or_default();
        let Verified {
            found,
            plain,
            packed,
            own,
            ..
        } = verified;
        SnapshotManifest {
            format: MANIFEST_FORMAT,
            name: name.to_owned(),
            cluster: self.cluster.clone(),
            etcd: self.etcd.clone(),
            reason: reason.to_owned(),
            taken_at: at.clone(),
            instance: Some(self.instance.clone()),
            member: Some(own.name.clone()),
            cluster_id: Some(own.cluster_id.clone()),
            etcd_version: Some(own.version.clone()),
            kubernetes_version: Some(self.kubernetes_version.clone()),
            bytes: plain.bytes,
            sha256: plain.sha256.clone(),
            compressed_bytes: packed.bytes,
            compressed_sha256: packed.sha256.clone(),
            verified: Some(found.describe(at, verified.seconds)),
            cluster_state: None,
            cluster_state_problem: None,
            kctl_version: env!("CARGO_PKG_VERSION").to_owned(),
            unknown: UnknownFields::new(),
        }
    }
}

/// Deletes what a snapshot has written that does not count, and nothing else: its file was written where none was, so nobody else has
/// written these keys, unless there is a [`NameTaken`]. The manifest may be there too, if S3's answer was lost. Returns why the snapshot does not count, and what could not be deleted.
async fn remove_stored(backups: &Store, name: &str, mut error: anyhow::Error) -> anyhow::Error {
    for key in [manifest_key(name), data_key(name), cluster_state_key(name)] {
        if let Err(left) = backups.delete(&key, Expect::Any).await {
            let left = anyhow::Error::from(left);
            error = error.context(format!(
                "{}/{key} is left, and could not be deleted: {left:#}",
                backups.url()
            ));
        }
    }
    error
}

/// What is said of a snapshot that was taken.
pub(crate) fn describe_taken(manifest: &SnapshotManifest, backups: &Store) -> String {
    let found = manifest.verified.as_ref();
    let found = found.map(|found| {
        format!(
            ": {} keys at revision {}, verified after {} s",
            found.keys, found.revision, found.seconds
        )
    });
    format!(
        "took the snapshot {}/{}{}",
        backups.url(),
        manifest.name,
        found.unwrap_or_default()
    )
}
