//! Flags and configuration files of the components of Kubernetes, from what the completed spec says of each. What the user
//! said wins over every path and default written here.

mod api_server;
mod cloud_controller_manager;
mod controller_manager;
mod kubelet;
mod kubelet_config;
mod naming;
#[cfg(test)]
mod naming_test;
mod proxy;
mod scheduler;

pub(crate) use api_server::api_server;
pub(super) use cloud_controller_manager::cloud_controller_manager;
pub(super) use controller_manager::controller_manager;
pub(super) use kubelet::kubelet;
pub(super) use kubelet_config::kubelet_config;
pub(super) use proxy::proxy;
pub(super) use scheduler::{scheduler, scheduler_config};

/// The settings of a component could not be turned into flags or a file.
#[derive(Debug, thiserror::Error)]
#[error("could not make the flags of {component}")]
pub struct Error {
    component: &'static str,
    #[source]
    source: serde_json::Error,
}
