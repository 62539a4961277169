//! What instances are launched with: the NodeConfig of each group, and its user data.

mod build;
mod fixed;
mod mime;
mod proxy;
mod user_data;

pub use build::node_config;
pub use user_data::{UserData, user_data};
