//! Not yet filled.

pub mod api;
