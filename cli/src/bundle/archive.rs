//! Tar archives of plain files, whose bytes follow from names and contents alone.

use super::content::{Content, Piece};
use std::io;
use tar::{EntryType, Header};

/// Headers and contents begin at multiples of it.
pub(super) const BLOCK: usize = 512;

/// What stands behind the last file.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The header of a file. Nothing in it depends on who writes it, or when.
pub(super) fn header(path: &str, size: u64) -> io::Result<[u8; BLOCK]> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// How many zeros fill the last block of a content.
pub(super) fn padding(size: u64) -> usize {
    // Less than a block.
    let behind = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    (BLOCK - behind) % BLOCK
}

/// An archive of these files, in this order.
pub(super) fn pack(files: impl IntoIterator<Item = (String, Content)>) -> io::Result<Content> {
    let mut pieces = Vec::new();
    for (path, content) in files {
        let size = content.size();
        pieces.push(Piece::Bytes(header(&path, size)?.to_vec()));
        pieces.extend(content.0);
        pieces.push(Piece::Bytes(vec![0; padding(size)]));
    }
    pieces.push(Piece::Bytes(END.to_vec()));
    Ok(Content(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_written_other_programs_read() {
        let long = format!("assets/{}/amd64/ecr-credential-provider", "a".repeat(64));
        let files = [
            ("empty".to_owned(), Vec::new()),
            (long, vec![7; 513]),
            ("block".to_owned(), vec![1; 512]),
        ];
        let contents = files
            .clone()
            .map(|(path, bytes)| (path, Content(vec![Piece::Bytes(bytes)])));
        let whole = pack(contents).unwrap();
        let mut bytes = Vec::new();
        whole.write_to(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, whole.size());
        let mut read = tar::Archive::new(bytes.as_slice());
        let read = read.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        });
        assert_eq!(read.collect::<Vec<_>>(), files);
    }
}
