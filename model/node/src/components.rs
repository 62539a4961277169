//! How the components of Kubernetes, etcd and containerd are run: flags as data, configuration files, ports and paths.

pub mod authenticator;
mod component;
mod containerd;
mod etcd;
mod etcd_checks;
mod etcd_settings;
mod flags;
mod paths;

pub use component::Component;
pub use containerd::{
    ContainerdHost, RUNSC_CONFIG, check_containerd_config, containerd_config, containerd_hosts,
    mirror_url, runsc_config, unread_additions,
};
pub use etcd::{EtcdMemberNames, EtcdPorts, EtcdStart, etcd_environment, etcd_ports};
pub use etcd_checks::etcd_quota;
pub use etcd_settings::{EtcdSetting, etcd_setting, successor_of_setting, taken_etcd_settings};
pub use flags::{FILES, Flags};
pub use paths::{
    CONTAINERD_SOCKET, KUBERNETES, MANIFESTS, TOOLS, VOLUME_PLUGINS, component_kubeconfig,
    component_pki,
};
