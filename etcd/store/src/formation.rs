//! Reads the formation record in the state store, and writes it only if it has not changed since it was read.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use etcd_rules::{
    FormationRecord, FormedClusters, backups_prefix, formed_key, formed_prefix, kept_backups_key,
    read_replaced, record_key,
};

/// Largest record that is read, bytes, and largest object of a formed cluster: it is the cluster's record.
pub const RECORD_LIMIT: usize = 64 * 1024;

/// Access to the record of one etcd cluster.
#[derive(Clone, Debug)]
pub struct FormationStore {
    store: Store,
    /// The cluster's folder in the store, with a slash at its end; empty if the store begins there.
    folder: String,
    etcd: String,
    key: String,
}

/// A record with the version that was read.
#[derive(Clone, Debug, Default)]
pub struct StoredRecord {
    /// The record; `None` if it does not exist.
    pub record: Option<FormationRecord>,
    version: Option<Version>,
}

impl FormationStore {
    /// Access to the record of an etcd cluster (`main`, `events`). The store begins at the cluster's folder.
    pub fn new(store: &Store, etcd: &str) -> Self {
        Self::in_folder(store, "", etcd)
    }

    /// The same in a store of several clusters. `folder`: that of the cluster, with a slash at its end.
    pub fn in_folder(store: &Store, folder: &str, etcd: &str) -> Self {
        Self {
            store: store.clone(),
            folder: folder.to_owned(),
            etcd: etcd.to_owned(),
            key: format!("{folder}{}", record_key(etcd)),
        }
    }

    fn key_below(&self, key: &str) -> String {
        format!("{}{key}", self.folder)
    }

    /// The backup store at this address.
    pub fn open_backups(&self, url: &str) -> anyhow::Result<Store> {
        Ok(self.store.open_other(url)?)
    }

    pub async fn read_record(&self) -> anyhow::Result<StoredRecord> {
        let object = self.store.get(&self.key).await;
        let object = object.with_context(|| format!("could not read {}", self.key))?;
        let Some(object) = object else {
            return Ok(StoredRecord::default());
        };
        Ok(StoredRecord {
            record: Some(FormationRecord::parse(&self.key, &object.bytes)?),
            version: Some(object.version),
        })
    }

    /// Key of an object other than the record which shows that the etcd cluster existed before; `None` if there is none.
    pub async fn find_trace(&self) -> anyhow::Result<Option<String>> {
        for prefix in [formed_prefix(&self.etcd), backups_prefix(&self.etcd)] {
            let prefix = self.key_below(&prefix);
            let entries = self.store.list(&prefix, None).await;
            let entries = entries.with_context(|| format!("could not list {prefix}"))?;
            // Backups that `kctl delete cluster` has kept are of another cluster of this name.
            let kept = self.key_below(&kept_backups_key(&self.etcd));
            if entries.iter().any(|entry| entry.key == kept) {
                continue;
            }
            if let Some(entry) = entries.into_iter().next() {
                return Ok(Some(entry.key));
            }
        }
        Ok(None)
    }

    /// The etcd clusters of this name that were ever formed.
    pub async fn list_formed(&self) -> anyhow::Result<FormedClusters> {
        let prefix = self.key_below(&formed_prefix(&self.etcd));
        let entries = self.store.list(&prefix, None).await;
        let entries = entries.with_context(|| format!("could not list {prefix}"))?;
        let mut formed = FormedClusters::new();
        for key in entries.into_iter().map(|entry| entry.key) {
            let object = self.store.get_first(&key, RECORD_LIMIT).await;
            let object = object.with_context(|| format!("could not read {key}"))?;
            let replaced = read_replaced(&object.unwrap_or_default());
            if let Some(id) = key.strip_prefix(&prefix) {
                formed.insert(id.to_owned(), replaced);
            }
        }
        Ok(formed)
    }

    /// Writes the object which shows permanently that the recorded cluster was formed. The record comes first: a cluster whose record
    /// could not be written never serves, and nothing must speak of it.
    pub async fn write_formed(&self, record: &FormationRecord) -> anyhow::Result<()> {
        let Some(cluster_id) = record.cluster_id() else {
            return Ok(());
        };
        self.unmark_kept_backups().await?;
        let key = self.key_below(&formed_key(&self.etcd, cluster_id));
        let text = record.to_json().into_bytes();
        match self.store.put(&key, text, Expect::Absent).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("could not write {key}")),
        }
    }

    /// From now on the backups in the cluster's folder are this cluster's too, and a trace of it.
    async fn unmark_kept_backups(&self) -> anyhow::Result<()> {
        let key = self.key_below(&kept_backups_key(&self.etcd));
        match self.store.delete(&key, Expect::Any).await {
            // Instances may not delete there, if the spec names a backup store elsewhere: no backups come to lie there then.
            Ok(()) | Err(StoreError::Denied { .. }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("could not delete {key}")),
        }
    }

    /// Replaces the record that was read. False if another control plane wrote it first.
    pub async fn write_record(
        &self,
        read: &StoredRecord,
        record: &FormationRecord,
    ) -> anyhow::Result<bool> {
        let expect = read.version.clone();
        let expect = expect.map_or(Expect::Absent, Expect::Version);
        let text = record.to_json().into_bytes();
        match self.store.put(&self.key, text, expect).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("could not write {}", self.key)),
        }
    }
}
