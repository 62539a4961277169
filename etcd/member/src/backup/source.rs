//! The member of etcd that a snapshot is taken of, through the JSON gateway on its client port. It serves meanwhile, so nothing is asked of it
//! that would keep it busy for long.

use crate::gateway::{CountReply, Number, StreamError};
use crate::maintenance::SCAN_TIMEOUT;
use crate::{EtcdGateway, EtcdMaintenance};
use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etcd_rules::RunningMember;
use serde::Deserialize;
use std::future::Future;
use std::time::{Duration, Instant};

/// Bytes of etcd's answer, which is in base64, that are read per microsecond at most: the member reads a snapshot from its disk and encodes
/// it twice while it serves.
const RATE: u64 = 24;

/// Keys of more bytes are not hashed by the member: it commits nothing while it reads them (etcd: `HashByRev` holds the lock of reads). Their
/// number is compared.
const MOST_HASHED: u64 = 128 << 20;

/// Timeout of a whole snapshot: a database of 8 GiB at 5 MiB per second.
const SNAPSHOT_TIME: Duration = Duration::from_mins(30);

/// etcd sends pieces of 32 KiB, and the gateway writes each as a line.
const LONGEST_LINE: usize = 1 << 20;

/// etcd's hash of all keys at a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyHash {
    pub hash: u64,
    /// Revision up to which the keys are compacted; -1: none is. The hash depends on it.
    pub compacted: i64,
}

/// What the member said of its keys at a revision. A snapshot that is taken afterwards has them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeysAt {
    pub revision: u64,
    /// How many there were.
    pub count: u64,
    /// `None`: there are too many to hash them.
    pub hash: Option<KeyHash>,
}

/// A member of which snapshots are taken, as a trait that tests replace.
pub trait SnapshotSource: EtcdMaintenance {
    /// Writes what etcd's snapshot API sends to a file of the host.
    fn save_snapshot(&self, to: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// What the member says of its keys now. `used_bytes`: the part of its database that holds them.
    fn describe_keys(&self, used_bytes: u64)
    -> impl Future<Output = anyhow::Result<KeysAt>> + Send;
}

/// A line of the gateway's stream (grpc-gateway: `ForwardResponseStream`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamLine {
    result: Piece,
    error: Option<StreamError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Piece {
    blob: String,
}

impl SnapshotSource for EtcdGateway {
    async fn save_snapshot(&self, to: &str) -> anyhow::Result<()> {
        let (client, all) = (self.build_client()?, "{}".to_owned());
        let answer = self.send_request(&client, "maintenance/snapshot", all, SNAPSHOT_TIME);
        let mut answer = answer.await?;
        let mut file = self.host.stage_file(to, 0o600, None)?;
        let mut line = Vec::new();
        let (begun, mut received) = (Instant::now(), 0);
        while let Some(bytes) = answer.chunk().await.context("the snapshot broke off")? {
            received += bytes.len() as u64;
            let earliest = Duration::from_micros(received / RATE);
            // What is not read here, etcd does not send.
            tokio::time::sleep(earliest.saturating_sub(begun.elapsed())).await;
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    file.append(&parse_piece(&line)?)?;
                    line.clear();
                } else if line.len() > LONGEST_LINE {
                    bail!("etcd sends a piece of more than {LONGEST_LINE} bytes");
                }
            }
        }
        if !line.is_empty() {
            file.append(&parse_piece(&line)?)?;
        }
        Ok(file.commit(&self.host)?)
    }

    async fn describe_keys(&self, used_bytes: u64) -> anyhow::Result<KeysAt> {
        // From the key \0 to its end: all. Not serializable, so that the member first has everything that was acknowledged until now.
        let all = r#"{"key":"AA==","range_end":"AA==","count_only":true}"#.to_owned();
        let counted = self.request("kv/range", all, SCAN_TIMEOUT).await;
        let counted: CountReply = counted.context("the member's keys cannot be counted")?;
        let Number(revision) = counted.header.revision;
        let mut keys = KeysAt {
            revision,
            count: counted.count.0,
            hash: None,
        };
        if used_bytes <= MOST_HASHED {
            let hashed = self.hash_keys(revision).await;
            keys.hash = Some(hashed.context("the member's keys cannot be hashed")?);
        }
        Ok(keys)
    }
}

fn parse_piece(line: &[u8]) -> anyhow::Result<Vec<u8>> {
    let line: StreamLine = serde_json::from_slice(line).context("etcd sends no snapshot")?;
    if let Some(StreamError { message }) = line.error {
        bail!("etcd cannot send its snapshot: {message}");
    }
    STANDARD
        .decode(line.result.blob)
        .context("etcd sends a piece of a snapshot that is not base64")
}

/// What the member says of itself, if a snapshot of it may be taken.
pub(super) async fn describe_source(source: &impl SnapshotSource) -> anyhow::Result<RunningMember> {
    let own = source.describe_member().await?;
    if own.learner || own.leader.is_none() {
        bail!("its member {} does not vote at the moment", own.name);
    }
    if let Some(alarm) = own.alarms.iter().find(|one| *one == etcd_rules::CORRUPT) {
        bail!("etcd has the alarm {alarm}: nobody knows which member has the right data");
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_errors_of_the_stream_are_told_apart() {
        let piece =
            br#"{"result":{"header":null,"remaining_bytes":"5","blob":"aGVsbG8=","version":""}}"#;
        assert_eq!(parse_piece(piece).unwrap(), b"hello");
        assert_eq!(
            parse_piece(br#"{"result":{"remaining_bytes":"0"}}"#).unwrap(),
            b""
        );
        let error = br#"{"error":{"code":14,"message":"etcdserver: no leader","details":[]}}"#;
        let why = parse_piece(error).unwrap_err();
        assert!(format!("{why:#}").contains("no leader"), "{why:#}");
        assert!(parse_piece(b"404 page not found\n").is_err());
    }
}
