//! A drill: a stored snapshot is downloaded, a scratch etcd reads it, and what was found stands in the state of the backups, which
//! `kctl validate` shows.

use super::source::SnapshotSource;
use super::take::SnapshotTaker;
use super::verify::{Found, inspect_snapshot, read_secrets};
use super::work_folder::{FILE, PACKED, WorkFolder};
use crate::changes::{Chain, describe_replayed, new_part_channel, send_parts};
use crate::{UnusableSnapshot, judge_snapshot, run_blocking};
use anyhow::{Context, anyhow};
use aws_client::packed::{packed_limit, unpack_file};
use aws_client::store::{Expect, Store, StoreError, Version};
use etcd_rules::backup::{
    BackupDrill, BackupState, SnapshotManifest, check_snapshot_name, data_key, manifest_key,
};
use etcd_store::{BackupStateObject, require_manifest};
use node::waits::bounded_text;
use std::time::Instant;
use time::format_description::well_known::Rfc3339;

/// Limit of what is stored of a drill or of a problem, characters.
pub(super) const TEXT_LIMIT: usize = 500;

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// Drills with the snapshot of this name. Returns what it holds. The error is an [`UnusableSnapshot`] if it cannot be restored; any
    /// other only kept this instance from finding that out.
    pub async fn drill(&self, name: &str) -> anyhow::Result<String> {
        let begun = Instant::now();
        let verified = self.verify_stored(name).await;
        let now = (self.clock)();
        let result = match &verified {
            Ok(found) => Some((found.clone(), false)),
            Err(error) if error.is::<UnusableSnapshot>() => Some((format!("{error:#}"), true)),
            Err(_) => None,
        };
        let change = |state: &BackupState| match (&result, &verified) {
            (Some((found, failed)), _) => Some(state.with_drill(BackupDrill {
                name: name.to_owned(),
                instance: self.instance.clone(),
                at: now.format(&Rfc3339).unwrap_or_default(),
                seconds: begun.elapsed().as_secs(),
                found: bounded_text(found, TEXT_LIMIT),
                failed: *failed,
            })),
            (None, Err(error)) => {
                let why = format!("{error:#}");
                Some(state.with_unfinished_drill(&self.instance, &why, now))
            }
            (None, Ok(_)) => None,
        };
        let written = BackupStateObject::new(&self.store, &self.etcd)
            .change(change)
            .await;
        // What was found out about the snapshot matters more.
        let found = verified?;
        written.map(|()| found)
    }

    /// Lets a scratch etcd read a stored snapshot. Returns what it holds. A snapshot that somebody brought is verified from then on.
    async fn verify_stored(&self, name: &str) -> anyhow::Result<String> {
        check_snapshot_name(name).map_err(anyhow::Error::msg)?;
        let backups = self.open_backups(&self.require_settings().await?.store)?;
        let _alone = self.busy.lock().await;
        let folder = self.work_folder();
        let verified = self.verify_alone(&folder, &backups, name).await;
        let removed = run_blocking(move || folder.remove()).await;
        let verified = verified.map_err(|error| judge_snapshot(error, name));
        let says = verified.map_err(|error| match error.is::<UnusableSnapshot>() {
            true => error,
            false => error.context(format!("the snapshot {name} could not be read")),
        })?;
        removed?;
        Ok(says)
    }

    async fn verify_alone(
        &self,
        folder: &WorkFolder,
        backups: &Store,
        name: &str,
    ) -> anyhow::Result<String> {
        let begun = Instant::now();
        // Before it is read: what is written later must be written over what was read.
        let version = find_version(backups, name).await?;
        let manifest = require_manifest(backups, name).await?;
        let chain = Chain::find(backups, &manifest).await?;
        let changes = chain.as_ref().map_or(0, Chain::needed_bytes);
        let (here, bytes) = (folder.clone(), manifest.bytes);
        run_blocking(move || here.prepare_for(bytes, changes)).await?;
        let key = data_key(name);
        let address = format!("{}/{key}", backups.url());
        // Room was looked for by the size of the snapshot: a manifest that says more of the packed file must not fill the disk.
        let most = manifest.compressed_bytes.min(packed_limit(bytes));
        let packed = folder.file(PACKED);
        let got = backups.get_file_within(&key, &packed, most).await;
        let got = got.with_context(|| format!("could not read {address}"))?;
        if got.is_none() {
            return Err(anyhow!("{address} does not exist").context(UnusableSnapshot(name.into())));
        }
        let (here, sha256) = (folder.clone(), manifest.sha256.clone());
        let (to, parts) = new_part_channel();
        let changes = chain.as_ref().map(|chain| chain.to_replay(parts));
        let found = run_blocking(move || {
            unpack_file(&here.file(PACKED), &here.file(FILE), bytes, &sha256)?;
            here.remove_file(PACKED)?;
            let configuration = here.read_encryption_config()?;
            inspect_snapshot(&here, (None, changes), |gateway| {
                read_secrets(gateway, configuration.as_deref())
            })
        });
        let send = async {
            if let Some(chain) = &chain {
                send_parts(backups, chain, None, to).await;
            }
        };
        let (found, ()) = tokio::join!(found, send);
        let (found, secrets) = found.context(address)?;
        check_manifest(&manifest, &found)?;
        let seconds = begun.elapsed().as_secs();
        if let (None, Some(version)) = (&manifest.verified, version) {
            self.write_verified(backups, (manifest, version), &found, seconds)
                .await?;
        }
        let secrets = secrets.map_err(|why| anyhow!(why).context(UnusableSnapshot(name.into())))?;
        Ok(describe_found(name, &found, &secrets, seconds))
    }

    async fn write_verified(
        &self,
        backups: &Store,
        (manifest, read): (SnapshotManifest, Version),
        found: &Found,
        seconds: u64,
    ) -> anyhow::Result<()> {
        let key = manifest_key(&manifest.name);
        let at = (self.clock)().format(&Rfc3339).unwrap_or_default();
        let verified = found.describe(at, seconds);
        let manifest = SnapshotManifest {
            verified: Some(verified),
            ..manifest
        };
        let text = manifest.to_json().into_bytes();
        match backups.put(&key, text, Expect::Version(read)).await {
            // Somebody else has verified it meanwhile, deleted it, or stored another snapshot of its name.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("could not write {}/{key}", backups.url()))
            }
        }
    }
}

/// The version of a snapshot's manifest; `None`: there is none.
async fn find_version(backups: &Store, name: &str) -> anyhow::Result<Option<Version>> {
    let key = manifest_key(name);
    let listed = backups.list(&key, None).await;
    let listed = listed.with_context(|| format!("could not list {}/{key}", backups.url()))?;
    let found = listed.into_iter().find(|entry| entry.key == key);
    Ok(found.map(|entry| entry.version))
}

fn check_manifest(manifest: &SnapshotManifest, found: &Found) -> anyhow::Result<()> {
    let Some(known) = &manifest.verified else {
        return Ok(());
    };
    // Releases before the changes wrote the revision of a running scratch etcd, in which leases had ended.
    let has_gone_on = known.revision > found.revision;
    if !has_gone_on && (known.revision, known.keys) != (found.revision, found.keys) {
        let why = format!(
            "a scratch etcd finds {} keys at revision {}, but its manifest says {} at {}",
            found.keys, found.revision, known.keys, known.revision
        );
        return Err(anyhow!(why).context(UnusableSnapshot(manifest.name.clone())));
    }
    Ok(())
}

fn describe_found(name: &str, found: &Found, secret: &str, seconds: u64) -> String {
    let counts = found.prefixes.iter();
    let counts: Vec<String> = counts
        .map(|(prefix, count)| format!("{prefix} {count}"))
        .collect();
    let replayed = found.replayed.map(describe_replayed);
    let replayed = replayed.map(|replayed| format!("; {replayed}"));
    format!(
        "{name} has {} keys at revision {} ({}){}; {secret}; downloaded and read in {seconds} s",
        found.keys,
        found.revision,
        counts.join(", "),
        replayed.unwrap_or_default()
    )
}
