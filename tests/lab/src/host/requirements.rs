//! What the lab needs of the machine it runs on: the lines of `tests/requirements` for it.

use crate::{checkout, tool};
use anyhow::Result;
use std::process::{Command, Stdio};

/// Makes sure that every program the lab runs is there; as root installs what is missing, else says what to install.
pub fn ready() -> Result<()> {
    ready_for("lab")
}

/// The same for virtual machines, which only the soak has.
pub(super) fn machines_ready() -> Result<()> {
    ready_for("soak")
}

fn ready_for(target: &str) -> Result<()> {
    let mut command = Command::new(checkout::tests_folder().join("install"));
    command.arg(target).stdin(Stdio::null());
    tool::run(&mut command).map(drop)
}
