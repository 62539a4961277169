//! sha256 of what passes by.

use aws_lc_rs::digest::{Context, SHA256};
use std::io::{self, Read};
use std::path::Path;

/// A sha256 in the making.
#[derive(Clone)]
pub struct Sha256(Context);

impl Default for Sha256 {
    /// Of nothing yet.
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Sha256 {
    /// Of these bytes too.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// What it is now, in hex; more may follow.
    pub fn hex(&self) -> String {
        hex(self.0.clone().finish().as_ref())
    }

    /// Of all that can be read too; how much that was.
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

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// sha256 of a file, in hex. Blocks.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::default();
    digest.update_from(&mut std::fs::File::open(path)?)?;
    Ok(digest.hex())
}

/// Whether that is a sha256 in hex, and so can be the name of a file.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
