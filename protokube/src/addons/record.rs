//! What was applied, in a ConfigMap of the cluster: it goes back with etcd when a snapshot is restored, and is there for every
//! control plane. Written before objects are, so that none is ever forgotten.

use super::cluster::readable;
use super::object::ObjectId;
use anyhow::{Context, anyhow};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use node::addons::{MANAGED_BY_LABEL, MANAGER};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = "kctl-addons";

/// What was applied of an addon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// sha256 (hex) of the manifest that was applied wholly; none while one is being applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Every object of it that may be there.
    pub objects: Vec<ObjectId>,
}

/// The record as it was read, and as it is to be.
#[derive(Debug)]
pub(super) struct Record {
    /// By the addon's name.
    pub entries: BTreeMap<String, Entry>,
    stored: BTreeMap<String, Entry>,
    map: Option<ConfigMap>,
    /// Names of entries that could not be read: they count as absent.
    pub unreadable: Vec<String>,
}

impl Record {
    /// As it is in the cluster; empty if there is none.
    pub async fn read(client: &Client) -> anyhow::Result<Self> {
        let read = maps(client).get_opt(NAME).await;
        let map = read.map_err(readable);
        let map = map.with_context(|| format!("could not read ConfigMap {NAMESPACE}/{NAME}"))?;
        let data = map.as_ref().and_then(|map| map.data.clone());
        let mut unreadable = Vec::new();
        let mut entries = BTreeMap::new();
        for (name, text) in data.unwrap_or_default() {
            match serde_json::from_str::<Entry>(&text) {
                Ok(entry) => drop(entries.insert(name, entry)),
                Err(_) => unreadable.push(name),
            }
        }
        Ok(Self {
            stored: entries.clone(),
            entries,
            map,
            unreadable,
        })
    }

    /// Writes it, if it is another than was read. Fails if somebody else has written it since.
    pub async fn write(&mut self, client: &Client) -> anyhow::Result<()> {
        if self.entries == self.stored && self.map.is_some() {
            return Ok(());
        }
        let failed = || format!("could not write ConfigMap {NAMESPACE}/{NAME}");
        let map = self.made().with_context(failed)?;
        let how = PostParams::default();
        let (written, overtaken): (_, &[u16]) = if self.map.is_some() {
            (maps(client).replace(NAME, &how, &map).await, &[404, 409])
        } else {
            (maps(client).create(&how, &map).await, &[409])
        };
        let map = match written {
            Err(kube::Error::Api(status)) if overtaken.contains(&status.code) => {
                let others = anyhow!("another control plane did at the same time; looking again");
                return Err(others).with_context(failed);
            }
            other => other.map_err(readable).with_context(failed)?,
        };
        self.map = Some(map);
        self.stored = self.entries.clone();
        Ok(())
    }

    fn made(&self) -> Result<ConfigMap, serde_json::Error> {
        let mut map = self.map.clone().unwrap_or_default();
        let metadata = &mut map.metadata;
        metadata.name = Some(NAME.to_owned());
        metadata.namespace = Some(NAMESPACE.to_owned());
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
        let entries = self.entries.iter();
        let data = entries.map(|(name, entry)| Ok((name.clone(), serde_json::to_string(entry)?)));
        map.data = Some(data.collect::<Result<_, serde_json::Error>>()?);
        Ok(map)
    }
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}
