//! The terminal. Nothing outside this module prints: results go to stdout, everything else to stderr.
//! What is printed is made by plain functions from values to text, so that it can be tested.

pub mod diff;
pub mod error;
pub mod events;
pub mod hashes;
pub mod health;
pub mod instances;
pub mod lock;
pub mod operations;
pub mod paint;
pub mod plan;
pub mod plan_json;
pub mod progress;
pub mod shell;
pub mod stale;
pub mod table;
pub mod waiting;

pub use paint::{Paint, Tone};
pub use shell::Shell;
