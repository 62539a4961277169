//! The object which says whose a backup store is. Two etcd clusters in one store would delete each other's snapshots, and the newest
//! verified snapshot of one would be taken for the other's.

use crate::etcd::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};

/// Key of the object, relative to the backup store.
pub const OWNER_KEY: &str = "owner.json";

/// Limit of the object, bytes.
pub const OWNER_LIMIT: usize = 16 * 1024;

/// Format of [`StoreOwner`].
const OWNER_FORMAT: u32 = 1;

/// Whose a backup store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreOwner {
    format: u32,
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

impl StoreOwner {
    /// An etcd cluster as the owner.
    pub fn new(cluster: &str, etcd: &str) -> Self {
        Self {
            format: OWNER_FORMAT,
            cluster: cluster.to_owned(),
            etcd: etcd.to_owned(),
            unknown: UnknownFields::new(),
        }
    }

    /// Parses the object; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// Checks that the store is that of an etcd cluster. The error says whose it is, and what to do. `url`: address of the store.
    pub fn check(&self, url: &str, cluster: &str, etcd: &str) -> Result<(), String> {
        if (self.cluster.as_str(), self.etcd.as_str()) == (cluster, etcd) {
            return Ok(());
        }
        Err(format!(
            "the backup store {url} is that of etcd {} of {}, as its {OWNER_KEY} says: nothing is written or deleted there for etcd {etcd} of \
             {cluster}. Set another spec.etcdClusters[].backups.backupStore",
            self.etcd, self.cluster
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_one_etcd_cluster() {
        let owner = StoreOwner::new("a.example.com", "main");
        let read = StoreOwner::parse(OWNER_KEY, owner.to_json().as_bytes()).unwrap();
        assert_eq!(read, owner);
        assert_eq!(read.check("s3://b", "a.example.com", "main"), Ok(()));
        for (cluster, etcd) in [("b.example.com", "main"), ("a.example.com", "events")] {
            let why = read.check("s3://b", cluster, etcd).unwrap_err();
            assert!(why.contains("etcd main of a.example.com"), "{why}");
        }
    }
}
