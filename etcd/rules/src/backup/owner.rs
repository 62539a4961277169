//! The object which says whose a backup store is. Two etcd clusters in one store would delete each other's snapshots, and the newest
//! verified snapshot of one would be taken for the other's.

use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};

/// Key of the object, relative to the backup store.
pub const OWNER_KEY: &str = "owner.json";

/// Limit of the object, bytes.
pub const OWNER_LIMIT: usize = 16 * 1024;

/// Format of [`StoreOwner`].
const OWNER_FORMAT: u32 = 1;

/// Whose a backup store is. Two clusters may have one name: their state lies in other places, and they have other authorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreOwner {
    format: u32,
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// Where the cluster's state lies, without a slash at the end; `None`: an earlier release wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_store: Option<String>,
    /// Id of the cluster's certificate authority, as in [`node::names::INCARNATION_TAG`]; `None`: an earlier release wrote it, or whoever
    /// asks does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

impl StoreOwner {
    /// An etcd cluster as the owner. `state_store`: the URL of the cluster's folder.
    pub fn new(cluster: &str, etcd: &str, state_store: &str, incarnation: Option<&str>) -> Self {
        Self {
            format: OWNER_FORMAT,
            cluster: cluster.to_owned(),
            etcd: etcd.to_owned(),
            state_store: Some(state_store.trim_end_matches('/').to_owned()),
            incarnation: incarnation.map(str::to_owned),
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

    /// What has to be stored once [`Self::check`] has allowed it; `None`: this is it. The cluster may have been moved or made again.
    pub fn renew(&self, own: &Self) -> Option<Self> {
        let renewed = Self {
            unknown: self.unknown.clone(),
            ..own.clone()
        };
        (renewed != *self).then_some(renewed)
    }

    /// Checks that the store is that of an etcd cluster. A cluster that was moved has its incarnation still, and one that was made again its
    /// place: only if both are others, it is another cluster's. The error says whose it is, and what to do. `url`: address of the store.
    pub fn check(&self, url: &str, own: &Self) -> Result<(), String> {
        let refused = "nothing is written or deleted there for";
        if (&self.cluster, &self.etcd) != (&own.cluster, &own.etcd) {
            return Err(format!(
                "the backup store {url} is that of etcd {} of {}, as its {OWNER_KEY} says: {refused} etcd {} of {}. Set another \
                 spec.etcdClusters[].backups.backupStore",
                self.etcd, self.cluster, own.etcd, own.cluster
            ));
        }
        let may_be =
            |stored: &Option<String>, own: &Option<String>| stored.is_none() || stored == own;
        // A store in the cluster's own folder was copied or moved with it.
        let is_inside = (own.state_store.as_deref())
            .and_then(|base| url.strip_prefix(base))
            .is_some_and(|rest| rest.starts_with('/'));
        if is_inside
            || may_be(&self.state_store, &own.state_store)
            || may_be(&self.incarnation, &own.incarnation)
        {
            return Ok(());
        }
        let place = |one: &Self| one.state_store.clone().unwrap_or_default();
        Err(format!(
            "the backup store {url} is that of the {} of {}, as its {OWNER_KEY} says: {refused} the one of {}. Set another \
             spec.etcdClusters[].backups.backupStore. If the cluster was moved, its next snapshot takes the store over; if the other one is \
             gone for good, delete {url}/{OWNER_KEY}",
            self.cluster,
            place(self),
            place(own)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "s3://state/a.example.com";

    fn owner(place: &str, incarnation: Option<&str>) -> StoreOwner {
        StoreOwner::new("a.example.com", "main", place, incarnation)
    }

    #[test]
    fn a_store_has_one_etcd_cluster() {
        let stored = owner(PLACE, Some("7"));
        let read = StoreOwner::parse(OWNER_KEY, stored.to_json().as_bytes()).unwrap();
        assert_eq!(read, stored);
        assert_eq!(read.check("s3://b", &stored), Ok(()));
        for (cluster, etcd) in [("b.example.com", "main"), ("a.example.com", "events")] {
            let own = StoreOwner::new(cluster, etcd, PLACE, Some("7"));
            let why = read.check("s3://b", &own).unwrap_err();
            assert!(why.contains("etcd main of a.example.com"), "{why}");
        }
    }

    /// Place and incarnation of whoever asks; whether the store is theirs, and whether that has to be written anew.
    #[test]
    fn a_cluster_that_was_moved_or_made_again_keeps_its_store_and_a_namesake_gets_none() {
        let stored = owner(PLACE, Some("7"));
        let moved = "s3://moved/a.example.com";
        for (place, incarnation, is_own, renews) in [
            (PLACE, Some("7"), true, false),
            (&*format!("{PLACE}/"), Some("7"), true, false),
            (moved, Some("7"), true, true),
            (PLACE, Some("8"), true, true),
            (moved, Some("8"), false, true),
            // kctl knows the place only.
            (PLACE, None, true, true),
            (moved, None, false, true),
        ] {
            let own = owner(place, incarnation);
            let checked = stored.check("s3://backups", &own);
            assert_eq!(checked.is_ok(), is_own, "{place} {incarnation:?}");
            assert_eq!(
                stored.renew(&own).is_some(),
                renews,
                "{place} {incarnation:?}"
            );
            if let Err(why) = checked {
                assert!(why.contains(PLACE) && why.contains(place), "{why}");
            }
            let inside = format!("{}/backups/etcd/main", place.trim_end_matches('/'));
            assert_eq!(stored.check(&inside, &own), Ok(()));
        }
        let text = r#"{"format": 1, "cluster": "a.example.com", "etcd": "main", "later": 1}"#;
        let earlier = StoreOwner::parse(OWNER_KEY, text.as_bytes()).unwrap();
        assert_eq!(earlier.check("s3://b", &owner(moved, None)), Ok(()));
        let renewed = earlier.renew(&stored).unwrap();
        assert!(renewed.to_json().contains("later"), "{renewed:?}");
        assert_eq!(renewed.renew(&stored), None);
    }
}
