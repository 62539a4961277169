//! Static pods of the control plane, as kubelet reads them from its folder of manifests.

mod api_server;
mod controllers;

pub use api_server::api_server;
pub use controllers::{controller_manager, scheduler};
