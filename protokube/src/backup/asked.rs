//! What `kctl etcd snapshot` asks of an instance: a snapshot under a name, or a look at one that is stored.

use super::role::describe_taken;
use super::source::SnapshotSource;
use super::stored::require_manifest;
use super::take::{LocalFolder, PACKED, SnapshotTaker};
use super::verify::{FILE, Found, inspect_snapshot};
use crate::etcd::run_blocking;
use anyhow::{Context, bail};
use aws_client::packed::unpack_file;
use aws_client::store::{Expect, Store, StoreError, Version};
use node::backup::{
    EtcdBackupSettings, SnapshotManifest, VerifiedSnapshot, check_snapshot_name, data_key,
    is_scheduled, manifest_key,
};
use node::etcd::UnknownFields;
use std::time::Instant;
use time::format_description::well_known::Rfc3339;

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// Takes a snapshot under a name that somebody chose. Returns what was done.
    pub(crate) async fn take_asked(&self, name: &str, reason: &str) -> anyhow::Result<String> {
        check_snapshot_name(name).map_err(anyhow::Error::msg)?;
        if is_scheduled(name) {
            bail!("{name} is a name of scheduled snapshots, which are deleted by themselves");
        }
        let backups = self.open_backups(&self.require_settings().await?.store)?;
        let taken = self.take(&backups, (name, reason), || async { Ok(true) });
        Ok(describe_taken(&taken.await?, &backups))
    }

    async fn require_settings(&self) -> anyhow::Result<EtcdBackupSettings> {
        let settings = self.read_settings().await?;
        settings.with_context(|| {
            format!(
                "the state store has no settings for backups of etcd {}: run `kctl update cluster --yes`",
                self.etcd
            )
        })
    }

    /// Lets a scratch etcd read a stored snapshot. Returns what it holds. A snapshot that somebody brought is verified from then on.
    pub(super) async fn verify_stored(&self, name: &str) -> anyhow::Result<String> {
        check_snapshot_name(name).map_err(anyhow::Error::msg)?;
        let backups = self.open_backups(&self.require_settings().await?.store)?;
        let _alone = self.busy.lock().await;
        let folder = self.folder();
        let verified = self.verify_alone(&folder, &backups, name).await;
        let removed = run_blocking(move || folder.remove()).await;
        let says = verified?;
        removed?;
        Ok(says)
    }

    async fn verify_alone(
        &self,
        folder: &LocalFolder,
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
        let verified = VerifiedSnapshot {
            at: (self.clock)().format(&Rfc3339).unwrap_or_default(),
            revision: found.revision,
            compacted: u64::try_from(found.hash.compacted).unwrap_or_default(),
            hash: found.hash.hash,
            keys: found.keys,
            seconds,
            unknown: UnknownFields::new(),
        };
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
    if (known.revision, known.keys) != (found.revision, found.keys) {
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
