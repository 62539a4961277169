//! The formation record in the state store: read, and written only if it is as it was read.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use node::etcd::{Record, State, backups_prefix, formed_key, formed_prefix, record_key};

/// An etcd cluster's record.
#[derive(Clone, Debug)]
pub struct Formation {
    store: Store,
    etcd: String,
    key: String,
}

/// A record as it was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// What it says; nothing if there is none.
    pub record: Option<Record>,
    version: Option<Version>,
}

impl Formation {
    /// The record of an etcd cluster (`main`, `events`) in the cluster's store.
    pub fn of(store: &Store, etcd: &str) -> Self {
        Self {
            store: store.clone(),
            etcd: etcd.to_owned(),
            key: record_key(etcd),
        }
    }

    /// Reads it.
    pub async fn read(&self) -> anyhow::Result<Read> {
        let object = self.store.get(&self.key).await;
        let object = object.with_context(|| format!("could not read {}", self.key))?;
        let Some(object) = object else {
            return Ok(Read {
                record: None,
                version: None,
            });
        };
        Ok(Read {
            record: Some(Record::read(&self.key, &object.bytes)?),
            version: Some(object.version),
        })
    }

    /// The key of something that says, without the record, that the etcd cluster was there before.
    pub async fn trace(&self) -> anyhow::Result<Option<String>> {
        for prefix in [formed_prefix(&self.etcd), backups_prefix(&self.etcd)] {
            let entries = self.store.list(&prefix, None).await;
            let entries = entries.with_context(|| format!("could not list {prefix}"))?;
            if let Some(entry) = entries.into_iter().next() {
                return Ok(Some(entry.key));
            }
        }
        Ok(None)
    }

    /// Writes it in the place of what was read; false if somebody else was there first. That a cluster is formed is written
    /// beside it before.
    pub async fn write(&self, read: &Read, record: &Record) -> anyhow::Result<bool> {
        if let State::Formed { cluster_id, .. } = &record.state
            && !read.record.as_ref().is_some_and(Record::is_formed)
        {
            let key = formed_key(&self.etcd, cluster_id);
            let text = record.to_json().into_bytes();
            match self.store.put(&key, text, Expect::Absent).await {
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error).with_context(|| format!("could not write {key}")),
            }
        }
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
