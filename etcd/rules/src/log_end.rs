//! Where etcd's write-ahead log ends, whether or not its last entries are committed. A recovery compares the ends of all logs, as raft
//! does in elections, and lets the new cluster begin with the whole log: an acknowledged write is on the disks of a majority, but no
//! disk need say yet that it is committed (`raft.MustSync` ignores the commit index; etcd issue 14143).

use super::log::{ENTRY, SNAPSHOT, STATE, number_field};
use super::log_position::{Checksum, check_record, read_record};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// Size of the parts that disks write as a whole (`decoder.go`, `minSectorSize`).
const SECTOR: usize = 512;

/// The last entry of a log. Of two logs of a cluster, the greater one has every acknowledged write that the other has (raft's
/// election restriction).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase", default)]
pub struct LastEntry {
    /// Raft term in which the entry was made. It counts first.
    pub term: u64,
    pub index: u64,
}

/// `raftpb.HardState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HardState {
    term: u64,
    vote: u64,
    commit: u64,
}

/// Where a file of a log ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Its last entry, or the snapshot behind it; `None` if the file has neither yet.
    pub last_entry: Option<LastEntry>,
    /// True if the file has an entry. Without one, the last entry may be in the file before: a snapshot of the member itself is older than
    /// the entries that it has (`storage.go`, `SaveSnap`).
    pub has_entry: bool,
    /// Where its last whole record ends, in bytes.
    pub offset: u64,
    state: HardState,
    checksum: u32,
    is_damaged: bool,
}

/// Reads where a file of a log ends. Holds one record at a time.
pub fn read_log_end(mut file: impl Read) -> io::Result<LogEnd> {
    let mut end = LogEnd::default();
    let mut checksum = Checksum::new();
    let mut record = Vec::new();
    while read_record(&mut file, &mut record)? {
        let sum = checksum.sum;
        let Some((kind, data)) = check_record(&record, &mut checksum) else {
            // etcd drops a record of which a part was not written, and starts with no other damage.
            end.is_damaged = !is_torn(&record, end.offset);
            checksum.sum = sum;
            break;
        };
        let padded = record.len().next_multiple_of(8);
        end.offset += 8 + padded as u64;
        end.take_record(kind, data);
    }
    end.checksum = checksum.sum;
    Ok(end)
}

/// The last entry of a log by the ends of its newest files: all from the newest one that has an entry on.
pub fn last_entry_of(ends: &[LogEnd]) -> Option<LastEntry> {
    ends.iter().filter_map(|end| end.last_entry).max()
}

/// True if a part of the record that disks write as a whole is zero (`decoder.go`, `isTornEntry`).
fn is_torn(record: &[u8], offset: u64) -> bool {
    let begins = usize::try_from((offset + 8) % SECTOR as u64).unwrap_or(0);
    let first = (SECTOR - begins).min(record.len());
    let (first, rest) = record.split_at(first);
    let mut parts = std::iter::once(first).chain(rest.chunks(SECTOR));
    parts.any(|part| part.iter().all(|byte| *byte == 0))
}

impl LogEnd {
    fn take_record(&mut self, kind: u64, data: &[u8]) {
        let field = |field| number_field(data, field).ok().flatten().unwrap_or(0);
        match kind {
            // `raftpb.Entry`: term is field 2, index field 3. One with a lower index replaces all from there on (`wal.go`, `ReadAll`).
            ENTRY => {
                self.has_entry = true;
                self.last_entry = Some(LastEntry {
                    term: field(2),
                    index: field(3),
                });
            }
            // `walpb.Snapshot`: index is field 1, term field 2. One that came from the leader is ahead of the entries.
            SNAPSHOT => {
                let snapshot = LastEntry {
                    term: field(2),
                    index: field(1),
                };
                let known = self.last_entry.unwrap_or_default();
                if snapshot.index > known.index || self.last_entry.is_none() {
                    self.last_entry = Some(snapshot);
                }
            }
            STATE => {
                self.state = HardState {
                    term: field(1),
                    vote: field(2),
                    commit: field(3),
                };
            }
            _ => {}
        }
    }

    /// The record which says that all entries up to the last one of the whole log are committed. It belongs at [`Self::offset`] of the
    /// newest file, as its end. The error says why the file must not be changed.
    pub fn commit_record(&self, last: LastEntry) -> Result<Vec<u8>, String> {
        if self.is_damaged {
            return Err(format!(
                "the log is damaged behind byte {}: its checksum differs",
                self.offset
            ));
        }
        if self.offset == 0 {
            return Err("the log has no valid record".to_owned());
        }
        let is_newer = last.term > self.state.term;
        let state = HardState {
            term: self.state.term.max(last.term),
            vote: if is_newer { 0 } else { self.state.vote },
            commit: self.state.commit.max(last.index),
        };
        let mut data = Vec::new();
        for (field, number) in [(1, state.term), (2, state.vote), (3, state.commit)] {
            data.push(field << 3);
            put_varint(&mut data, number);
        }
        let mut checksum = Checksum::new();
        checksum.sum = self.checksum;
        checksum.extend(&data);
        Ok(frame_data(STATE, checksum.sum, &data))
    }
}

/// A whole `walpb.Record`: type, checksum, data.
fn frame_data(kind: u64, checksum: u32, data: &[u8]) -> Vec<u8> {
    let mut record = vec![1 << 3];
    put_varint(&mut record, kind);
    record.push(2 << 3);
    put_varint(&mut record, u64::from(checksum));
    record.push((3 << 3) | 2);
    put_varint(&mut record, data.len() as u64);
    record.extend(data);
    frame_record(&record)
}

/// The record with its length before and its padding behind (`encoder.go`, `encodeFrameSize`).
fn frame_record(record: &[u8]) -> Vec<u8> {
    let length = record.len() as u64;
    let filled = length.next_multiple_of(8) - length;
    let high = if filled > 0 { 0x80 | filled } else { 0 };
    let mut framed = (length | (high << 56)).to_le_bytes().to_vec();
    framed.extend(record);
    framed.resize(framed.len().next_multiple_of(8), 0);
    framed
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        let [low, ..] = number.to_le_bytes();
        bytes.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    bytes.push(low);
}

#[cfg(test)]
mod tests {
    use super::super::log_position::read_log_position;
    use super::*;

    /// A log of etcd 3.6.12 whose last entries were killed before the log said that they are committed.
    const WRITTEN: &[u8] = include_bytes!("log_position_test.wal");

    fn end_of(bytes: &[u8]) -> LogEnd {
        read_log_end(bytes).unwrap()
    }

    /// A file of a log with these records: entries and snapshots of term 2.
    fn file_of(records: &[(u64, u64)]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut checksum = Checksum::new();
        for (kind, index) in records {
            // Of an entry, term is field 2 and index field 3; of a snapshot, index is field 1 and term field 2.
            let (first, second) = match *kind {
                ENTRY => ((2, 2), (3, *index)),
                _ => ((1, *index), (2, 2)),
            };
            let mut data = Vec::new();
            for (field, number) in [first, second] {
                data.push(field << 3);
                put_varint(&mut data, number);
            }
            checksum.extend(&data);
            file.extend(frame_data(*kind, checksum.sum, &data));
        }
        file
    }

    /// etcd writes a snapshot of its own, which is older than its entries, at any time: also as the first record of a new file.
    #[test]
    fn the_last_entry_is_found_whatever_files_the_records_are_in() {
        let local = [(ENTRY, 999), (ENTRY, 1000), (SNAPSHOT, 900)];
        let from_leader = [(ENTRY, 999), (ENTRY, 1000), (SNAPSHOT, 2000)];
        let goes_on = [(ENTRY, 1000), (SNAPSHOT, 900), (ENTRY, 1001)];
        for (records, last) in [(local, 1000), (from_leader, 2000), (goes_on, 1001)] {
            for cuts in 0..1_usize << (records.len() - 1) {
                let mut files = vec![Vec::new()];
                for (at, record) in records.into_iter().enumerate() {
                    files.last_mut().unwrap().push(record);
                    if cuts & (1 << at) != 0 {
                        files.push(Vec::new());
                    }
                }
                let mut ends = Vec::new();
                for file in files.iter().rev() {
                    let end = end_of(&file_of(file));
                    let has_entry = end.has_entry;
                    ends.push(end);
                    if has_entry {
                        break;
                    }
                }
                let found = last_entry_of(&ends).unwrap();
                assert_eq!((found.term, found.index), (2, last), "{files:?}");
            }
        }
    }

    #[test]
    fn of_two_logs_the_later_term_has_more_and_then_the_longer() {
        let at = |term, index| LastEntry { term, index };
        assert!(at(3, 90) > at(2, 100));
        assert!(at(3, 91) > at(3, 90));
    }

    /// With this record, etcd 3.6.12 with `--force-new-cluster` has entry 11. Without it, it says "discarding uncommitted WAL entries".
    #[test]
    fn the_record_is_one_that_etcd_reads() {
        let end = end_of(WRITTEN);
        let record = end.commit_record(end.last_entry.unwrap()).unwrap();
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        let read =
            "1900000000000087080310c4ae92cd081a0f080310ceb7c3caf3a7c4ba9b01180b00000000000000";
        assert_eq!((end.offset, hex.as_str()), (1184, read));
    }

    /// Wherever the log is cut off: afterwards its last entry is committed, and the next record follows.
    #[test]
    fn the_whole_log_is_committed_wherever_it_ends() {
        let mut raised = 0;
        for cut in 56..WRITTEN.len() {
            for behind in [0, 600] {
                let torn = [&WRITTEN[..cut], &vec![0; behind]].concat();
                let end = end_of(&torn);
                if end.is_damaged {
                    // Zeros complete the padding or a record whose data ends in zeros only in part.
                    assert!(end.commit_record(LastEntry::default()).is_err());
                    continue;
                }
                let last = end.last_entry.unwrap_or_default();
                let kept = &torn[..usize::try_from(end.offset).unwrap()];
                let before = read_log_position(kept).unwrap();
                let done = [kept, &end.commit_record(last).unwrap()].concat();
                let after = read_log_position(&done[..]).unwrap();
                assert_eq!(after.index, last.index.max(before.index), "{cut}");
                assert_eq!(after.term, last.term.max(before.term), "{cut}");
                assert_eq!(end_of(&done).last_entry, end.last_entry, "{cut}");
                raised += usize::from(after.index > before.index);
                // It can be done twice.
                let again = end_of(&done).commit_record(last).unwrap();
                let again = [&done[..], &again].concat();
                assert_eq!(read_log_position(&again[..]).unwrap(), after, "{cut}");
            }
        }
        assert!(raised > 50, "{raised}");
    }

    #[test]
    fn a_damaged_log_is_not_changed() {
        let end = end_of(WRITTEN);
        let mut refused = 0;
        for at in 64..usize::try_from(end.offset).unwrap() {
            let mut damaged = WRITTEN.to_vec();
            damaged[at] ^= 0x55;
            let end = end_of(&damaged);
            refused += usize::from(end.commit_record(LastEntry::default()).is_err());
        }
        // A wrong length looks like a file that ends too early, for etcd too, and nobody checks the padding.
        assert!(refused > 600, "{refused}");
    }
}
