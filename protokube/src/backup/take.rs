//! Takes a snapshot of the local member, verifies it and stores it.

use super::cluster_state::seal_cluster_state;
use super::source::{SnapshotSource, describe_source};
use super::verify::{self, FILE, Found};
use crate::etcd::{Containers, LOG_FILE, run_blocking};
use anyhow::{Context, bail};
use aws_client::packed::{FileDigest, pack_file};
use aws_client::store::{Encryption, Expect, Store, StoreError};
use host::Host;
use node::backup::{
    BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings, EtcdBackupSettings,
    MANIFEST_FORMAT, SealedClusterState, SnapshotManifest, VerifiedSnapshot, cluster_state_key,
    data_key, manifest_key, meta_key,
};
use node::etcd::{RunningMember, UnknownFields};
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Name of the compressed file in the folder.
pub(super) const PACKED: &str = "snapshot.gz";

/// Takes snapshots of the local member of one etcd cluster.
#[derive(Debug)]
pub struct SnapshotTaker<S> {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    /// Name of its folder on the root disk and of its containers. Two processes must not share it.
    pub work: String,
    pub instance: String,
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
    pub clock: fn() -> OffsetDateTime,
    /// How long to wait between two looks at the scratch etcd.
    pub interval: Duration,
    /// One at a time: they share a folder.
    pub busy: tokio::sync::Mutex<()>,
}

/// The folder on the root disk in which a snapshot is verified.
#[derive(Clone, Debug)]
pub(super) struct LocalFolder {
    host: Host,
    work: String,
    image: String,
    encryption_config: Option<String>,
    interval: Duration,
}

/// A snapshot that was verified.
struct Verified {
    found: Found,
    plain: FileDigest,
    packed: FileDigest,
    own: RunningMember,
    seconds: u64,
}

impl LocalFolder {
    fn path(&self) -> String {
        format!("/var/lib/kctl/etcd-backup/{}", self.work)
    }

    /// Path of a file in it, on the host.
    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// Path of a file in it, for this process.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.host.path_below_root(&self.path_of(name))
    }

    /// The API server's EncryptionConfiguration, if it has one.
    pub(super) fn read_encryption_config(&self) -> anyhow::Result<Option<String>> {
        let path = self.encryption_config.as_ref();
        let text = path.map(|path| self.host.read_text(path)).transpose()?;
        Ok(text.flatten())
    }

    /// Removes a file in it.
    pub(super) fn remove_file(&self, name: &str) -> anyhow::Result<()> {
        Ok(self.host.remove_file(&self.path_of(name))?)
    }

    /// Containers with at most this memory, in bytes.
    pub(super) fn containers(&self, memory: u64) -> Containers<'_> {
        // The containers of a recovery have other names.
        let name = format!("{}-backup", self.work);
        let names = (self.image.as_str(), name.as_str());
        Containers::new(&self.host, names, self.interval, &self.path()).limited_to(memory)
    }

    /// Empties it, and checks that there is room for a database of this size.
    pub(super) fn prepare(&self, bytes: u64) -> anyhow::Result<()> {
        self.containers(0).remove_all();
        self.remove()?;
        self.host.make_folder(&self.path(), 0o700)?;
        // The file, the compressed one, and the scratch etcd's data and log.
        let needed = 3 * bytes + 2 * LOG_FILE;
        let free = self.host.free_bytes(&self.path())?;
        if free < needed {
            bail!(
                "the root disk has {} MiB of free space, and a verified snapshot needs {} MiB: set a larger rootVolume.size of the instance \
                 group and replace its instances",
                free >> 20,
                (needed >> 20) + 1
            );
        }
        Ok(())
    }

    pub(super) fn remove(&self) -> anyhow::Result<()> {
        Ok(self.host.remove_folder(&self.path())?)
    }
}

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// The settings in the state store; `None`: there are none for this etcd cluster.
    pub(super) async fn read_settings(&self) -> anyhow::Result<Option<EtcdBackupSettings>> {
        let read = self
            .store
            .get_first(BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT);
        let read = read
            .await
            .with_context(|| format!("could not read {BACKUP_SETTINGS_KEY}"))?;
        let Some(bytes) = read else { return Ok(None) };
        let settings = BackupSettings::parse(BACKUP_SETTINGS_KEY, &bytes)?;
        Ok(settings.etcd.get(&self.etcd).cloned())
    }

    /// The backup store at this address.
    pub(super) fn open_backups(&self, address: &str) -> anyhow::Result<Store> {
        let opened = self.store.open_other(address);
        opened.with_context(|| format!("{address} is no backup store"))
    }

    pub(super) fn folder(&self) -> LocalFolder {
        LocalFolder {
            host: self.host.clone(),
            work: self.work.clone(),
            image: self.image.clone(),
            encryption_config: self.encryption_config.clone(),
            interval: self.interval,
        }
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
        let folder = self.folder();
        let taken = self.take_alone(&folder, backups, (name, reason), counts);
        let taken = taken.await;
        let removed = run_blocking(move || folder.remove()).await;
        let manifest = taken?;
        removed?;
        Ok(manifest)
    }

    async fn take_alone<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        folder: &LocalFolder,
        backups: &Store,
        (name, reason): (&str, &str),
        counts: impl FnOnce() -> F,
    ) -> anyhow::Result<SnapshotManifest> {
        let verified = self.save_and_verify(folder).await?;
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
        let stored = self.store_manifest(backups, &manifest, counts).await;
        if stored.is_err() {
            // Only what this snapshot wrote: nobody else has written these keys.
            for key in [key, cluster_state_key(name)] {
                let deleted = backups.delete(&key, Expect::Any).await;
                deleted.with_context(|| format!("could not delete {}/{key}", backups.url()))?;
            }
        }
        stored?;
        let meta = manifest.to_etcd_manager_json(self.members, now.unix_timestamp());
        let key = meta_key(name);
        let put = backups.put(&key, meta.into_bytes(), Expect::Absent);
        match put.await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(manifest),
            Err(error) => Err(error).with_context(|| format!("could not write {key}")),
        }
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
        let put = backups.put(&key, text, Expect::Absent).await;
        put.with_context(|| format!("could not write {}/{key}", backups.url()))?;
        Ok(())
    }

    /// Writes the snapshot to the folder, verifies it and compresses it.
    async fn save_and_verify(&self, folder: &LocalFolder) -> anyhow::Result<Verified> {
        let begun = Instant::now();
        let own = describe_source(&self.source).await?;
        let (here, bytes) = (folder.clone(), own.database_bytes);
        run_blocking(move || here.prepare(bytes)).await?;
        self.source.save_snapshot(&folder.path_of(FILE)).await?;
        let here = folder.clone();
        let revision = run_blocking(move || verify::read_revision(&here)).await?;
        // At once, before the member compacts beyond it.
        let hash = self.source.hash_own(revision).await;
        let hash = hash.context("the member's keys cannot be compared with the snapshot")?;
        let keys = self.source.count_keys(revision).await;
        let keys = keys.context("the member's keys cannot be counted")?;
        let here = folder.clone();
        run_blocking(move || {
            let found = verify::inspect_snapshot(&here, Some(hash))?;
            verify::compare(&found, hash, keys)?;
            let (plain, packed) = pack_file(&here.file(FILE), &here.file(PACKED))?;
            Ok(Verified {
                found,
                plain,
                packed,
                own,
                seconds: begun.elapsed().as_secs(),
            })
        })
        .await
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
            bytes: plain.bytes,
            sha256: plain.sha256.clone(),
            compressed_bytes: packed.bytes,
            compressed_sha256: packed.sha256.clone(),
            verified: Some(VerifiedSnapshot {
                at,
                revision: found.revision,
                compacted: u64::try_from(found.hash.compacted).unwrap_or_default(),
                hash: found.hash.hash,
                keys: found.keys,
                seconds: verified.seconds,
                unknown: UnknownFields::new(),
            }),
            cluster_state: None,
            cluster_state_problem: None,
            kctl_version: env!("CARGO_PKG_VERSION").to_owned(),
            unknown: UnknownFields::new(),
        }
    }
}
