//! The YAML writer and reader of kctl.

mod read;
mod text_style;
mod write;

pub use read::{MAX_BYTES, MAX_DEPTH, alias_limits, read_as, read_limits};
pub use write::{Error, to_yaml, to_yaml_documents};
