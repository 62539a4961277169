//! The subcommands of `lab`, one module per part.

pub mod hosts;
pub mod lab;
