//! Not yet filled.

pub mod api;
pub mod read;
pub mod validate;
