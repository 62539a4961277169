//! Terminal output. Only this module prints: results to stdout, everything else to stderr. Plain functions turn values into
//! text, so that they can be tested.

pub mod cis;
pub mod diff;
pub mod error;
pub mod etcd;
pub mod etcd_copies;
pub mod etcd_members;
pub mod events;
pub mod hashes;
pub mod health;
pub mod health_progress;
pub mod instances;
pub mod lock;
pub mod member_change;
pub mod operations;
pub mod paint;
pub mod plan;
pub mod plan_drift;
pub mod plan_json;
pub mod preflight;
pub mod progress;
pub mod report;
pub mod rolling_progress;
pub mod rolling_update;
pub mod shell;
pub mod table;

pub use paint::{Paint, Tone};
pub use shell::Shell;
