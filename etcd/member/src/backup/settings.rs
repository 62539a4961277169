//! The settings of the backups as `kctl update` wrote them, and the backup store that they name.

use super::source::SnapshotSource;
use super::take::SnapshotTaker;
use anyhow::Context;
use aws_client::store::Store;
use etcd_store::claim_store;
use node::backup::{
    BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings, EtcdBackupSettings,
};
use protokube_role::signed_objects::SignedObjects;

/// The settings of an etcd cluster's backups, which kctl has signed: they say who may read the keys of the cluster, and which snapshots
/// are deleted. `None`: there are none.
pub async fn read_settings(
    signed: &SignedObjects,
    etcd: &str,
) -> anyhow::Result<Option<EtcdBackupSettings>> {
    let read = signed.read(BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT);
    let Some(read) = read.await? else {
        return Ok(None);
    };
    let settings = BackupSettings::parse(BACKUP_SETTINGS_KEY, read.text.as_bytes())?;
    Ok(settings.etcd.get(etcd).cloned())
}

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// The settings in the state store; `None`: there are none for this etcd cluster.
    pub(super) async fn read_settings(&self) -> anyhow::Result<Option<EtcdBackupSettings>> {
        read_settings(&self.signed, &self.etcd).await
    }

    /// The settings, which a command needs.
    pub(super) async fn require_settings(&self) -> anyhow::Result<EtcdBackupSettings> {
        let settings = self.read_settings().await?;
        settings.with_context(|| {
            format!(
                "the state store has no settings for backups of etcd {}: run `kctl update {} --yes`",
                self.etcd, self.cluster
            )
        })
    }

    /// The backup store at this address.
    pub(super) fn open_backups(&self, address: &str) -> anyhow::Result<Store> {
        let opened = self.store.open_other(address);
        opened.with_context(|| format!("{address} is no backup store"))
    }

    /// The same, to write to: it is this etcd cluster's from now on, or was before.
    pub(super) async fn open_own_backups(&self, address: &str) -> anyhow::Result<Store> {
        let backups = self.open_backups(address)?;
        claim_store(&backups, &self.owner()).await?;
        Ok(backups)
    }
}
