//! Events and chains that the tests of this folder share.

use super::{ChainEnd, WatchedEvent};
use proptest::prelude::*;

/// A change of a key: written if there is a value, else deleted.
pub(super) fn event(revision: u64, key: &str, value: Option<&str>) -> WatchedEvent {
    let is_put = u64::from(value.is_some());
    WatchedEvent {
        revision,
        key: key.as_bytes().to_vec(),
        value: value.map(|value| value.as_bytes().to_vec()),
        lease: None,
        created: revision * is_put,
        version: is_put,
    }
}

/// What etcd sends after a revision: each revision with one change or several, and none left out.
pub(super) fn stream(after: u64) -> impl Strategy<Value = Vec<WatchedEvent>> {
    let key = proptest::collection::vec(any::<u8>(), 1..6);
    let value = proptest::collection::vec(any::<u8>(), 0..12);
    let lease = proptest::option::of(1..=u64::MAX);
    let put = (value, lease, 1..=u64::MAX, any::<u64>());
    let change = (key, proptest::option::of(put));
    let transactions = proptest::collection::vec(change, 1..4);
    proptest::collection::vec(transactions, 0..12).prop_map(move |revisions| {
        let numbered = (after + 1..).zip(revisions);
        let events = numbered.flat_map(|(revision, changes)| {
            changes.into_iter().map(move |(key, put)| {
                let (value, lease, version, created) = match put {
                    Some((value, lease, version, created)) => {
                        (Some(value), lease, version, 1 + created % revision)
                    }
                    None => (None, None, 0, 0),
                };
                WatchedEvent {
                    revision,
                    key,
                    value,
                    lease,
                    created,
                    version,
                }
            })
        });
        events.collect::<Vec<_>>()
    })
}

/// A snapshot of which nothing is replayed yet.
pub(super) fn snapshot(cluster_id: &str, revision: u64) -> ChainEnd {
    ChainEnd {
        cluster: "demo.example.com".into(),
        etcd: "main".into(),
        cluster_id: cluster_id.into(),
        snapshot: "2026-11-26T15:00:00Z-000123".into(),
        snapshot_sha256: "5".repeat(64),
        sequence: 0,
        revision,
        sha256: "5".repeat(64),
    }
}
