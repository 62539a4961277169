//! The static pods of the control plane.

mod api_server;
mod controllers;

pub use api_server::api_server_pod;
pub use controllers::{controller_manager_pod, scheduler_pod};
