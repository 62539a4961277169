//! Bundle files: tar archives with everything that the instances of one spec download, the same bytes each time. Files lie in them under their
//! keys in the cluster's folder of the state store; the index and its sha256 come first, so that every other byte follows from what was read
//! before it.

mod archive;
mod content;
mod file;
mod image;
mod stored;

pub use content::{Content, Piece};
pub use file::{BundleFile, INDEX, NotWritten, write_bundle};
pub use image::pull_archive;
pub use stored::read_stored_bundle;
