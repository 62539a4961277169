//! What a machine gets: user data for its first minutes, NodeConfig for the rest of its life, and the files and
//! units that follow from it.

mod agents;
mod boot;
mod error;
mod mime;
mod user_data;

pub use agents::{Agent, Agents, agent_key};
pub use boot::{BOOT_FORMAT, BOOTSTRAP_PORT, BootConfig};
pub use error::Error;
pub use user_data::{UserData, user_data};

/// Where nodeup, protokube and their configuration lie on a machine.
pub const DIRECTORY: &str = "/opt/kctl";
