//! The parts of the changes after a snapshot in a backup store. A part is stored only where none is, and never changed: whoever comes second
//! reads the chain anew.

use anyhow::{Context, anyhow};
use aws_client::packed::{pack_bytes, packed_limit, unpack_bytes};
use aws_client::store::{Expect, Store, StoreError};
use etcd_rules::backup::{
    ChainEnd, ChangesError, ChangesPart, PART_LIMIT, ReadPart, StoredPart, StoredSnapshot,
    changes_key, changes_prefix, check_follows, group_snapshots,
};

/// Limit of a part's content, bytes.
const MOST_BYTES: u64 = PART_LIMIT as u64;

/// A part that can be stored: it was encoded, and checked as a restore checks it.
#[derive(Clone, Debug)]
pub struct PreparedPart {
    key: String,
    packed: Vec<u8>,
    /// How far the chain is stored with it.
    next: ChainEnd,
}

impl PreparedPart {
    /// Encodes and compresses the next part of a chain, which takes a while if it is large. The error is a [`ChangesError`] if a restore would
    /// refuse it.
    pub fn new(end: &ChainEnd, part: &ChangesPart) -> anyhow::Result<Self> {
        let key = changes_key(&end.snapshot, part.header.sequence);
        let content = part.encode();
        let next = check_follows(end, &ChangesPart::parse(&key, &content)?)?;
        let packed = pack_bytes(&content).context("a part of changes cannot be compressed")?;
        Ok(Self { key, packed, next })
    }
}

/// Stores a part. Returns how far the chain is stored then; `None`: another one is in its place, which somebody else was first to store.
pub async fn store_part(backups: &Store, part: PreparedPart) -> anyhow::Result<Option<ChainEnd>> {
    let PreparedPart { key, packed, next } = part;
    match backups.put(&key, packed, Expect::Absent).await {
        Ok(_) => Ok(Some(next)),
        Err(StoreError::Conflict { .. }) => {
            // The answer to an attempt before this one may have been lost.
            let stored = read_part(backups, &next.snapshot, next.sequence).await?;
            let is_own = stored.is_some_and(|stored| stored.sha256() == next.sha256);
            Ok(is_own.then_some(next))
        }
        Err(error) => {
            Err(error).with_context(|| format!("could not write {}/{key}", backups.url()))
        }
    }
}

/// Reads a part; `None`: it is not there. Whether it follows what is before it is for the caller to check. The error is a [`ChangesError`] if
/// it can be used by nobody.
pub async fn read_part(
    backups: &Store,
    snapshot: &str,
    sequence: u32,
) -> anyhow::Result<Option<ReadPart>> {
    let key = changes_key(snapshot, sequence);
    let address = format!("{}/{key}", backups.url());
    let most = usize::try_from(packed_limit(MOST_BYTES)).unwrap_or(usize::MAX);
    let read = backups.get_first(&key, most).await;
    let read = read.with_context(|| format!("could not read {address}"))?;
    let Some(packed) = read else { return Ok(None) };
    // One with more bytes ends too early here, and so is damaged.
    let content = unpack_bytes(&packed, MOST_BYTES).map_err(|error| ChangesError::Unusable {
        what: address.clone(),
        why: format!("{:#}", anyhow::Error::from(error)),
    })?;
    Ok(Some(ChangesPart::parse(&address, &content)?))
}

/// The same for a part that must be there: the error is a [`ChangesError`] if it is not.
pub async fn require_part(
    backups: &Store,
    snapshot: &str,
    sequence: u32,
) -> anyhow::Result<ReadPart> {
    let found = read_part(backups, snapshot, sequence).await?;
    found.ok_or_else(|| is_missing(snapshot, sequence, "it does not exist").into())
}

fn is_missing(snapshot: &str, sequence: u32, why: &str) -> ChangesError {
    ChangesError::Detached {
        key: changes_key(snapshot, sequence),
        why: why.to_owned(),
    }
}

/// The parts after a snapshot, from a complete listing, by their sequence numbers. The error is a [`ChangesError`] if one is missing before
/// others: nobody can reach those.
pub async fn list_parts(backups: &Store, snapshot: &str) -> anyhow::Result<Vec<StoredPart>> {
    let stored = list_stored(backups, snapshot).await?;
    if let Some(missing) = stored.gaps().first() {
        let why = "it does not exist, and there are others behind it";
        return Err(is_missing(snapshot, *missing.start(), why).into());
    }
    Ok(stored.parts)
}

/// So many parts after a snapshot, from the first one on, whatever is behind them. The error is a [`ChangesError`] if one of them is missing.
pub async fn list_first_parts(
    backups: &Store,
    snapshot: &str,
    count: u32,
) -> anyhow::Result<Vec<StoredPart>> {
    let stored = list_stored(backups, snapshot).await?;
    let first = stored.usable_parts().iter().copied();
    let first: Vec<StoredPart> = first.take_while(|part| part.sequence <= count).collect();
    let last = first.last().map_or(0, |part| part.sequence);
    if last < count {
        return Err(is_missing(snapshot, last.saturating_add(1), "it does not exist").into());
    }
    Ok(first)
}

/// What a complete listing shows of a snapshot's parts.
async fn list_stored(backups: &Store, snapshot: &str) -> anyhow::Result<StoredSnapshot> {
    let prefix = changes_prefix(snapshot);
    let listed = backups.list(&prefix, None).await;
    let listed = listed.with_context(|| format!("could not list {}/{prefix}", backups.url()))?;
    let objects = listed
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
    let grouped = group_snapshots(objects).into_iter();
    let mut found = grouped.filter(|one| one.name == snapshot);
    Ok(found.next().unwrap_or_default())
}

/// How far the chain after a snapshot is stored. `begin`: the snapshot alone. Only the last part is read, and checked by itself: each part was
/// stored by somebody who knew the one before. Drills and restores check the whole chain. The error is a [`ChangesError`] if nobody can go
/// on with it.
pub async fn find_chain_end(backups: &Store, begin: &ChainEnd) -> anyhow::Result<ChainEnd> {
    let parts = list_parts(backups, &begin.snapshot).await?;
    let Some(last) = parts.last() else {
        return Ok(begin.clone());
    };
    let read = require_part(backups, &begin.snapshot, last.sequence).await?;
    let before = match last.sequence {
        1 => begin.clone(),
        sequence => {
            let before = end_before(begin, sequence, &read);
            let revision = before.revision.max(begin.revision);
            ChainEnd { revision, ..before }
        }
    };
    Ok(check_follows(&before, &read)?)
}

/// How far a chain is known before one of its parts, if what the part says of that is believed. `chain`: any end of this chain; `sequence`:
/// that of the part, by its key.
pub fn end_before(chain: &ChainEnd, sequence: u32, read: &ReadPart) -> ChainEnd {
    let header = &read.part().header;
    ChainEnd {
        sequence: sequence.saturating_sub(1),
        revision: header.after,
        sha256: match sequence {
            0 | 1 => chain.snapshot_sha256.clone(),
            _ => header.previous.clone(),
        },
        ..chain.clone()
    }
}

/// The sequence number of the first part that has changes behind a revision. `end`: a chain that has.
pub async fn find_part_behind(
    backups: &Store,
    end: &ChainEnd,
    revision: u64,
) -> anyhow::Result<u32> {
    if end.sequence == 0 || end.revision <= revision {
        return Err(anyhow!(
            "nothing behind revision {revision} is stored after {}",
            end.snapshot
        ));
    }
    // It is between these, and no part ends before the one in front of it.
    let (mut first, mut last) = (1, end.sequence);
    while first < last {
        let middle = first + (last - first) / 2;
        let read = require_part(backups, &end.snapshot, middle).await?;
        match read.part().header.until > revision {
            true => last = middle,
            false => first = middle + 1,
        }
    }
    Ok(first)
}
