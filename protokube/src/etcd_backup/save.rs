//! `protokube etcd-backup save`: one snapshot, or one per interval until the command is stopped.

use super::local::LocalSnapshots;
use crate::backup::{
    SnapshotSource, SnapshotTaker, claim_store, describe_taken, list_snapshots, prune_snapshots,
    read_manifest,
};
use crate::pace::Sleep;
use anyhow::{Context, bail};
use aws_client::store::{Encryption, Expect, Store, sha256_of_file};
use host::FileLock;
use node::backup::{
    Retention, SnapshotManifest, StoredSnapshot, check_asked_name, cluster_state_key, data_key,
    is_scheduled, manifest_key, meta_key, scheduled_name,
};
use std::time::Duration;

/// Pause before a failed snapshot is tried again, as rke-tools waits.
const RETRY: Duration = Duration::from_secs(15);

/// Pause before it is looked again whether another command has ended.
const LOCK_RETRY: Duration = Duration::from_secs(2);

/// Intervals of `save` without `--once`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegularSaves {
    /// Time between two snapshots.
    pub creation: Duration,
    /// How long snapshots stay in the folder. The newest verified one stays always.
    pub retention: Duration,
}

/// Takes snapshots into the folder, and copies them to S3 if asked.
#[derive(Debug)]
pub struct SnapshotSaver<S> {
    pub taker: SnapshotTaker<S>,
    pub local: LocalSnapshots,
    pub s3: Option<Store>,
    /// How often a failed snapshot is tried again.
    pub retries: u32,
    pub sleep: Sleep,
    /// Says what happens.
    pub say: fn(&str),
}

impl<S: SnapshotSource> SnapshotSaver<S> {
    /// Takes one snapshot under this name. Returns what was done.
    pub async fn save_once(&self, name: &str) -> anyhow::Result<String> {
        check_asked_name(name).map_err(anyhow::Error::msg)?;
        self.save(name, "command, protokube etcd-backup save").await
    }

    /// Takes a snapshot per interval, the first at once if the last one is older than that. Ends with an error only if the folder cannot be
    /// read at the start; a snapshot that fails is said, and tried again after the interval.
    pub async fn save_regularly(&self, regular: &RegularSaves) -> anyhow::Result<()> {
        let all = list_snapshots(&self.local.store).await?;
        // Ages are those of files. After the first snapshot nothing depends on the clock.
        let age = all
            .iter()
            .filter(|one| is_regular(one))
            .filter_map(|one| one.age);
        let mut pause = age
            .min()
            .map_or(Duration::ZERO, |age| regular.creation.saturating_sub(age));
        let mut sequence = 0_u32;
        loop {
            (self.sleep)(pause).await;
            sequence = sequence.wrapping_add(1);
            match self.save_and_prune(sequence, regular.retention).await {
                Ok(says) => (self.say)(&says),
                Err(error) => (self.say)(&format!("no snapshot was taken: {error:#}")),
            }
            pause = regular.creation;
        }
    }

    async fn save_and_prune(&self, sequence: u32, retention: Duration) -> anyhow::Result<String> {
        let name = scheduled_name((self.taker.clock)(), sequence);
        let says = self
            .save(&name, "schedule, protokube etcd-backup save")
            .await?;
        let retention = Retention {
            all: retention,
            hourly: Duration::ZERO,
            daily: Duration::ZERO,
        };
        let pruned = prune_snapshots(&self.local.store, retention, self.say).await;
        pruned.context("old snapshots could not be deleted")?;
        Ok(says)
    }

    async fn save(&self, name: &str, reason: &str) -> anyhow::Result<String> {
        // Two would work in the same folder with the same containers.
        let alone = self.wait_for_others().await?;
        self.local.store.remove_leftovers()?;
        let manifest = self.take_with_retries(name, reason).await?;
        drop(alone);
        let mut says = describe_taken(&manifest, &self.local.store);
        if let Some(why) = &manifest.cluster_state_problem {
            says.push_str(&format!("; without the keys of the cluster: {why}"));
        }
        if let Some(s3) = &self.s3 {
            claim_store(s3, &self.taker.cluster, &self.taker.etcd).await?;
            copy_snapshot(&self.local, &manifest, s3).await?;
            says.push_str(&format!("; copied to {}", s3.url()));
        }
        Ok(says)
    }

    /// Waits until no other command takes a snapshot into the folder.
    async fn wait_for_others(&self) -> anyhow::Result<FileLock> {
        let path = self.local.path_of(".kctl-save");
        let mut is_said = false;
        loop {
            if let Some(lock) = FileLock::take(&path)? {
                return Ok(lock);
            }
            if !is_said {
                (self.say)(
                    "waits for another `protokube etcd-backup save`, which takes a snapshot",
                );
                is_said = true;
            }
            (self.sleep)(LOCK_RETRY).await;
        }
    }

    async fn take_with_retries(
        &self,
        name: &str,
        reason: &str,
    ) -> anyhow::Result<SnapshotManifest> {
        if read_manifest(&self.local.store, name).await?.is_some() {
            bail!("{} has a snapshot {name} already", self.local.store.url());
        }
        let mut attempt = 0;
        loop {
            let store = &self.local.store;
            let taken = self
                .taker
                .take(store, (name, reason), || async { Ok(true) });
            match taken.await {
                Ok(manifest) => return Ok(manifest),
                Err(error) if attempt >= self.retries => {
                    return Err(error.context(format!("no snapshot {name} could be taken")));
                }
                Err(error) => {
                    attempt += 1;
                    (self.say)(&format!(
                        "attempt {attempt} failed, the next one begins in {} s: {error:#}",
                        RETRY.as_secs()
                    ));
                    (self.sleep)(RETRY).await;
                }
            }
        }
    }
}

/// True for a complete snapshot of `save` without `--once`.
fn is_regular(one: &StoredSnapshot) -> bool {
    one.has_manifest && is_scheduled(&one.name)
}

/// Copies a snapshot from the folder, its manifest last.
async fn copy_snapshot(
    local: &LocalSnapshots,
    manifest: &SnapshotManifest,
    to: &Store,
) -> anyhow::Result<()> {
    let name = &manifest.name;
    if let Some((there, _)) = read_manifest(to, name).await? {
        if there.sha256 == manifest.sha256 {
            return Ok(());
        }
        bail!(
            "{} has another snapshot {name}: choose another name",
            to.url()
        );
    }
    let files = [
        Some(data_key(name)),
        manifest
            .cluster_state
            .as_ref()
            .map(|_| cluster_state_key(name)),
    ];
    for key in files.into_iter().flatten() {
        let path = local.path_of(&key);
        let sha256 = sha256_of_file(&path).await;
        let sha256 = sha256.with_context(|| format!("could not read {}", path.display()))?;
        let put = to.put_same_file(&key, &path, &sha256, Encryption::Bucket);
        put.await
            .with_context(|| format!("could not write {}/{key}", to.url()))?;
    }
    for key in [manifest_key(name), meta_key(name)] {
        let read = local.store.get(&key).await?;
        let Some(object) = read else { continue };
        let put = to.put(&key, object.bytes, Expect::Absent).await;
        put.with_context(|| format!("could not write {}/{key}", to.url()))?;
    }
    Ok(())
}
