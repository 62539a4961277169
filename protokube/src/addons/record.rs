//! The record of applied addons in a ConfigMap. All control planes share it, and it is restored together with an etcd snapshot.
//! Objects are recorded before they are applied, so none is forgotten.

use super::cluster::simplify_error;
use super::object::ObjectId;
use anyhow::{Context, anyhow};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use node::addons::{MANAGED_BY_LABEL, MANAGER};
use protokube_role::signed_objects::{SERIALS_ANNOTATION, Serials};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = node::protokube::ADDON_RECORD;

/// Record of one addon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddonEntry {
    /// sha256 (hex) of the manifest that was applied completely; `None` while one is being applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// All objects of the addon that may exist in the cluster.
    pub objects: Vec<ObjectId>,
}

/// The record as read, and with changes to write.
#[derive(Debug)]
pub(super) struct AddonRecord {
    /// Entries by name of the addon.
    pub entries: BTreeMap<String, AddonEntry>,
    /// Serials of the signed objects that were used: older ones are not used any more.
    pub serials: Serials,
    stored: (BTreeMap<String, AddonEntry>, Serials),
    map: Option<ConfigMap>,
    /// Names of entries that could not be parsed; they count as missing.
    pub unreadable: Vec<String>,
}

impl AddonRecord {
    /// Reads the record from the cluster; empty if there is none.
    pub(crate) async fn read_record(client: &Client) -> anyhow::Result<Self> {
        let read = config_maps(client).get_opt(NAME).await;
        let map = read.map_err(simplify_error);
        let map = map.with_context(|| format!("could not read ConfigMap {NAMESPACE}/{NAME}"))?;
        let data = map.as_ref().and_then(|map| map.data.clone());
        let mut unreadable = Vec::new();
        let mut entries = BTreeMap::new();
        for (name, text) in data.unwrap_or_default() {
            match serde_json::from_str::<AddonEntry>(&text) {
                Ok(entry) => drop(entries.insert(name, entry)),
                Err(_) => unreadable.push(name),
            }
        }
        let annotations = map
            .as_ref()
            .and_then(|map| map.metadata.annotations.as_ref());
        let serials = annotations.and_then(|all| all.get(SERIALS_ANNOTATION));
        // Only an administrator can have made it unreadable, and it is written again.
        let serials = serials.and_then(|text| serde_json::from_str::<Serials>(text).ok());
        let serials = serials.unwrap_or_default();
        Ok(Self {
            stored: (entries.clone(), serials.clone()),
            entries,
            serials,
            map,
            unreadable,
        })
    }

    /// True if the cluster has the record as it is here.
    pub(crate) fn is_stored(&self) -> bool {
        self.map.is_some() && (&self.entries, &self.serials) == (&self.stored.0, &self.stored.1)
    }

    /// Writes the record if it differs from what was read. Fails if another control plane has written it since.
    pub(crate) async fn write_record(&mut self, client: &Client) -> anyhow::Result<()> {
        if self.is_stored() {
            return Ok(());
        }
        let failed = || format!("could not write ConfigMap {NAMESPACE}/{NAME}");
        let map = self.to_config_map().with_context(failed)?;
        let how = PostParams::default();
        let (answer, overtaken): (_, &[u16]) = if self.map.is_some() {
            (
                config_maps(client).replace(NAME, &how, &map).await,
                &[404, 409],
            )
        } else {
            (config_maps(client).create(&how, &map).await, &[409])
        };
        let map = match answer {
            Err(kube::Error::Api(status)) if overtaken.contains(&status.code) => {
                let others = anyhow!("another control plane has written it meanwhile; retrying");
                return Err(others).with_context(failed);
            }
            other => other.map_err(simplify_error).with_context(failed)?,
        };
        self.map = Some(map);
        self.stored = (self.entries.clone(), self.serials.clone());
        Ok(())
    }

    fn to_config_map(&self) -> Result<ConfigMap, serde_json::Error> {
        let mut map = self.map.clone().unwrap_or_default();
        let metadata = &mut map.metadata;
        metadata.name = Some(NAME.to_owned());
        metadata.namespace = Some(NAMESPACE.to_owned());
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
        let serials = serde_json::to_string(&self.serials)?;
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(SERIALS_ANNOTATION.to_owned(), serials);
        let entries = self.entries.iter();
        let data = entries.map(|(name, entry)| Ok((name.clone(), serde_json::to_string(entry)?)));
        map.data = Some(data.collect::<Result<_, serde_json::Error>>()?);
        Ok(map)
    }
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}
