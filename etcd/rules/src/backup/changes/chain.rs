//! The chain of the parts after a snapshot. Each part names the hash of the one before, and the first one that of the snapshot: what is
//! missing, changed, in another order, or of another etcd cluster or snapshot does not follow.

use super::part::{ChangesPart, PART_FORMAT, PartHeader, ReadPart};
use super::{ChangesError, CollectedChanges};
use crate::backup::manifest::SnapshotManifest;
use crate::backup::name::changes_key;
use node::formatted::UnknownFields;
use std::collections::BTreeMap;

/// How far a chain is known: the snapshot alone, or the parts up to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    /// Name of the snapshot.
    pub snapshot: String,
    /// SHA-256 of the file that etcd wrote for it, hex.
    pub snapshot_sha256: String,
    /// The sequence number of the last part; 0: there is none.
    pub sequence: u32,
    /// The last revision.
    pub revision: u64,
    /// What the next part names: SHA-256 of the content of the last part, or of the snapshot, hex.
    pub sha256: String,
}

impl ChainEnd {
    /// A snapshot, of which nothing is replayed yet. `None`: nobody has verified it, so its revision is not known, or its manifest does not
    /// say of which etcd cluster it is, as that of an imported one.
    pub fn of_manifest(manifest: &SnapshotManifest) -> Option<Self> {
        Some(Self {
            cluster: manifest.cluster.clone(),
            etcd: manifest.etcd.clone(),
            cluster_id: manifest.cluster_id.clone()?,
            snapshot: manifest.name.clone(),
            snapshot_sha256: manifest.sha256.clone(),
            sequence: 0,
            revision: manifest.verified.as_ref()?.revision,
            sha256: manifest.sha256.clone(),
        })
    }

    /// The next part, of changes that were collected from this revision on. `at`: time by the clock of the instance, RFC 3339. Whoever stores
    /// it reads its content before, and checks that it follows: what a restore would refuse must not be stored.
    pub fn next_part(&self, instance: &str, at: &str, changes: CollectedChanges) -> ChangesPart {
        let header = PartHeader {
            format: PART_FORMAT,
            cluster: self.cluster.clone(),
            etcd: self.etcd.clone(),
            cluster_id: self.cluster_id.clone(),
            snapshot: self.snapshot.clone(),
            snapshot_sha256: self.snapshot_sha256.clone(),
            sequence: self.sequence.saturating_add(1),
            after: changes.after,
            until: changes.until,
            previous: self.sha256.clone(),
            instance: instance.to_owned(),
            at: at.to_owned(),
            events: changes.events.len() as u64,
            leases: BTreeMap::new(),
            unknown: UnknownFields::new(),
        };
        ChangesPart {
            header,
            events: changes.events,
        }
    }
}

/// Checks that a part continues its chain. Returns how far the chain is known with it. The error is [`ChangesError::Detached`].
pub fn check_follows(before: &ChainEnd, read: &ReadPart) -> Result<ChainEnd, ChangesError> {
    let header = &read.part().header;
    let sequence = u64::from(before.sequence) + 1;
    let numbers = [
        ("sequence number", u64::from(header.sequence), sequence),
        ("last revision before it", header.after, before.revision),
    ];
    let numbers =
        numbers.map(|(what, found, expected)| (what, found.to_string(), expected.to_string()));
    let texts = [
        ("cluster", &header.cluster, &before.cluster),
        ("etcd cluster", &header.etcd, &before.etcd),
        (
            "id of the etcd cluster",
            &header.cluster_id,
            &before.cluster_id,
        ),
        ("snapshot", &header.snapshot, &before.snapshot),
        (
            "SHA-256 of the snapshot",
            &header.snapshot_sha256,
            &before.snapshot_sha256,
        ),
        (
            "SHA-256 of what is before it",
            &header.previous,
            &before.sha256,
        ),
    ];
    let texts = texts.map(|(what, found, expected)| (what, found.clone(), expected.clone()));
    let mut all = texts.into_iter().chain(numbers);
    if let Some((what, found, expected)) = all.find(|(_, found, expected)| found != expected) {
        let key = changes_key(&before.snapshot, before.sequence.saturating_add(1));
        let why = format!("its {what} is {found}, and not {expected}");
        return Err(ChangesError::Detached { key, why });
    }
    Ok(ChainEnd {
        sequence: header.sequence,
        revision: header.until,
        sha256: read.sha256().to_owned(),
        ..before.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{snapshot, stream};
    use super::super::{ChangesBatch, WatchedEvent};
    use super::*;
    use proptest::prelude::*;

    const OWN: &str = "cdf818194e3a8c32";
    const AFTER: u64 = 10;

    /// The contents of the parts of a chain. `cuts`: after which events a part is closed.
    fn write_chain(
        from: &ChainEnd,
        instance: &str,
        (events, cuts): (&[WatchedEvent], &[bool]),
    ) -> Vec<Vec<u8>> {
        let mut batch = ChangesBatch::new(from.revision, usize::MAX);
        let (mut end, mut contents) = (from.clone(), Vec::new());
        let mut store = |changes: CollectedChanges| {
            let content = end
                .next_part(instance, "2026-11-26T15:04:05Z", changes)
                .encode();
            end = check_follows(&end, &ChangesPart::parse("own", &content).unwrap()).unwrap();
            contents.push(content);
        };
        for (event, is_cut) in events.iter().zip(cuts) {
            assert_eq!(batch.add(event.clone()), Ok(None));
            if *is_cut {
                store(batch.close());
            }
        }
        let last = events.last().map_or(from.revision, |event| event.revision);
        assert_eq!(batch.note_progress(last), Ok(None));
        store(batch.close());
        contents
    }

    fn follow(from: &ChainEnd, contents: &[Vec<u8>]) -> Result<ChainEnd, ChangesError> {
        contents.iter().try_fold(from.clone(), |end, content| {
            check_follows(&end, &ChangesPart::parse("part", content)?)
        })
    }

    proptest! {
        /// Any single change of a byte; a part that is missing, although a later one is there; one in another place, twice, of another etcd
        /// cluster, of another snapshot, or of somebody else who wrote the same chain: the chain ends before it.
        #[test]
        fn nothing_but_the_whole_chain_in_its_order_is_followed(
            events in stream(AFTER), cuts in proptest::collection::vec(any::<bool>(), 40),
            kind in 0..7, place in any::<proptest::sample::Index>(), byte in any::<proptest::sample::Index>(), flip in 1..=u8::MAX,
        ) {
            let own = snapshot(OWN, AFTER);
            let changes = (&events[..], &cuts[..]);
            let good = write_chain(&own, "i-1", changes);
            prop_assert!(follow(&own, &good).is_ok());
            let (mut bad, place) = (good.clone(), place.index(good.len()));
            let is_last = place + 1 == good.len();
            let other_cluster = snapshot("0123456789abcdef", AFTER);
            let other_snapshot = ChainEnd { snapshot: "before-upgrade".into(), ..own.clone() };
            match kind {
                0 => {
                    let byte = byte.index(bad[place].len());
                    bad[place][byte] ^= flip;
                }
                // Whoever does not know of the last one knows a shorter chain.
                1 if !is_last => drop(bad.remove(place)),
                2 if !is_last => bad.swap(place, place + 1),
                3 => bad.insert(place, good[place].clone()),
                4 => bad[place] = write_chain(&other_cluster, "i-1", changes)[place].clone(),
                5 => bad[place] = write_chain(&other_snapshot, "i-1", changes)[place].clone(),
                // A chain of one part is another good chain.
                6 if good.len() > 1 => bad[place] = write_chain(&own, "i-2", changes)[place].clone(),
                _ => return Ok(()),
            }
            prop_assert!(follow(&own, &bad).is_err());
            // What is before it can be used, and nothing else.
            let used = bad.iter().zip(&good).take_while(|(bad, good)| bad == good).count();
            prop_assert!(follow(&own, &bad[..used]).is_ok());
        }
    }

    #[test]
    fn a_chain_begins_with_a_verified_snapshot_of_a_known_etcd_cluster() {
        let sha256 = "5".repeat(64);
        let text = |more: &str| {
            format!(
                r#"{{"format":1,"name":"2026-11-26T15:00:00Z-000123","cluster":"demo.example.com","etcd":"main","reason":"schedule",
                "takenAt":"2026-11-26T15:00:00Z","bytes":1,"sha256":"{sha256}","compressedBytes":1,"compressedSha256":"",
                "kctlVersion":"0.1.0"{more}}}"#
            )
        };
        let verified =
            r#","verified":{"at":"","revision":10,"compacted":0,"hash":0,"keys":0,"seconds":9}"#;
        let id = format!(r#","clusterId":"{OWN}""#);
        for (more, begins) in [
            (String::new(), false),
            (id.clone(), false),
            (verified.to_owned(), false),
            (format!("{verified}{id}"), true),
        ] {
            let manifest = SnapshotManifest::parse("manifest", text(&more).as_bytes()).unwrap();
            let begin = ChainEnd::of_manifest(&manifest);
            let expected = begins.then(|| snapshot(OWN, AFTER));
            assert_eq!(begin, expected, "{more}");
        }
    }
}
