//! Reads how far a file of etcd's write-ahead log reaches, with the checks that etcd makes (etcd: `server/storage/wal/decoder.go`).

use super::log::{
    CHECKSUM, ENTRY, METADATA, SNAPSHOT, STATE, bytes_field, number_field, read_frame,
};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// No record is longer: etcd begins another file after 64 MB, and a write has at most a few.
const LONGEST_RECORD: u64 = 128 << 20;

/// How far a member's log reaches. The log of a member that lost nothing never goes back behind a position: raft raises the term, and
/// overwrites no committed entry. Entries that are not committed may be overwritten by a new leader's, so they do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogPosition {
    /// Raft term.
    pub term: u64,
    /// Index of the newest entry that the log says is committed.
    pub index: u64,
}

impl LogPosition {
    /// True if the log was cut off since it reached the other position.
    pub fn is_behind(self, other: Self) -> bool {
        self.term < other.term || self.index < other.index
    }
}

/// Reads the newest file of a log to its last valid record; what follows was never written completely. Every file begins with term
/// and commit index of the file before it (`wal.go`, `cut`), so the newest one tells of all, also if it has no entry yet. Holds one
/// record at a time.
pub fn read_log_position(mut file: impl Read) -> io::Result<LogPosition> {
    let mut position = LogPosition::default();
    let mut checksum = Checksum::new();
    let mut record = Vec::new();
    while read_record(&mut file, &mut record)? {
        if apply_record(&record, &mut checksum, &mut position).is_none() {
            break;
        }
    }
    Ok(position)
}

/// Reads the next record without its padding. False if the file ends, also in the middle of a record, or if only zeros follow: etcd
/// preallocates files.
pub(super) fn read_record(file: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut frame = Vec::new();
    file.take(8).read_to_end(&mut frame)?;
    let Some(frame) = frame.first_chunk::<8>() else {
        return Ok(false);
    };
    let (length, filled) = read_frame(*frame);
    if length == 0 || length > LONGEST_RECORD {
        return Ok(false);
    }
    record.clear();
    let read = file.take(length + filled).read_to_end(record)?;
    let Ok(length) = usize::try_from(length) else {
        return Ok(false);
    };
    record.truncate(length);
    Ok(read as u64 == length as u64 + filled)
}

/// Type and data of one record (`walpb.Record`). `None` if it is not valid.
pub(super) fn check_record<'a>(
    record: &'a [u8],
    checksum: &mut Checksum,
) -> Option<(u64, &'a [u8])> {
    let kind = number_field(record, 1).ok()??;
    let said = number_field(record, 2).ok()?.unwrap_or(0);
    let data = bytes_field(record, 3).ok()?.unwrap_or_default();
    if kind == CHECKSUM {
        // The sum of the file before; there is nothing to compare it with at the beginning of the first file that is read.
        let said = u32::try_from(said).ok()?;
        let fits = checksum.sum == 0 || checksum.sum == said;
        checksum.sum = said;
        return fits.then_some((kind, data));
    }
    checksum.extend(data);
    if u64::from(checksum.sum) != said {
        return None;
    }
    [METADATA, ENTRY, STATE, SNAPSHOT]
        .contains(&kind)
        .then_some((kind, data))
}

/// Takes one record into account. `None` if it is not valid.
fn apply_record(record: &[u8], checksum: &mut Checksum, position: &mut LogPosition) -> Option<()> {
    // `raftpb.HardState`: term, vote, commit.
    if let (STATE, data) = check_record(record, checksum)? {
        let field = |field| Some(number_field(data, field).ok()?.unwrap_or(0));
        *position = LogPosition {
            term: field(1)?,
            index: field(3)?,
        };
    }
    Some(())
}

/// CRC-32C (Castagnoli) of all data so far.
pub(super) struct Checksum {
    pub(super) sum: u32,
    /// What each byte adds.
    table: [u32; 256],
}

impl Checksum {
    pub(super) fn new() -> Self {
        const POLYNOMIAL: u32 = 0x82f6_3b78;
        let shift = |row: u32| (row >> 1) ^ if row & 1 == 1 { POLYNOMIAL } else { 0 };
        let row = |byte| (0..8).fold(byte, |row, _| shift(row));
        let mut rows = (0..256).map(row);
        Self {
            sum: 0,
            table: std::array::from_fn(|_| rows.next().unwrap_or_default()),
        }
    }

    pub(super) fn extend(&mut self, data: &[u8]) {
        let step = |sum: u32, byte: &u8| {
            let [low, ..] = (sum ^ u32::from(*byte)).to_le_bytes();
            let row = self.table.get(usize::from(low)).copied();
            row.unwrap_or_default() ^ (sum >> 8)
        };
        self.sum = !data.iter().fold(!self.sum, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The used part of a log of etcd 3.6.12 and 64 of the zeros behind it: six puts, with a kill after the third. Entry 11 is on the
    /// disk, and that it is committed is not.
    const WRITTEN: &[u8] = include_bytes!("log_position_test.wal");

    /// Where each of its records ends, with the position there.
    const RECORDS: [(usize, u64, u64); 21] = [
        (16, 0, 0),
        (56, 0, 0),
        (80, 0, 0),
        (200, 0, 0),
        (224, 1, 1),
        (264, 2, 1),
        (288, 2, 1),
        (376, 2, 1),
        (416, 2, 2),
        (472, 2, 2),
        (512, 2, 3),
        (552, 2, 4),
        (608, 2, 4),
        (648, 2, 5),
        (704, 2, 5),
        (744, 2, 6),
        (800, 2, 6),
        (840, 3, 6),
        (864, 3, 6),
        (952, 3, 6),
        (992, 3, 8),
    ];

    fn position_of(bytes: &[u8]) -> (u64, u64) {
        let LogPosition { term, index } = read_log_position(bytes).unwrap();
        (term, index)
    }

    #[test]
    fn a_log_of_etcd_is_read_to_its_last_record() {
        assert_eq!(position_of(WRITTEN), (3, 10));
    }

    /// Wherever a log is cut off, and whatever follows: what is complete before counts, as for etcd.
    #[test]
    fn what_is_cut_off_counts_to_its_last_whole_record() {
        for pair in RECORDS.windows(2) {
            let [(begin, term, index), (end, ..)] = *pair else {
                panic!("{pair:?}");
            };
            for cut in begin..end {
                let kept = &WRITTEN[..cut];
                assert_eq!(position_of(kept), (term, index), "{cut}");
                // The last bytes are padding, which zeros would complete.
                for behind in [&[0; 600], &[0xff; 600]] {
                    let torn = [&kept[..kept.len().min(end - 8)], behind].concat();
                    assert_eq!(position_of(&torn), (term, index), "{cut}");
                }
            }
        }
    }

    /// Every file continues the checksum of the one before it, and repeats the state.
    #[test]
    fn a_file_that_has_just_begun_reaches_as_far_as_the_one_before() {
        let (records, state) = (&WRITTEN[16..56], &WRITTEN[992..1032]);
        let mut checksum = Checksum::new();
        checksum.sum = 0x1234_5678;
        let mut file = frame(&[&[0x08, 4, 0x10][..], &varint(checksum.sum.into())].concat());
        for record in [records, state] {
            let length = usize::from(record[0]);
            let data = bytes_field(&record[8..8 + length], 3).unwrap().unwrap();
            checksum.extend(data);
            let sum = varint(checksum.sum.into());
            let head = [&[0x08, record[9], 0x10][..], &sum, &[0x1a]].concat();
            let size = u8::try_from(data.len()).unwrap();
            file.extend(frame(&[&head[..], &[size], data].concat()));
        }
        assert_eq!(position_of(&file), (3, 9));
    }

    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
        bytes
    }

    fn frame(record: &[u8]) -> Vec<u8> {
        let filled = record.len().next_multiple_of(8) - record.len();
        let high = if filled > 0 { 0x80 | filled as u64 } else { 0 };
        let length = (record.len() as u64 | (high << 56)).to_le_bytes();
        [&length[..], record, &vec![0; filled]].concat()
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        // The check value of the usual catalogues.
        let mut checksum = Checksum::new();
        checksum.extend(b"1234");
        checksum.extend(b"56789");
        assert_eq!(checksum.sum, 0xe306_9283);
    }

    #[test]
    fn behind_is_what_has_an_older_term_or_less_entries() {
        let at = |term, index| LogPosition { term, index };
        assert!(!at(3, 10).is_behind(at(3, 10)));
        assert!(!at(4, 10).is_behind(at(3, 10)));
        assert!(at(3, 9).is_behind(at(3, 10)));
        assert!(at(2, 20).is_behind(at(3, 10)));
        assert!(at(4, 9).is_behind(at(3, 10)));
    }

    proptest::proptest! {
        /// One changed byte is noticed wherever it is checked; nothing beyond it counts. Whatever the bytes are, nothing panics.
        #[test]
        fn a_damaged_record_and_what_follows_it_do_not_count(
            at in 0_usize..1184,
            by in 1_u8..=255,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        ) {
            let mut changed = WRITTEN.to_vec();
            changed[at] ^= by;
            let found = position_of(&changed);
            proptest::prop_assert!(found <= (3, 10), "{found:?}");
            read_log_position(&bytes[..]).unwrap();
            changed.splice(at..at, bytes);
            read_log_position(&changed[..]).unwrap();
        }
    }
}
