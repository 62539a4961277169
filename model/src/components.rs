//! What the Kubernetes components are run with: flags and configuration files, computed as data from the
//! completed spec. What the user said wins over every path and default written here.

mod api_server;
mod cloud_controller_manager;
mod containerd;
mod controller_manager;
mod etcd;
mod etcd_settings;
mod flags;
mod kubelet;
mod kubelet_config;
#[cfg(test)]
mod naming_test;
mod paths;
mod proxy;
mod scheduler;

pub use api_server::api_server;
pub use cloud_controller_manager::cloud_controller_manager;
pub use containerd::{ContainerdHost, containerd_config, containerd_hosts};
pub use controller_manager::controller_manager;
pub use etcd::{EtcdMemberNames, EtcdPorts, EtcdStart, etcd_environment, etcd_ports};
pub use etcd_settings::{EtcdSetting, etcd_setting, taken_etcd_settings};
pub use flags::{FILES, Flags};
pub use kubelet::kubelet;
pub use kubelet_config::kubelet_config;
pub use paths::{CONTAINERD_SOCKET, KUBERNETES, MANIFESTS, VOLUME_PLUGINS, component_kubeconfig};
pub use proxy::proxy;
pub use scheduler::{scheduler, scheduler_config};

/// A component's configuration could not be turned into flags or a file.
#[derive(Debug, thiserror::Error)]
#[error("could not make the flags of {component}")]
pub struct Error {
    component: &'static str,
    #[source]
    source: serde_json::Error,
}
