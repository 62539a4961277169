//! The entry points as somebody meets them on the first day: what pages tell them to type, what targets of the Makefile need of
//! the machine, what CI runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected fails"
)]

mod catalog;
mod ci;
mod page;
mod pages;
mod release;
mod requirements;
#[path = "../wire/simulator.rs"]
#[expect(dead_code, reason = "the wire tests use more of it")]
mod simulator;

use std::path::{Path, PathBuf};

fn checkout_folder() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this");
    let checkout = Path::new(&package).parent();
    checkout.expect("the checkout").to_owned()
}
