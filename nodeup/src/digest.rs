//! Computes sha256 of streams and files.

use aws_lc_rs::digest::{Context, SHA256};
use node::digest::to_hex;
use std::io::{self, Read};
use std::path::Path;

/// An incremental sha256.
#[derive(Clone)]
pub struct Sha256(Context);

impl Default for Sha256 {
    /// The digest of no bytes.
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Sha256 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far, hex. More may be added afterwards.
    pub fn hex(&self) -> String {
        to_hex(self.0.clone().finish().as_ref())
    }

    /// Adds everything that can be read. Returns the number of bytes.
    pub fn update_from(&mut self, from: &mut impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; 1 << 17];
        let mut total = 0;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => return Ok(total),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.update(buffer.get(..read).unwrap_or_default());
            total += read as u64;
        }
    }
}

/// sha256 of a file, hex. Blocks.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::default();
    digest.update_from(&mut std::fs::File::open(path)?)?;
    Ok(digest.hex())
}
