//! The container runtime: `spec.containerd`, of a cluster or a group.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, IntOrString};

spec! {
    /// containerd and runc; the group's values win over the cluster's.
    pub struct ContainerdConfig {
        /// `--address`: its socket.
        pub address: Option<String>,
        /// Entries added to config.toml, by dotted path.
        pub config_additions: BTreeMap<String, IntOrString>,
        /// A whole config.toml instead of ours.
        pub config_override: Option<String>,
        /// `--log-level`.
        pub log_level: Option<String>,
        /// Archives instead of the catalog's.
        pub packages: Option<PackagesConfig>,
        /// Mirrors (URLs, tried in order) per registry; `*` for all.
        pub registry_mirrors: BTreeMap<String, Vec<String>>,
        /// `--root`: lasting data.
        pub root: Option<String>,
        /// True: the image brings containerd.
        pub skip_install: Option<bool>,
        /// `--state`: data that does not outlive a boot.
        pub state: Option<String>,
        pub version: Option<String>,
        /// NVIDIA driver and container toolkit, on instances with such a GPU.
        #[serde(rename = "nvidiaGPU")]
        pub nvidia_gpu: Option<NvidiaGPUConfig>,
        /// gVisor's sandboxes, of a group's instances.
        pub gvisor: Option<GVisorConfig>,
        pub runc: Option<Runc>,
        /// Labels containers for SELinux.
        pub selinux_enabled: Option<bool>,
        /// Plugins of the Node Resource Interface.
        pub nri: Option<NRIConfig>,
        /// True: mirrors get ECR credentials.
        #[serde(rename = "useECRCredentialsForMirrors")]
        pub use_ecr_credentials_for_mirrors: Option<bool>,
        /// True: crictl is installed.
        pub install_cri_ctl: Option<bool>,
        /// True: nerdctl is installed.
        pub install_nerd_ctl: Option<bool>,
        pub sandbox_image: Option<String>,
    }

    /// GPUs of NVIDIA. A group may turn it on or off and have another driver.
    pub struct NvidiaGPUConfig {
        /// Package of the driver; default `nvidia-driver-535-server`.
        pub package: Option<String>,
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// Image of the device plugin.
        pub image: Option<String>,
        pub dcgm_exporter: Option<DCGMExporterConfig>,
    }

    /// Metrics of each GPU.
    pub struct DCGMExporterConfig {
        /// Whether they are wanted.
        pub enabled: Option<bool>,
    }

    /// A runtime with a kernel of its own for each pod.
    pub struct GVisorConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// How it intercepts system calls: `systrap` (default) or `kvm`, which bare metal instances have.
        pub platform: Option<String>,
    }

    /// Programs that see and change containers as they are made (NRI).
    pub struct NRIConfig {
        /// False: containerd takes no plugins. Without it, the section turns them on.
        pub enabled: Option<bool>,
        /// How long a plugin may take to register.
        pub plugin_registration_timeout: Option<Duration>,
        /// How long a plugin may take to answer.
        pub plugin_request_timeout: Option<Duration>,
    }

    /// Where an archive is, and its hash, per architecture.
    pub struct PackagesConfig {
        /// Hex SHA-256 of the amd64 archive.
        pub hash_amd64: Option<String>,
        /// Hex SHA-256 of the arm64 archive.
        pub hash_arm64: Option<String>,
        /// URL of the amd64 archive.
        pub url_amd64: Option<String>,
        /// URL of the arm64 archive.
        pub url_arm64: Option<String>,
    }

    pub struct Runc {
        pub version: Option<String>,
        /// Binaries instead of the catalog's.
        pub packages: Option<PackagesConfig>,
    }
}
