//! Configuration of an instance: BootConfig, which user data passes to nodeup; NodeConfig, which holds everything else; and the
//! files that are written from it.

mod agents;
mod boot;
mod containerd;
mod error;
mod etcd;
mod file;
mod files;
mod host;
mod keyset_ids;
mod kinds;
mod networkd;
mod node_config;
mod packages;
mod sysctls;
mod termination;

pub use agents::{Agent, Agents, agent_key, find_agent};
pub use boot::{BOOT_FORMAT, BootConfig, read_boot_config};
pub use containerd::{Containerd, Nri};
pub use error::Error;
pub use etcd::{etcd_members, etcd_pod, etcd_pods};
pub use file::{File, UnitFile};
pub use files::{KUBELET_CLIENT, host_files};
pub use host::{Distribution, InstanceFacts};
pub use keyset_ids::KeysetIds;
pub use kinds::{Arch, Asset, ImageArchive, LARGEST_DOWNLOAD, Networking, Role};
pub use node_config::{
    ApiProxy, ControlPlane, EtcdCluster, EtcdMember, Kubelet, NODE_FORMAT, NodeConfig,
    StoredNodeConfig, VolumeMount, WarmPool, etcd_versions_of, kubernetes_version_of,
    newest_node_config_key, node_config_key, read_newest_node_config, read_node_config, to_stored,
};
pub(crate) use packages::{needed_packages, upkeep_packages};
pub(crate) use sysctls::{kernel_modules, kernel_parameters_of};
pub use sysctls::{kernel_parameters, parse_user_parameters};
pub use termination::{Rebalance, Termination};

/// Folder of nodeup, protokube and their configuration on an instance.
pub const DIRECTORY: &str = "/opt/kctl";

/// Path of the service that renews certificates. It is a file and not a unit to enable: [`RENEWAL_TIMER`] starts it.
pub const RENEWAL_SERVICE: &str = "/etc/systemd/system/nodeup-certificates.service";
/// Name of the timer unit that starts the renewal service.
pub const RENEWAL_TIMER: &str = "nodeup-certificates.timer";

/// Name of the unit that keeps the network services of the host away from interfaces that the network plugin attaches.
pub const VPC_INTERFACES: &str = "kctl-vpc-interfaces.service";

/// Name of the unit of the proxy of the API.
pub const API_PROXY_UNIT: &str = "kctl-api-proxy.service";

/// Name of the unit that pulls the images that pods need first.
pub const IMAGE_PULLS: &str = "kctl-images.service";

/// Units that kctl sets up on instances, besides containerd's, which some images bring. No hook can have their names.
pub const OWN_UNITS: [&str; 13] = [
    "chrony.service",
    "chronyd.service",
    "cni-iptables-setup.service",
    "dnf-automatic-install.timer",
    "kubelet.service",
    "logrotate.timer",
    API_PROXY_UNIT,
    IMAGE_PULLS,
    VPC_INTERFACES,
    "nodeup-certificates.service",
    RENEWAL_TIMER,
    "nodeup.service",
    "protokube.service",
];

/// Those of them that belong to the distribution. A hook may mask them where kctl does not want them.
pub const UPKEEP_UNITS: [&str; 4] = [
    "chrony.service",
    "chronyd.service",
    "dnf-automatic-install.timer",
    "logrotate.timer",
];
