//! What a machine gets: user data for its first minutes, NodeConfig for the rest of its life, and the files and
//! units that follow from it.

mod agents;
mod boot;
mod build;
mod config;
mod containerd;
mod error;
mod etcd;
mod file;
mod files;
mod fixed;
mod host;
mod mime;
mod packages;
mod proxy;
mod sysctls;
mod user_data;
mod users;

pub use agents::{Agent, Agents, agent_key};
pub use boot::{BOOT_FORMAT, BOOTSTRAP_PORT, BootConfig, read_boot_config};
pub use build::node_config;
pub use config::{
    ControlPlane, Kubelet, NODE_FORMAT, NodeConfig, StoredNodeConfig, etcd_versions_of,
    kubernetes_version_of, newest_node_config_key, node_config_key, read_newest_node_config,
    read_node_config, sha256, stored,
};
pub use error::Error;
pub use etcd::{etcd_members, etcd_pod, etcd_pods};
pub use file::{File, Unit};
pub(crate) use files::KUBELET_CLIENT;
pub use files::files;
pub(crate) use fixed::{RENEWAL_SERVICE, RENEWAL_TIMER};
pub use host::{Distribution, Host};
pub use packages::packages;
pub(crate) use packages::{needed, upkeep};
pub(crate) use sysctls::is_ours;
pub use user_data::{UserData, user_data};

/// Where nodeup, protokube and their configuration lie on a machine.
pub const DIRECTORY: &str = "/opt/kctl";
