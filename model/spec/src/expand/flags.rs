//! Flags and configuration files of the Kubernetes components, from a completed spec. Values set by the user win over
//! the paths and defaults here.

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

pub(crate) use api_server::make_api_server_flags;
pub(super) use cloud_controller_manager::cloud_controller_manager_flags;
pub(super) use controller_manager::controller_manager_flags;
pub(super) use kubelet::kubelet_flags;
pub(super) use kubelet_config::kubelet_config;
pub(super) use proxy::kube_proxy_flags;
pub(super) use scheduler::{scheduler_config, scheduler_flags};

/// The settings of a component could not be turned into flags or a file.
#[derive(Debug, thiserror::Error)]
#[error("could not make the flags of {component}")]
pub struct Error {
    component: &'static str,
    #[source]
    source: serde_json::Error,
}
