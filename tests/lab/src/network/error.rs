//! What can go wrong with the lab's network: where, why, and what to do about it.

use std::io;

/// An error of the network part; says the place, the cause and the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error(
        "`{command}` in network namespace {netns} failed: {problem}; the lab needs root, iproute2 and nftables"
    )]
    Command {
        command: String,
        netns: String,
        problem: String,
    },
    #[error("`{command}` in network namespace {netns} answered what is not understood: {problem}")]
    Answer {
        command: String,
        netns: String,
        problem: String,
    },
    #[error("{owner}: {value:?} is not a range of addresses; the simulator's world is at fault")]
    Range { owner: String, value: String },
    #[error(
        "{owner} names {missing}, which the world does not hold; the simulator's world is at fault"
    )]
    Missing { owner: String, missing: String },
    #[error(
        "VPCs {one} and {other} both have machines and overlap ({range}); one lab has one router: choose another networkCIDR"
    )]
    Overlap {
        one: String,
        other: String,
        range: String,
    },
    #[error(transparent)]
    File(#[from] crate::json_file::Error),
    #[error("no machine {0:?} in this lab; `lab network` lists them")]
    Unknown(String),
    /// Of a tool outside of any namespace of the lab.
    #[error(transparent)]
    Tool(anyhow::Error),
    #[error(transparent)]
    Netns(#[from] crate::netns::Error),
    #[error("the thread in network namespace {netns} panicked while {doing}")]
    Panicked { netns: String, doing: String },
}

pub type Result<T> = std::result::Result<T, Error>;

/// Adds to an I/O error what was being done.
pub fn add_context(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let doing = what.into();
    move |source| Error::Io { doing, source }
}
