//! How YAML is written and read: the one writer and the one reader of the product.

mod read;
mod text_style;
mod write;

pub use read::{MAX_BYTES, MAX_DEPTH, aliases, limits, read_as};
pub use write::{Error, to_yaml, to_yaml_documents};
