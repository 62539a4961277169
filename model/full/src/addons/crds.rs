//! CustomResourceDefinitions that are too large to be embedded as they are: `build.rs` compresses them.

use super::Error;
use super::manifest::AddonName;
use flate2::read::GzDecoder;
use std::io::Read;

/// Content of the file that `build.rs` makes of an addon's `crds.yaml`.
macro_rules! compressed_crds {
    ($addon:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $addon, ".yaml.gz"))
    };
}

pub(super) use compressed_crds;

/// The YAML documents.
pub(super) fn decompress(named: AddonName, compressed: &[u8]) -> Result<String, Error> {
    let mut text = String::new();
    let read = GzDecoder::new(compressed).read_to_string(&mut text);
    read.map(|_| text).map_err(|source| Error::Definitions {
        addon: named.name,
        source,
    })
}
