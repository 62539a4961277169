//! A part of the changes after a snapshot. Its content is lines of JSON: a header, an event of etcd's watch in each, and last the SHA-256 of
//! all before, so that one that was cut off, padded or changed is known by itself. It is stored compressed with gzip.

use super::{ChangesError, WatchedEvent};
use crate::backup::name::{MOST_PARTS, check_snapshot_name};
use node::digest::{is_sha256, sha256_hex};
use node::formatted::{Error, UnknownFields, parse_formatted};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Format of [`PartHeader`].
pub const PART_FORMAT: u32 = 1;

/// Limit of a part's content, bytes. What unpacks one reads no more.
pub const PART_LIMIT: usize = 64 << 20;

/// Limit of the first line, bytes.
const HEADER_LIMIT: usize = 16 * 1024;

/// Leases in the first line: with 40 bytes each they leave room for the rest.
const MOST_LEASES: usize = 256;

/// Bytes of the last line, see [`end_line`].
const END_BYTES: usize = r#"{"sha256":""}"#.len() + 64 + 1;

/// Limit of the lines of all events, bytes.
pub(super) const EVENTS_LIMIT: usize = PART_LIMIT - HEADER_LIMIT - END_BYTES;

/// The first line of a part: what it follows, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartHeader {
    /// [`PART_FORMAT`].
    pub format: u32,
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    /// Name of the snapshot that it belongs to.
    pub snapshot: String,
    /// SHA-256 of the file that etcd wrote for that snapshot, hex, as its manifest says.
    pub snapshot_sha256: String,
    /// Its place in the chain, from 1 on.
    pub sequence: u32,
    /// The last revision before it.
    pub after: u64,
    /// The last revision in it. That of `after`: nothing has changed, and the part is a sign of life.
    pub until: u64,
    /// SHA-256 of the content of the part before, hex; in the first part that of the snapshot.
    pub previous: String,
    /// The instance that wrote it.
    pub instance: String,
    /// Time by its clock, RFC 3339.
    pub at: String,
    /// How many events are in it.
    pub events: u64,
    /// For how long leases of its keys were granted, seconds, by their ids, hex. Of others nobody knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leases: BTreeMap<String, u64>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A part of the changes after a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPart {
    /// What it follows, and what is in it.
    pub header: PartHeader,
    /// In etcd's order, those of one revision together, and no revision left out.
    pub events: Vec<WatchedEvent>,
}

/// A part as it was read, with the hash that the next one names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPart {
    part: ChangesPart,
    sha256: String,
}

impl ReadPart {
    /// The part.
    pub fn part(&self) -> &ChangesPart {
        &self.part
    }

    /// SHA-256 of its content, hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// For how long leases of its keys were granted, seconds, by their ids, as far as it says.
    pub fn leases(&self) -> BTreeMap<u64, u64> {
        let leases = self.part.header.leases.iter();
        let parsed = leases.filter_map(|(id, seconds)| {
            let id = u64::from_str_radix(id, 16).ok()?;
            Some((id, *seconds))
        });
        parsed.collect()
    }

    /// Its events.
    pub fn into_events(self) -> Vec<WatchedEvent> {
        self.part.events
    }
}

impl ChangesPart {
    /// The part with what is known of the leases of its keys, which etcd's watch does not say: for how long they were granted, seconds.
    #[must_use]
    pub fn with_leases(mut self, seconds: &BTreeMap<u64, u64>) -> Self {
        let own = self.events.iter().filter_map(|event| event.lease);
        let own: BTreeSet<u64> = own.collect();
        let known = own.into_iter().filter_map(|id| {
            let seconds = seconds.get(&id)?;
            Some((format!("{id:x}"), *seconds))
        });
        self.header.leases = known.take(MOST_LEASES).collect();
        self
    }

    /// The content that is compressed and stored. It is worth nothing unless [`Self::parse`] reads it.
    pub fn encode(&self) -> Vec<u8> {
        // It cannot fail, because all keys are texts.
        let header = serde_json::to_string(&self.header).unwrap_or_default();
        let mut content = header.into_bytes();
        for event in &self.events {
            content.push(b'\n');
            content.extend_from_slice(event.to_line().as_bytes());
        }
        content.push(b'\n');
        let end = end_line(&content);
        content.extend_from_slice(end.as_bytes());
        content
    }

    /// Parses the uncompressed content of a part; `what` names it in errors. The error is [`ChangesError::Unusable`].
    pub fn parse(what: &str, content: &[u8]) -> Result<ReadPart, ChangesError> {
        let part = read_part(what, content).map_err(|why| ChangesError::Unusable {
            what: what.to_owned(),
            why,
        })?;
        Ok(ReadPart {
            part,
            sha256: sha256_hex(content),
        })
    }
}

/// The last line of a part with these lines before it.
fn end_line(before: &[u8]) -> String {
    format!("{{\"sha256\":\"{}\"}}\n", sha256_hex(before))
}

fn read_part(what: &str, content: &[u8]) -> Result<ChangesPart, String> {
    if content.len() > PART_LIMIT {
        return Err(format!("it has more than {PART_LIMIT} bytes"));
    }
    let mut lines = check_end(content)?.split(|byte| *byte == b'\n');
    let header = read_header(what, lines.next().unwrap_or_default())?;
    let mut events = Vec::new();
    for (number, line) in (2_u64..).zip(lines) {
        let event = WatchedEvent::parse_line(line);
        events.push(event.map_err(|why| format!("line {number}: {why}"))?);
    }
    check_events(&header, &events)?;
    Ok(ChangesPart { header, events })
}

/// The lines before the last one, if that one is their hash.
fn check_end(content: &[u8]) -> Result<&[u8], String> {
    let end = content.len().checked_sub(END_BYTES);
    let Some((before, end)) = end.and_then(|end| content.split_at_checked(end)) else {
        return Err("it is too short: it was cut off".to_owned());
    };
    match before.strip_suffix(b"\n") {
        Some(lines) if end == end_line(before).as_bytes() => Ok(lines),
        _ => Err(
            "its last line is not the SHA-256 of those before: it was changed or cut off"
                .to_owned(),
        ),
    }
}

fn read_header(what: &str, line: &[u8]) -> Result<PartHeader, String> {
    if line.len() > HEADER_LIMIT {
        return Err(format!("its header has more than {HEADER_LIMIT} bytes"));
    }
    let header = parse_formatted::<PartHeader>(what, line).map_err(|error| match error {
        Error::Unreadable { source, .. } => {
            format!("its header is damaged, or of another program: {source}")
        }
        Error::Format { found, .. } => {
            format!("it has format {found}, which another release wrote")
        }
    })?;
    check_snapshot_name(&header.snapshot)?;
    if !is_sha256(&header.snapshot_sha256) || !is_sha256(&header.previous) {
        return Err("its header names no SHA-256 of what is before it".to_owned());
    }
    if !(1..=MOST_PARTS).contains(&header.sequence) {
        return Err(format!(
            "its sequence number is {}, and not between 1 and {MOST_PARTS}",
            header.sequence
        ));
    }
    Ok(header)
}

/// Checks that the events are those that the header says. etcd gives each revision to one transaction that changes something, so a
/// revision without an event is one whose events were lost.
fn check_events(header: &PartHeader, events: &[WatchedEvent]) -> Result<(), String> {
    if u64::try_from(events.len()) != Ok(header.events) {
        return Err(format!(
            "it has {} events, and its header says {}",
            events.len(),
            header.events
        ));
    }
    let mut last = header.after;
    for event in events {
        let is_same = event.revision == last && last > header.after;
        if !is_same && Some(event.revision) != last.checked_add(1) {
            return Err(format!(
                "an event of revision {} comes after revision {last}",
                event.revision
            ));
        }
        last = event.revision;
    }
    if last != header.until {
        return Err(format!(
            "its last revision is {last}, and its header says {}",
            header.until
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{event, snapshot, stream};
    use super::super::{CollectedChanges, check_follows};
    use super::*;
    use proptest::prelude::*;

    const AFTER: u64 = 10;

    fn part(events: Vec<WatchedEvent>) -> ChangesPart {
        let until = events.last().map_or(AFTER, |event| event.revision);
        let changes = CollectedChanges {
            after: AFTER,
            until,
            events,
        };
        snapshot("cdf818194e3a8c32", AFTER).next_part("i-1", "2026-11-26T15:04:05Z", changes)
    }

    #[test]
    fn the_content_is_as_documented() {
        let events = vec![event(11, "/a", Some("b")), event(12, "/a", None)];
        let content = part(events).encode();
        let text = String::from_utf8(content.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let sha256 = "5".repeat(64);
        let header = format!(
            r#"{{"format":1,"cluster":"demo.example.com","etcd":"main","clusterId":"cdf818194e3a8c32","snapshot":"2026-11-26T15:00:00Z-000123","snapshotSha256":"{sha256}","sequence":1,"after":10,"until":12,"previous":"{sha256}","instance":"i-1","at":"2026-11-26T15:04:05Z","events":2}}"#
        );
        assert_eq!(lines[0], header);
        assert_eq!(
            lines[2],
            r#"{"rev":12,"key":"L2E=","created":0,"version":0}"#
        );
        let before = &content[..content.len() - END_BYTES];
        assert_eq!(
            lines[3],
            format!(r#"{{"sha256":"{}"}}"#, sha256_hex(before))
        );
        assert_eq!(lines.len(), 4);
    }

    proptest! {
        #[test]
        fn a_part_is_read_as_it_was_written(events in stream(AFTER), later in any::<bool>()) {
            let mut part = part(events);
            if later {
                part.header.unknown.insert("later".into(), 1.into());
            }
            let content = part.encode();
            let read = ChangesPart::parse("part", &content).unwrap();
            prop_assert_eq!(read.part(), &part);
            prop_assert_eq!(read.sha256(), sha256_hex(&content));
            prop_assert!(check_follows(&snapshot("cdf818194e3a8c32", AFTER), &read).is_ok());
        }

        #[test]
        fn one_that_was_cut_off_padded_or_changed_is_refused(
            events in stream(AFTER), place in any::<proptest::sample::Index>(), byte in any::<u8>(), kind in 0..4,
        ) {
            let mut content = part(events).encode();
            let place = place.index(content.len());
            match kind {
                0 => content.truncate(place),
                1 => content.insert(place, byte),
                2 => content.push(byte),
                _ => content[place] ^= byte.max(1),
            }
            let read = ChangesPart::parse("part", &content);
            prop_assert!(matches!(read, Err(ChangesError::Unusable { .. })), "{read:?}");
        }
    }

    #[test]
    fn what_is_known_of_leases_is_in_the_header_and_never_too_much() {
        let leased = |number: u64| WatchedEvent {
            lease: Some(u64::MAX - number),
            ..event(11, &format!("/{number}"), Some("b"))
        };
        let events: Vec<WatchedEvent> = (0..1000).map(leased).collect();
        let all: BTreeMap<u64, u64> = (0..1000)
            .map(|number| (u64::MAX - number, u64::MAX))
            .collect();
        let part = part(events).with_leases(&all);
        let read = ChangesPart::parse("part", &part.encode()).unwrap();
        assert_eq!(read.leases().len(), MOST_LEASES);
        assert!(
            read.leases()
                .iter()
                .all(|(id, seconds)| all[id] == *seconds)
        );
        let few = part.with_leases(&BTreeMap::from([(7, 15), (u64::MAX, 20)]));
        let read = ChangesPart::parse("part", &few.encode()).unwrap();
        assert_eq!(read.leases(), BTreeMap::from([(u64::MAX, 20)]));
    }

    /// Whoever writes it wrongly gets a right hash, and no part that is used.
    #[test]
    fn a_header_that_does_not_fit_its_events_is_refused() {
        let good = part(vec![
            event(11, "/a", Some("b")),
            event(11, "/b", None),
            event(12, "/a", None),
        ]);
        assert!(ChangesPart::parse("part", &good.encode()).is_ok());
        type Damage = fn(&mut ChangesPart);
        let wrong: [(&str, Damage); 12] = [
            ("other format", |part| part.header.format = 3),
            ("too few", |part| part.header.events = 2),
            ("an event is missing at the end", |part| {
                part.events.pop();
                part.header.events = 2;
            }),
            ("an event is missing at the beginning", |part| {
                part.events.drain(..2);
                part.header.events = 1;
            }),
            ("out of order", |part| part.events.swap(0, 2)),
            ("a revision is missing", |part| {
                part.events[2].revision = 13;
                part.header.until = 13;
            }),
            ("before its beginning", |part| part.header.after = 11),
            ("later than its beginning", |part| part.header.after = 9),
            ("until more than it has", |part| part.header.until = 13),
            ("no place", |part| part.header.sequence = 0),
            ("no hash", |part| part.header.previous = "5".repeat(63)),
            ("no name", |part| part.header.snapshot = "../a".into()),
        ];
        for (what, spoil) in wrong {
            let mut part = good.clone();
            spoil(&mut part);
            let read = ChangesPart::parse("part", &part.encode());
            assert!(read.is_err(), "{what}");
        }
        let no_change = ChangesPart {
            events: Vec::new(),
            ..good
        };
        assert!(ChangesPart::parse("part", &no_change.encode()).is_err());
    }
}
