//! A drill: a stored snapshot is downloaded, a scratch etcd reads it, and what was found stands in the state of the backups, which
//! `kctl validate` shows.

use super::backup_store::require_manifest;
use super::source::SnapshotSource;
use super::state_object::BackupStateObject;
use super::take::SnapshotTaker;
use super::verify::{Found, inspect_snapshot};
use super::work_folder::{FILE, PACKED, WorkFolder};
use crate::etcd::run_blocking;
use anyhow::{Context, bail};
use aws_client::packed::unpack_file;
use aws_client::store::{Expect, Store, StoreError, Version};
use node::backup::{
    BackupDrill, BackupState, SnapshotManifest, check_snapshot_name, data_key, manifest_key,
};
use node::waits::bounded_text;
use std::time::Instant;
use time::format_description::well_known::Rfc3339;

/// Limit of what is stored of a drill or of a problem, characters.
pub(super) const TEXT_LIMIT: usize = 500;

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// Drills with the snapshot of this name. Returns what it holds; the error says why it cannot be restored.
    pub async fn drill(&self, name: &str) -> anyhow::Result<String> {
        let begun = Instant::now();
        let verified = self.verify_stored(name).await;
        let found = match &verified {
            Ok(found) => found.clone(),
            Err(error) => format!("{error:#}"),
        };
        let drill = BackupDrill {
            name: name.to_owned(),
            instance: self.instance.clone(),
            at: (self.clock)().format(&Rfc3339).unwrap_or_default(),
            seconds: begun.elapsed().as_secs(),
            found: bounded_text(&found, TEXT_LIMIT),
            failed: verified.is_err(),
        };
        let with_drill = |state: &BackupState| {
            let drill = Some(drill.clone());
            Some(BackupState {
                drill,
                ..state.clone()
            })
        };
        let object = BackupStateObject::new(&self.store, &self.etcd);
        object.change(with_drill).await?;
        verified
    }

    /// Lets a scratch etcd read a stored snapshot. Returns what it holds. A snapshot that somebody brought is verified from then on.
    async fn verify_stored(&self, name: &str) -> anyhow::Result<String> {
        check_snapshot_name(name).map_err(anyhow::Error::msg)?;
        let backups = self.open_backups(&self.require_settings().await?.store)?;
        let _alone = self.busy.lock().await;
        let folder = self.work_folder();
        let verified = self.verify_alone(&folder, &backups, name).await;
        let removed = run_blocking(move || folder.remove()).await;
        let says = verified?;
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
        let (manifest, version) = require_manifest(backups, name).await?;
        let (here, bytes) = (folder.clone(), manifest.bytes);
        run_blocking(move || here.prepare(bytes)).await?;
        let key = data_key(name);
        let got = backups.get_file(&key, &folder.file(PACKED)).await;
        let got = got.with_context(|| format!("could not read {}/{key}", backups.url()))?;
        if got.is_none() {
            bail!("{}/{key} does not exist", backups.url());
        }
        let (here, sha256) = (folder.clone(), manifest.sha256.clone());
        let found = run_blocking(move || {
            unpack_file(&here.file(PACKED), &here.file(FILE), bytes, &sha256)?;
            here.remove_file(PACKED)?;
            inspect_snapshot(&here, None)
        });
        let found = found
            .await
            .with_context(|| format!("{}/{key}", backups.url()))?;
        check_manifest(&manifest, &found)?;
        let seconds = begun.elapsed().as_secs();
        if manifest.verified.is_none() {
            self.write_verified(backups, manifest, version, &found, seconds)
                .await?;
        }
        let secret = found.secret.clone().map_err(anyhow::Error::msg)?;
        Ok(describe_found(name, &found, &secret, seconds))
    }

    async fn write_verified(
        &self,
        backups: &Store,
        manifest: SnapshotManifest,
        version: Version,
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
        match backups.put(&key, text, Expect::Version(version)).await {
            // Somebody else has verified it meanwhile.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("could not write {}/{key}", backups.url()))
            }
        }
    }
}

fn check_manifest(manifest: &SnapshotManifest, found: &Found) -> anyhow::Result<()> {
    let Some(known) = &manifest.verified else {
        return Ok(());
    };
    // Leases end in a scratch etcd too, and what they end is at a higher revision.
    let has_gone_on = found.revision > known.revision;
    if !has_gone_on && (known.revision, known.keys) != (found.revision, found.keys) {
        bail!(
            "a scratch etcd finds {} keys at revision {}, but its manifest says {} at {}",
            found.keys,
            found.revision,
            known.keys,
            known.revision
        );
    }
    Ok(())
}

fn describe_found(name: &str, found: &Found, secret: &str, seconds: u64) -> String {
    let counts = found.prefixes.iter();
    let counts: Vec<String> = counts
        .map(|(prefix, count)| format!("{prefix} {count}"))
        .collect();
    format!(
        "{name} has {} keys at revision {} ({}); {secret}; downloaded and read in {seconds} s",
        found.keys,
        found.revision,
        counts.join(", ")
    )
}
