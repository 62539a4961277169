//! The lab: what the AWS simulator launches boots for real, on one Linux machine. See docs/lab.md.

#![allow(
    missing_docs,
    reason = "most public items are AWS words; what is not says so"
)]

pub mod content;
pub mod ledger;
pub mod place;
pub mod world;
