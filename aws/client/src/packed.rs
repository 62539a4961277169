//! Files that are stored compressed: packed and unpacked piece by piece, with their sizes and hashes.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use node::digest::to_hex;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Size and SHA-256 (hex) of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// Passes bytes on, and hashes them.
struct Hashed<T> {
    inner: T,
    hasher: Sha256,
    bytes: u64,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hasher: Sha256::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn finish(self) -> FileDigest {
        FileDigest {
            bytes: self.bytes,
            sha256: to_hex(&self.hasher.finalize()),
        }
    }
}

impl<T: Read> Read for Hashed<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.add(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.add(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Why a file could not be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is not the one that was expected.
    #[error("it is damaged: unpacked, it has {0}")]
    Damaged(String),
    /// It cannot be read or written, or is not compressed.
    #[error("it cannot be packed or unpacked")]
    Io(#[from] io::Error),
}

impl PackError {
    /// True if the packed file itself is the cause: it is another one, or damaged.
    pub fn is_of_content(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            // What the decoder says of a stream that is no gzip, is damaged or ends too early (flate2).
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::UnexpectedEof
            ),
        }
    }
}

/// A new file that nobody else can read.
fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Compresses a file into a new one. Returns what the two are.
pub fn pack_file(from: &Path, to: &Path) -> io::Result<(FileDigest, FileDigest)> {
    let mut plain = Hashed::new(File::open(from)?);
    let mut packed = GzEncoder::new(Hashed::new(create_file(to)?), Compression::fast());
    io::copy(&mut plain, &mut packed)?;
    Ok((plain.finish(), packed.finish()?.finish()))
}

/// Compresses bytes in memory.
pub fn pack_bytes(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(plain)?;
    packed.finish()
}

/// Unpacks bytes in memory. They may have `most` bytes, and little more is ever unpacked.
pub fn unpack_bytes(packed: &[u8], most: u64) -> Result<Vec<u8>, PackError> {
    let mut plain = Vec::new();
    // One byte more shows that there are more.
    let mut unpacked = MultiGzDecoder::new(packed).take(most.saturating_add(1));
    unpacked.read_to_end(&mut plain)?;
    if plain.len() as u64 > most {
        return Err(PackError::Damaged(format!("more than {most} bytes")));
    }
    Ok(plain)
}

/// The most bytes that a packed file of so many may have: bytes that cannot be compressed take 9 bits each at most, with the codes that a fast
/// compression uses (RFC 1951, 3.2.6), and other programs may do a little worse.
pub fn packed_limit(bytes: u64) -> u64 {
    (bytes / 4).saturating_add(bytes).saturating_add(1 << 16)
}

/// Unpacks a file into a new one, and checks that the new one has this size and SHA-256 (hex).
pub fn unpack_file(from: &Path, to: &Path, bytes: u64, sha256: &str) -> Result<(), PackError> {
    // One byte more than it has shows that it is another one.
    let found = unpack_any(from, to, bytes.saturating_add(1))?;
    if found.bytes != bytes {
        let more = if found.bytes > bytes { " or more" } else { "" };
        let damaged = format!("{} bytes{more} instead of {bytes}", found.bytes);
        return Err(PackError::Damaged(damaged));
    }
    if found.sha256 != sha256 {
        let damaged = format!("the SHA-256 {} instead of {sha256}", found.sha256);
        return Err(PackError::Damaged(damaged));
    }
    Ok(())
}

/// Unpacks at most this much of a file into a new one. Returns what the new one is.
pub fn unpack_any(from: &Path, to: &Path, most: u64) -> io::Result<FileDigest> {
    let mut plain = Hashed::new(MultiGzDecoder::new(File::open(from)?).take(most));
    let mut unpacked = create_file(to)?;
    io::copy(&mut plain, &mut unpacked)?;
    Ok(plain.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sha256_hex(bytes: &[u8]) -> String {
        to_hex(&Sha256::digest(bytes))
    }

    #[test]
    fn what_cannot_be_compressed_is_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        for (bytes, least) in [(0, 0), (1, 0), (1000, 144), (3 << 20, 0), (1 << 20, 144)] {
            let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
            let mut noise = vec![0; bytes];
            let mut state = 1_u32;
            for byte in &mut noise {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Those from 144 on have the longest codes.
                *byte = u8::try_from(state >> 24).unwrap().max(least);
            }
            fs::write(&plain, noise).unwrap();
            let (_, made) = pack_file(&plain, &packed).unwrap();
            assert!(
                made.bytes <= packed_limit(bytes as u64),
                "{bytes}: {made:?}"
            );
            fs::remove_file(packed).unwrap();
        }
    }

    #[test]
    fn bytes_are_unpacked_whole_or_not_at_all() {
        let content = vec![7; 100_000];
        let packed = pack_bytes(&content).unwrap();
        assert_eq!(unpack_bytes(&packed, 100_000).unwrap(), content);
        assert_eq!(unpack_bytes(&packed, u64::MAX).unwrap(), content);
        let cut = &packed[..packed.len() - 1];
        for (packed, most) in [
            (&packed[..], 99_999),
            (&packed[..], 0),
            (cut, 100_000),
            (&packed[..0], 9),
        ] {
            let why = unpack_bytes(packed, most).unwrap_err();
            assert!(why.is_of_content(), "{why:?}");
        }
    }

    #[test]
    fn what_was_packed_is_unpacked_and_nothing_else_passes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(path("plain"), &content).unwrap();
        let (plain, packed) = pack_file(&path("plain"), &path("packed")).unwrap();
        assert_eq!(plain.bytes, 400_000);
        assert_eq!(plain.sha256, sha256_hex(&content));
        let stored = fs::read(path("packed")).unwrap();
        assert_eq!(packed.sha256, sha256_hex(&stored));
        assert_eq!(packed.bytes, stored.len() as u64);
        let again = |bytes, sha256: &str| {
            fs::write(path("packed"), &stored).unwrap();
            let _ = fs::remove_file(path("again"));
            unpack_file(&path("packed"), &path("again"), bytes, sha256)
        };
        again(400_000, &plain.sha256).unwrap();
        assert_eq!(fs::read(path("again")).unwrap(), content);
        for (bytes, sha256, says) in [
            (399_999, plain.sha256.as_str(), "400000 bytes or more"),
            (400_001, plain.sha256.as_str(), "400000 bytes instead"),
            (400_000, packed.sha256.as_str(), "SHA-256"),
        ] {
            let why = again(bytes, sha256).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }
}
