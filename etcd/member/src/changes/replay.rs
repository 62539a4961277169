//! Replays the changes after a snapshot on a scratch etcd that has restored it: each revision as one transaction, which succeeds only if every
//! key is as it was before. Meanwhile no lease may end, because that is a revision of its own.

use crate::ScratchGateway;
use crate::gateway::{Number, ReplyHeader};
use anyhow::{Context, anyhow, bail};
use aws_client::store::Store;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etcd_rules::backup::{
    ChainEnd, ChangesError, ReadPart, SnapshotManifest, StoredPart, WatchedEvent, check_follows,
};
use etcd_store::{list_first_parts, list_parts, require_part};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Leases are renewed so often.
const RENEWAL: Duration = Duration::from_secs(1);

/// etcd grants no lease for less (`LessorConfig.MinLeaseTTL`, from the election timeout of a second). If leases were not renewed for so long, because
/// the machine is busy, some may have ended.
const SHORTEST_LEASE: Duration = Duration::from_secs(2);

/// Time between two looks whether the next part is there.
const LOOK: Duration = Duration::from_millis(20);

/// For how long a lease is granted of which nobody knows that, seconds: as Kubernetes grants those of events.
const UNKNOWN_LEASE: u64 = 60 * 60;

/// gzip makes parts so many times smaller, as far as is reckoned before they are read: values of Kubernetes are small texts and protocol buffers,
/// and base64 makes them a third longer. Nobody has measured it. What was reckoned too low fills no disk, because each part is checked by itself.
const UNPACKED: u64 = 6;

/// A change takes so many times its bytes on the disk: once in etcd's log, and once in its database, whose pages may be half empty.
const ON_DISK: u64 = 3;

/// A scratch etcd with little memory gets no more than so much for changes, bytes: the instance has other things to do.
const MOST_MEMORY: u64 = 1 << 30;

/// The changes are not those after the snapshot: to try it again finds the same.
#[derive(Debug)]
pub(crate) struct DoesNotFit(String);

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot and its changes do not fit: {}", self.0)
    }
}

impl std::error::Error for DoesNotFit {}

/// True if the error says something about the changes, and not only about the attempt to replay them.
pub(crate) fn is_of_changes(error: &anyhow::Error) -> bool {
    error.is::<DoesNotFit>() || error.is::<ChangesError>()
}

/// Which changes are replayed.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The snapshot alone.
    pub(crate) begin: ChainEnd,
    /// How many parts, from the first one on.
    pub(crate) parts: u32,
    /// Bytes of the parts as they are stored.
    pub(crate) bytes: u64,
}

impl Chain {
    /// All that is stored after a snapshot; `None`: nothing. The error is a [`ChangesError`] if parts are missing.
    pub(crate) async fn find(
        backups: &Store,
        manifest: &SnapshotManifest,
    ) -> anyhow::Result<Option<Self>> {
        let Some(begin) = ChainEnd::of_manifest(manifest) else {
            return Ok(None);
        };
        let listed = list_parts(backups, &begin.snapshot).await?;
        Ok(Self::of_parts(begin, &listed))
    }

    /// So many parts after a snapshot, from the first one on: what is behind them may be damaged. `None`: its manifest does not say behind which
    /// revision they are. The error is a [`ChangesError`] if parts are missing.
    pub(crate) async fn find_first(
        backups: &Store,
        manifest: &SnapshotManifest,
        count: u32,
    ) -> anyhow::Result<Option<Self>> {
        let Some(begin) = ChainEnd::of_manifest(manifest) else {
            return Ok(None);
        };
        let listed = list_first_parts(backups, &begin.snapshot, count).await?;
        Ok(Self::of_parts(begin, &listed))
    }

    /// `None`: there are no parts.
    fn of_parts(begin: ChainEnd, listed: &[StoredPart]) -> Option<Self> {
        let last = listed.last()?;
        let bytes = listed.iter().map(|part| part.bytes);
        Some(Self {
            begin,
            parts: last.sequence,
            bytes: bytes.fold(0, u64::saturating_add),
        })
    }

    /// Room that a scratch etcd needs for them besides the snapshot, bytes.
    pub(crate) fn needed_bytes(&self) -> u64 {
        self.bytes.saturating_mul(UNPACKED * ON_DISK)
    }

    /// The changes, to be replayed while they are read.
    pub(crate) fn to_replay(&self, parts: PartReceiver) -> ReplayInput {
        ReplayInput {
            begin: self.begin.revision,
            // etcd has the end of its log in memory: 5000 entries, and up to 100 000 more until it writes a snapshot (release 3.5).
            memory: self.bytes.saturating_mul(UNPACKED).min(MOST_MEMORY),
            parts,
        }
    }
}

/// Changes that are replayed while they are read.
#[derive(Debug)]
pub(crate) struct ReplayInput {
    /// Revision of the snapshot.
    begin: u64,
    /// Memory that a scratch etcd needs for them, bytes.
    pub(crate) memory: u64,
    parts: PartReceiver,
}

/// Checks that the disk of the scratch etcd has room for so many bytes more.
pub(crate) type CheckRoom<'a> = &'a dyn Fn(u64) -> anyhow::Result<()>;

/// The parts of a chain in order, each checked; after the last one `None`.
pub(crate) type PartSender = mpsc::Sender<anyhow::Result<Option<ReadPart>>>;

/// What [`PartSender`] sends.
pub(crate) type PartReceiver = mpsc::Receiver<anyhow::Result<Option<ReadPart>>>;

/// One part is read while the one before is replayed: parts may be large.
pub(crate) fn new_part_channel() -> (PartSender, PartReceiver) {
    mpsc::channel(1)
}

/// Reads the parts of a chain, and checks each before it is sent. `last`: what the last one has to be, SHA-256 and revision, if that is known.
/// Whoever replays them may have given up, and then nothing more is read.
pub(crate) async fn send_parts(
    backups: &Store,
    chain: &Chain,
    last: Option<(&str, u64)>,
    to: PartSender,
) {
    let mut end = chain.begin.clone();
    for sequence in 1..=chain.parts {
        let read = match require_part(backups, &end.snapshot, sequence).await {
            Ok(read) => check_follows(&end, &read).map(|next| (next, read)),
            Err(error) => {
                let _ = to.send(Err(error)).await;
                return;
            }
        };
        let sent = match read {
            Ok((next, read)) => {
                end = next;
                to.send(Ok(Some(read))).await
            }
            Err(error) => {
                let _ = to.send(Err(error.into())).await;
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
    let is_last = last.is_none_or(|last| last == (&*end.sha256, end.revision));
    let ended = match is_last {
        true => Ok(None),
        false => Err(DoesNotFit(format!(
            "part {} ends at revision {} with the SHA-256 {}, and another one was chosen",
            end.sequence, end.revision, end.sha256
        ))
        .into()),
    };
    let _ = to.send(ended).await;
}

/// What was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) parts: u32,
    /// The last revision.
    pub(crate) revision: u64,
}

/// Replays all parts on a scratch etcd that has the snapshot. The error is one of [`is_of_changes`] if they do not fit.
pub(crate) fn replay_parts(
    gateway: &ScratchGateway<'_>,
    input: ReplayInput,
    check_room: CheckRoom<'_>,
) -> anyhow::Result<Replayed> {
    let ReplayInput {
        begin, mut parts, ..
    } = input;
    let mut replay = Replay::begin(gateway)?;
    replay.check_begin(begin)?;
    let mut replayed = Replayed {
        parts: 0,
        revision: begin,
    };
    while let Some(part) = replay.wait_for(&mut parts)? {
        let header = &part.part().header;
        (replayed.parts, replayed.revision) = (header.sequence, header.until);
        check_room(room_of(&part))?;
        replay.apply(part)?;
    }
    Ok(replayed)
}

/// Bytes that the changes of a part take on the disk at most.
fn room_of(part: &ReadPart) -> u64 {
    let events = part.part().events.iter();
    let bytes = events.map(|event| {
        let value = event.value.as_ref().map_or(0, Vec::len);
        event.key.len().saturating_add(value) as u64
    });
    bytes.fold(0, u64::saturating_add).saturating_mul(ON_DISK)
}

/// A scratch etcd on which changes are replayed.
struct Replay<'a> {
    gateway: &'a ScratchGateway<'a>,
    /// Ids of its leases.
    leases: BTreeSet<u64>,
    renewed: Instant,
    /// The longest time between two renewals.
    longest_pause: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusReply {
    header: ReplyHeader,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TxnReply {
    header: ReplyHeader,
    succeeded: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeasesReply {
    leases: Vec<LeaseReply>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeaseReply {
    /// Signed.
    #[serde(rename = "ID")]
    id: String,
}

impl<'a> Replay<'a> {
    /// Keeps the leases of the snapshot, which begin to run out once the scratch etcd answers.
    fn begin(gateway: &'a ScratchGateway<'a>) -> anyhow::Result<Self> {
        let listed: LeasesReply = gateway.ask_until_available("lease/leases", "{}")?;
        let leases = listed.leases.iter().map(|lease| {
            let id: i64 = lease.id.parse().context("etcd lists a lease without id")?;
            anyhow::Ok(id.cast_unsigned())
        });
        let mut replay = Self {
            gateway,
            leases: leases.collect::<anyhow::Result<_>>()?,
            renewed: Instant::now(),
            longest_pause: Duration::ZERO,
        };
        replay.renew_leases()?;
        Ok(replay)
    }

    fn check_begin(&self, begin: u64) -> anyhow::Result<()> {
        let status: StatusReply = self
            .gateway
            .ask_until_available("maintenance/status", "{}")?;
        let Number(revision) = status.header.revision;
        if revision > begin {
            bail!(
                "a scratch etcd is at revision {revision}, and its snapshot at {begin}: leases have ended before they could be renewed"
            );
        }
        if revision < begin {
            let why = format!("it is at revision {revision}, and they are behind {begin}");
            return Err(DoesNotFit(why).into());
        }
        Ok(())
    }

    /// The next part; `None` after the last one.
    fn wait_for(&mut self, parts: &mut PartReceiver) -> anyhow::Result<Option<ReadPart>> {
        loop {
            match parts.try_recv() {
                Ok(part) => return part,
                Err(TryRecvError::Disconnected) => bail!("the parts were not read to their end"),
                Err(TryRecvError::Empty) => {}
            }
            self.renew_due()?;
            sleep(LOOK);
        }
    }

    fn apply(&mut self, part: ReadPart) -> anyhow::Result<()> {
        let granted = part.leases();
        let events = part.into_events();
        for changes in events.chunk_by(|one, other| one.revision == other.revision) {
            self.renew_due()?;
            self.grant_leases(changes, &granted)?;
            self.apply_revision(changes)?;
        }
        Ok(())
    }

    /// Makes the changes of one revision.
    fn apply_revision(&self, changes: &[WatchedEvent]) -> anyhow::Result<()> {
        let Some(WatchedEvent { revision, .. }) = changes.first() else {
            return Ok(());
        };
        let reply: TxnReply = self.gateway.ask("kv/txn", &transaction_of(changes))?;
        let Number(found) = reply.header.revision;
        if !reply.succeeded {
            let why = "its keys are not as they were before";
            return Err(self.judge_misfit(format!("at revision {found}, {why} {revision}")));
        }
        if found != *revision {
            let why = format!("it is at revision {found} after the changes of {revision}");
            return Err(self.judge_misfit(why));
        }
        Ok(())
    }

    /// A verdict, unless leases may have ended: then the scratch etcd has changes of its own.
    fn judge_misfit(&self, why: String) -> anyhow::Error {
        let pause = self.longest_pause.max(self.renewed.elapsed());
        match pause >= SHORTEST_LEASE && !self.leases.is_empty() {
            true => anyhow!(
                "leases may have ended in a scratch etcd, because they were not renewed for {} s: {why}",
                pause.as_secs()
            ),
            false => DoesNotFit(why).into(),
        }
    }

    /// Grants the leases of keys that the scratch etcd does not have, under their ids. They are another time as long as they were.
    fn grant_leases(
        &mut self,
        changes: &[WatchedEvent],
        granted: &BTreeMap<u64, u64>,
    ) -> anyhow::Result<()> {
        for id in changes.iter().filter_map(|change| change.lease) {
            if self.leases.contains(&id) {
                continue;
            }
            let seconds = granted.get(&id).unwrap_or(&UNKNOWN_LEASE);
            let body = json!({"ID": id.cast_signed().to_string(), "TTL": seconds.to_string()});
            self.gateway.post("lease/grant", &body.to_string())?;
            self.leases.insert(id);
        }
        Ok(())
    }

    fn renew_due(&mut self) -> anyhow::Result<()> {
        match self.renewed.elapsed() >= RENEWAL {
            true => self.renew_leases(),
            false => Ok(()),
        }
    }

    fn renew_leases(&mut self) -> anyhow::Result<()> {
        self.longest_pause = self.longest_pause.max(self.renewed.elapsed());
        self.renewed = Instant::now();
        // The gateway passes on a stream of requests.
        let ids = self.leases.iter().map(|id| id.cast_signed());
        let body: String = ids.map(|id| format!("{{\"ID\":\"{id}\"}}\n")).collect();
        if body.is_empty() {
            return Ok(());
        }
        let renewed = self.gateway.post("lease/keepalive", &body);
        renewed.map(drop).context("leases cannot be renewed")
    }
}

/// The request that makes these changes, all of one revision, if every key is as it was before.
fn transaction_of(changes: &[WatchedEvent]) -> String {
    let (mut compare, mut success) = (Vec::new(), Vec::new());
    for change in changes {
        let key = STANDARD.encode(&change.key);
        let version = |result: &str, version: u64| json!({"result": result, "target": "VERSION", "key": key, "version": version.to_string()});
        let Some(value) = &change.value else {
            compare.push(version("GREATER", 0));
            success.push(json!({"requestDeleteRange": {"key": key}}));
            continue;
        };
        compare.push(version("EQUAL", change.version.saturating_sub(1)));
        if change.version > 1 {
            let created = change.created.to_string();
            compare.push(
                json!({"result": "EQUAL", "target": "CREATE", "key": key, "createRevision": created}),
            );
        }
        let mut put = json!({"key": key, "value": STANDARD.encode(value)});
        if let (Some(lease), Some(fields)) = (change.lease, put.as_object_mut()) {
            let lease = lease.cast_signed().to_string();
            fields.insert("lease".to_owned(), lease.into());
        }
        success.push(json!({"requestPut": put}));
    }
    json!({"compare": compare, "success": success}).to_string()
}

/// What is said of changes that were replayed.
pub(crate) fn describe_replayed(replayed: Replayed) -> String {
    let Replayed { parts, revision } = replayed;
    format!("{parts} parts of its changes, up to revision {revision}, were replayed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd_rules::backup::{ChangesPart, CollectedChanges};

    #[test]
    fn a_part_needs_room_for_its_keys_and_values_in_the_log_and_in_the_database() {
        let begin = ChainEnd {
            cluster: "demo.example.com".into(),
            etcd: "main".into(),
            cluster_id: "c1".into(),
            snapshot: "s1".into(),
            snapshot_sha256: "5".repeat(64),
            sequence: 0,
            revision: 10,
            sha256: "5".repeat(64),
        };
        let put = WatchedEvent {
            revision: 11,
            key: b"/a".to_vec(),
            value: Some(vec![7; 1000]),
            lease: None,
            created: 11,
            version: 1,
        };
        let deleted = WatchedEvent {
            revision: 12,
            value: None,
            created: 0,
            version: 0,
            ..put.clone()
        };
        let changes = CollectedChanges {
            after: 10,
            until: 12,
            events: vec![put, deleted],
        };
        let part = begin.next_part("i-1", "2026-11-26T15:00:00Z", changes);
        let read = ChangesPart::parse("part", &part.encode()).unwrap();
        assert_eq!(room_of(&read), 1004 * ON_DISK);
    }

    #[test]
    fn a_transaction_succeeds_only_if_every_key_is_as_it_was() {
        let put = |key: &str, version: u64, created: u64, lease: Option<u64>| WatchedEvent {
            revision: 12,
            key: key.as_bytes().to_vec(),
            value: Some(b"b".to_vec()),
            lease,
            created,
            version,
        };
        let deleted = WatchedEvent {
            value: None,
            ..put("/c", 0, 0, None)
        };
        let changes = [
            put("/a", 1, 12, Some(u64::MAX - 4)),
            put("/b", 3, 7, None),
            deleted,
        ];
        let expected = json!({
            "compare": [
                {"result": "EQUAL", "target": "VERSION", "key": "L2E=", "version": "0"},
                {"result": "EQUAL", "target": "VERSION", "key": "L2I=", "version": "2"},
                {"result": "EQUAL", "target": "CREATE", "key": "L2I=", "createRevision": "7"},
                {"result": "GREATER", "target": "VERSION", "key": "L2M=", "version": "0"},
            ],
            "success": [
                {"requestPut": {"key": "L2E=", "value": "Yg==", "lease": "-5"}},
                {"requestPut": {"key": "L2I=", "value": "Yg=="}},
                {"requestDeleteRange": {"key": "L2M="}},
            ],
        });
        let made: serde_json::Value = serde_json::from_str(&transaction_of(&changes)).unwrap();
        assert_eq!(made, expected);
    }
}
