//! What must hold whatever others wrote. Each function takes any bytes and panics where a law is broken; libFuzzer calls
//! them for hours (`make soak`), `model/spec/tests/all/fuzz.rs` some thousand times in every `make test`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a broken law ends the run"
)]

mod change;
mod cidr;
mod expand;
mod messages;
mod node_config;
mod plan;
mod problems;
mod read;
mod same;
mod samples;
pub mod seeds;

/// The law of one target: panics if it is broken.
pub type Law = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Law); 6] = [
    ("read", read),
    ("expand", expand),
    ("node_config", node_config),
    ("plan", plan),
    ("cidr", cidr),
    ("messages", messages),
];

/// Spec files: read, or refused with findings that are fit to be shown; what was read is the same after it was written.
pub fn read(data: &[u8]) {
    read::law(data);
}

/// Specs, valid ones with some fields set to anything: everything that follows from them does, or findings say why not.
pub fn expand(data: &[u8]) {
    expand::law(data);
}

/// A machine's configuration, and what nodeup makes of it.
pub fn node_config(data: &[u8]) {
    node_config::law(data);
}

/// Saved plans.
pub fn plan(data: &[u8]) {
    plan::law(data);
}

/// Address ranges shared out.
pub fn cidr(data: &[u8]) {
    cidr::law(data);
}

/// What machines send to protokube, and what lies in the state store and on volumes.
pub fn messages(data: &[u8]) {
    messages::law(data);
}
