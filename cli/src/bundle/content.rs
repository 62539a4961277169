//! The content of a file in an archive, as pieces: so archives of gigabytes are put together without copies.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Bytes, or a whole file.
#[derive(Clone, Debug)]
pub enum Piece {
    Bytes(Vec<u8>),
    File {
        path: PathBuf,
        /// Bytes of the file.
        size: u64,
    },
}

/// Pieces, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Content(pub Vec<Piece>);

impl Piece {
    /// A file as it is now.
    pub fn of_file(path: PathBuf) -> io::Result<Self> {
        let size = path.metadata()?.len();
        Ok(Self::File { path, size })
    }

    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::File { path, size } => {
                let mut file = File::open(path)?.take(*size);
                if io::copy(&mut file, out)? == *size {
                    return Ok(());
                }
                let message = format!("{} has become shorter", path.display());
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
            }
        }
    }
}

impl Content {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.0.iter().map(Piece::size).sum()
    }

    /// Writes all of it.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.0.iter().try_for_each(|piece| piece.write_to(out))
    }

    /// Its sha256, hex.
    pub fn sha256(&self) -> io::Result<String> {
        let mut digest = Sha256::new();
        self.write_to(&mut digest)?;
        Ok(format!("{:x}", digest.finalize()))
    }
}
