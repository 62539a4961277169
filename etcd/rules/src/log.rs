//! Reads the identity of the member in a file of etcd's write-ahead log. Every file begins with two records: the checksum so far,
//! and the ids of member and cluster (etcd: `server/storage/wal/wal.go`, `Create` and `cut`).

/// Bytes at the start of a file that contain its identity.
pub const LOG_HEAD: u64 = 4096;

/// Record types (`wal.go`).
pub(super) const METADATA: u64 = 1;
pub(super) const ENTRY: u64 = 2;
pub(super) const STATE: u64 = 3;
pub(super) const CHECKSUM: u64 = 4;
pub(super) const SNAPSHOT: u64 = 5;

/// The member that wrote a log. Ids are hex, as etcd prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    /// etcd's id of the cluster.
    pub cluster_id: String,
    /// etcd's id of the member.
    pub member_id: String,
}

/// A file is not a valid log file of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is not a valid etcd log: {0}")]
pub struct NotALog(pub(super) &'static str);

/// Parses the identity from the first [`LOG_HEAD`] bytes of a log file.
pub fn log_identity(head: &[u8]) -> Result<LogIdentity, NotALog> {
    let (checksum, rest) = split_record(head)?;
    if number_field(checksum, 1)? != Some(CHECKSUM) {
        return Err(NotALog("the first record is not a checksum"));
    }
    let (metadata, _) = split_record(rest)?;
    if number_field(metadata, 1)? != Some(METADATA) {
        return Err(NotALog("the second record is not metadata"));
    }
    let data = bytes_field(metadata, 3)?.ok_or(NotALog("the second record is empty"))?;
    let id = |field| {
        let id = number_field(data, field)?.filter(|id| *id != 0);
        let id = id.ok_or(NotALog("the second record has no id"))?;
        Ok(format!("{id:x}"))
    };
    Ok(LogIdentity {
        member_id: id(1)?,
        cluster_id: id(2)?,
    })
}

/// Length of a record and of the padding behind it, by the frame of eight bytes before it: the length in the lower 56 bits and, if the
/// highest bit is set, the length of the padding to a multiple of eight in the three lowest bits of the highest byte (`decoder.go`,
/// `decodeFrameSize`).
pub(super) fn read_frame(frame: [u8; 8]) -> (u64, u64) {
    let frame = u64::from_le_bytes(frame);
    let filled = if frame >> 63 == 1 {
        (frame >> 56) & 7
    } else {
        0
    };
    (frame & ((1 << 56) - 1), filled)
}

/// Splits off the first record.
pub(super) fn split_record(bytes: &[u8]) -> Result<(&[u8], &[u8]), NotALog> {
    const SHORT: NotALog = NotALog("the file ends too early");
    let (frame, rest) = bytes.split_first_chunk::<8>().ok_or(SHORT)?;
    let (length, filled) = read_frame(*frame);
    let length = usize::try_from(length).map_err(|_| SHORT)?;
    let filled = usize::try_from(filled).map_err(|_| SHORT)?;
    if length == 0 {
        return Err(NotALog("a record is missing"));
    }
    let (record, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
    Ok((record, rest.get(filled..).ok_or(SHORT)?))
}

/// A field of a protobuf message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

pub(super) fn number_field(message: &[u8], field: u64) -> Result<Option<u64>, NotALog> {
    Ok(match find_field(message, field)? {
        Some(Field::Number(number)) => Some(number),
        _ => None,
    })
}

pub(super) fn bytes_field(message: &[u8], field: u64) -> Result<Option<&[u8]>, NotALog> {
    Ok(match find_field(message, field)? {
        Some(Field::Bytes(bytes)) => Some(bytes),
        _ => None,
    })
}

/// Finds a field of a message that contains only numbers and bytes, as etcd's records do.
fn find_field(mut message: &[u8], wanted: u64) -> Result<Option<Field<'_>>, NotALog> {
    const WRONG: NotALog = NotALog("a record is not protobuf");
    while !message.is_empty() {
        let key = take_varint(&mut message).ok_or(WRONG)?;
        let value = take_varint(&mut message).ok_or(WRONG)?;
        let field = match key & 7 {
            0 => Field::Number(value),
            2 => {
                let length = usize::try_from(value).map_err(|_| WRONG)?;
                let (bytes, rest) = message.split_at_checked(length).ok_or(WRONG)?;
                message = rest;
                Field::Bytes(bytes)
            }
            _ => return Err(WRONG),
        };
        if key >> 3 == wanted {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start of a log of etcd 3.6: member 8e9e05c52164694d of cluster cdf818194e3a8c32, a lone `default` on localhost.
    const WRITTEN: [u8; 56] = [
        0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0x08, 0x04, 0x10, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x01, 0x10, 0xbb, 0x81, 0xc7,
        0xfc, 0x05, 0x1a, 0x16, 0x08, 0xcd, 0xd2, 0x91, 0x8b, 0xd2, 0xb8, 0x81, 0xcf, 0x8e, 0x01,
        0x10, 0xb2, 0x98, 0xea, 0xf1, 0x94, 0x83, 0x86, 0xfc, 0xcd, 0x01,
    ];

    #[test]
    fn the_beginning_of_a_log_says_whose_it_is() {
        let identity = log_identity(&WRITTEN).unwrap();
        assert_eq!(identity.member_id, "8e9e05c52164694d");
        assert_eq!(identity.cluster_id, "cdf818194e3a8c32");
    }

    #[test]
    fn what_is_cut_off_or_zero_or_something_else_is_no_log() {
        for end in 0..WRITTEN.len() {
            assert!(log_identity(&WRITTEN[..end]).is_err(), "{end}");
        }
        let filled = [&WRITTEN[..], &[0; 4040]].concat();
        assert!(
            log_identity(&filled).is_ok(),
            "space that is kept for records"
        );
        assert!(log_identity(&[0; 4096]).is_err());
        assert!(log_identity(&[0xff; 4096]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_lies_there_is_read_to_its_end(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            at in 0_usize..56,
        ) {
            drop(log_identity(&bytes));
            let mut changed = WRITTEN.to_vec();
            for (index, byte) in bytes.iter().enumerate() {
                if let Some(place) = changed.get_mut(at + index) {
                    *place = *byte;
                }
            }
            drop(log_identity(&changed));
        }
    }
}
