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

/// All flags of the components with removed ones, for a test beside their table.
#[cfg(test)]
pub(crate) fn component_flags(spec: crate::api::cluster::ClusterSpec) -> Vec<String> {
    let mut kubelets = [spec.kubelet, spec.master_kubelet].map(Option::unwrap_or_default);
    for kubelet in &mut kubelets {
        crate::validate::removed_flags::drop_idle_flags(
            kubelet,
            crate::validate::versions::NEWEST_MINOR,
        );
    }
    let [kubelet, master] = kubelets.map(|kubelet| kubelet_flags(&kubelet).unwrap());
    let api_server = make_api_server_flags(&spec.kube_api_server.unwrap_or_default(), false);
    let manager = controller_manager_flags(&spec.kube_controller_manager.unwrap_or_default());
    let all = [kubelet, master, api_server.unwrap(), manager.unwrap()];
    all.iter()
        .flat_map(node::components::Flags::arguments)
        .collect()
}
