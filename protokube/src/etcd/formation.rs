//! The formation record in the state store: read, and written only if it is as it was read.

use anyhow::Context;
use aws::store::{Expect, Store, StoreError, Version};
use model::etcd::{Record, record_key};

/// An etcd cluster's record.
#[derive(Clone, Debug)]
pub struct Formation {
    store: Store,
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

    /// Writes it in the place of what was read; false if somebody else was there first.
    pub async fn write(&self, read: &Read, record: &Record) -> anyhow::Result<bool> {
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
