//! `protokube etcd-backup save`: one snapshot, or one per interval until the command is stopped.

use super::local::LocalSnapshots;
use crate::backup::{SnapshotSource, SnapshotTaker, describe_taken};
use anyhow::{Context, bail};
use aws_client::store::{Encryption, Expect, Store, StoreError, sha256_of_file};
use etcd_rules::backup::{
    SnapshotManifest, StoredSnapshot, check_asked_name, cluster_state_key, data_key, is_scheduled,
    manifest_key, meta_key, scheduled_name,
};
use etcd_store::{Extent, claim_store, list_snapshots, prune_snapshots, read_manifest};
use host::FileLock;
use node::backup::Retention;
use node::duration::duration_text;
use protokube_role::pace::Sleep;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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
    /// Takes one snapshot under this name. Returns what was done. If it could not be copied to S3, the same call does that only.
    pub async fn save_once(&self, name: &str) -> anyhow::Result<String> {
        check_asked_name(name).map_err(anyhow::Error::msg)?;
        let here = &self.local.store;
        let (manifest, says) = match (read_manifest(here, name).await?, &self.s3) {
            (None, _) => {
                let reason = "command, protokube etcd-backup save";
                let manifest = self.take(name, reason).await?;
                let says = self.describe(&manifest);
                (manifest, says)
            }
            (Some(manifest), Some(s3)) => {
                let says = format!(
                    "{}/{name} was taken already, at {}, and is not taken again",
                    here.url(),
                    manifest.taken_at
                );
                let there = read_manifest(s3, name).await;
                let there = there.with_context(|| format!("{says}; {}", not_copied(s3)))?;
                if there.is_some() {
                    bail!(
                        "{} has a snapshot {name} already, and so has {}",
                        here.url(),
                        s3.url()
                    );
                }
                (manifest, says)
            }
            (Some(_), None) => bail!("{} has a snapshot {name} already", here.url()),
        };
        let Some(s3) = &self.s3 else { return Ok(says) };
        match self.copy(&manifest, s3).await {
            Ok(()) => Ok(format!("{says}; copied to {}", s3.url())),
            Err(error) => Err(error.context(format!("{says}; {}", not_copied(s3)))),
        }
    }

    /// Takes a snapshot per interval, the first at once if the last one is older than that. Ends with an error only if the folder cannot be
    /// read at the start; what fails is said, and tried again after the interval.
    pub async fn save_regularly(&self, regular: &RegularSaves) -> anyhow::Result<()> {
        let all = list_snapshots(&self.local.store).await?;
        let now = (self.taker.clock)();
        let newest = all.iter().filter(|one| is_regular(one));
        let newest = newest.filter_map(|one| Some((one, age_at(one, now)?)));
        let newest = newest.min_by_key(|(_, age)| *age);
        // After the first snapshot nothing depends on the clock.
        let mut pause = newest.map_or(Duration::ZERO, |(_, age)| {
            regular.creation.saturating_sub(age)
        });
        (self.say)(&describe_begin(newest, now, pause));
        // What a command before this one may not have copied.
        let regular_ones = all.iter().filter(|one| is_regular(one));
        let mut uncopied: Vec<String> = regular_ones.map(|one| one.name.clone()).collect();
        let mut sequence = 0_u32;
        loop {
            (self.sleep)(pause).await;
            sequence = sequence.wrapping_add(1);
            self.save_and_prune(sequence, regular.retention, &mut uncopied)
                .await;
            pause = regular.creation;
        }
    }

    /// One snapshot of the regular ones: it is taken, copied, and old ones are deleted. Each of the three is said, and none keeps another
    /// from being done, but that nothing is deleted unless a snapshot was taken.
    async fn save_and_prune(&self, sequence: u32, retention: Duration, uncopied: &mut Vec<String>) {
        let name = scheduled_name((self.taker.clock)(), sequence);
        let taken = self.take(&name, "schedule, protokube etcd-backup save");
        let was_taken = match taken.await {
            Ok(manifest) => {
                (self.say)(&self.describe(&manifest));
                uncopied.push(name);
                true
            }
            Err(error) => {
                (self.say)(&format!("no snapshot was taken: {error:#}"));
                false
            }
        };
        self.copy_uncopied(uncopied).await;
        if !was_taken {
            return;
        }
        let retention = Retention {
            all: retention,
            hourly: Duration::ZERO,
            daily: Duration::ZERO,
        };
        // Somebody has said how long they stay, and the disk is this instance's.
        let pruned = prune_snapshots(&self.local.store, (retention, Extent::All), self.say);
        if let Err(error) = pruned.await {
            (self.say)(&format!("old snapshots could not be deleted: {error:#}"));
        }
    }

    /// Copies the snapshots of these names to S3, and leaves the names of those that could not be copied.
    async fn copy_uncopied(&self, uncopied: &mut Vec<String>) {
        let Some(s3) = &self.s3 else {
            return uncopied.clear();
        };
        let mut left = std::mem::take(uncopied).into_iter();
        while let Some(name) = left.next() {
            let copied = match read_manifest(&self.local.store, &name).await {
                // The retention has deleted it meanwhile.
                Ok(None) => continue,
                Ok(Some(manifest)) => self.copy(&manifest, s3).await,
                Err(error) => Err(error),
            };
            match copied {
                Ok(()) => (self.say)(&format!("{name} is also in {}", s3.url())),
                Err(error) => {
                    (self.say)(&format!(
                        "{name} is in {}, and not in {}; it is copied after the next one: {error:#}",
                        self.local.store.url(),
                        s3.url()
                    ));
                    uncopied.push(name);
                    if error.is::<StoreError>() {
                        // The others would wait for the same.
                        uncopied.extend(left);
                        return;
                    }
                }
            }
        }
    }

    /// Takes a snapshot into the folder.
    async fn take(&self, name: &str, reason: &str) -> anyhow::Result<SnapshotManifest> {
        // Two would work in the same folder with the same containers.
        let _alone = self.wait_for_others().await?;
        self.local.store.remove_leftovers()?;
        self.take_with_retries(name, reason).await
    }

    async fn copy(&self, manifest: &SnapshotManifest, s3: &Store) -> anyhow::Result<()> {
        claim_store(s3, &self.taker.owner()).await?;
        copy_snapshot(&self.local, manifest, s3).await
    }

    fn describe(&self, manifest: &SnapshotManifest) -> String {
        let says = describe_taken(manifest, &self.local.store);
        match &manifest.cluster_state_problem {
            Some(why) => format!("{says}; without the keys of the cluster: {why}"),
            None => says,
        }
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

/// Age of a snapshot, or `None` if it is of the future: a clock was wrong, and nobody knows how old it is.
fn age_at(one: &StoredSnapshot, now: OffsetDateTime) -> Option<Duration> {
    let taken = OffsetDateTime::from_unix_timestamp(one.taken()?).ok()?;
    Duration::try_from(now - taken).ok()
}

/// What is said at the start: when the first snapshot is taken, and why then.
fn describe_begin(
    newest: Option<(&StoredSnapshot, Duration)>,
    now: OffsetDateTime,
    pause: Duration,
) -> String {
    let last = newest.map_or_else(
        || "there is no snapshot whose age is known".to_owned(),
        |(one, age)| format!("the last snapshot, {}, is {} old", one.name, text_of(age)),
    );
    if pause.is_zero() {
        return format!("{last}: one is taken now");
    }
    let at = (now + pause).replace_nanosecond(0);
    let at = at.ok().and_then(|at| at.format(&Rfc3339).ok());
    format!(
        "{last}: the next one is taken in {}, at {}",
        text_of(pause),
        at.unwrap_or_default()
    )
}

fn not_copied(s3: &Store) -> String {
    format!(
        "it is not in {}: the same command copies it there, once the reason is corrected",
        s3.url()
    )
}

fn text_of(time: Duration) -> String {
    duration_text(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
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
    if let Some(there) = read_manifest(to, name).await? {
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
    for key in [meta_key(name), manifest_key(name)] {
        let read = local.store.get(&key).await?;
        let Some(object) = read else { continue };
        // An interrupted copy may have written it.
        let put = to.put(&key, object.bytes, Expect::Any).await;
        put.with_context(|| format!("could not write {}/{key}", to.url()))?;
    }
    Ok(())
}
