//! What an instance is configured with: BootConfig for its first minutes, NodeConfig for the rest of its life, and the
//! files and units that follow from it.

mod agents;
mod boot;
mod containerd;
mod error;
mod etcd;
mod file;
mod files;
mod host;
mod kinds;
mod node_config;
mod packages;
mod sysctls;

pub use agents::{Agent, Agents, agent_key, find_agent};
pub use boot::{BOOT_FORMAT, BootConfig, read_boot_config};
pub use containerd::Containerd;
pub use error::Error;
pub use etcd::{etcd_members, etcd_pod, etcd_pods};
pub use file::{File, Unit};
pub use files::{KUBELET_CLIENT, files};
pub use host::{Distribution, Host};
pub use kinds::{Arch, Asset, Networking, Role};
pub use node_config::{
    ControlPlane, EtcdCluster, EtcdMember, Kubelet, NODE_FORMAT, NodeConfig, StoredNodeConfig,
    VolumeMount, etcd_versions_of, kubernetes_version_of, newest_node_config_key, node_config_key,
    read_newest_node_config, read_node_config, sha256, stored,
};
pub use packages::packages;
pub(crate) use packages::{needed, upkeep};
pub(crate) use sysctls::is_ours;
pub use sysctls::sysctls;

/// Where nodeup, protokube and their configuration lie on a machine.
pub const DIRECTORY: &str = "/opt/kctl";

/// What renews certificates, and the timer that starts it: no unit that runs, so a file.
pub const RENEWAL_SERVICE: &str = "/etc/systemd/system/nodeup-certificates.service";
/// The timer's unit.
pub const RENEWAL_TIMER: &str = "nodeup-certificates.timer";
