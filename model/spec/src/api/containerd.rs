//! The container runtime: `spec.containerd`, of a cluster or a group.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::{Duration, IntOrString};

spec! {
    /// The container runtime of the instances. A group's values win over the cluster's; `version`, `packages` and `runc` can be
    /// set in the cluster only.
    pub struct ContainerdConfig {
        /// Path of containerd's socket; only `/run/containerd/containerd.sock` is possible, because kubelet uses it.
        pub address: Option<String>,
        /// Entries added to `config.toml`, by dotted path, such as `debug.level`. The texts `true` and `false` become booleans.
        pub config_additions: BTreeMap<String, IntOrString>,
        /// A whole `config.toml` in the place of kctl's.
        pub config_override: Option<String>,
        /// How much containerd logs: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `panic`. Default `info`.
        pub log_level: Option<String>,
        /// Archives of containerd that take the place of those in kctl's list of downloads.
        pub packages: Option<PackagesConfig>,
        /// Mirrors of each registry, as URLs that are tried in order before the registry itself. The key `*` stands for every
        /// registry.
        pub registry_mirrors: BTreeMap<String, Vec<String>>,
        /// Folder of images and other data that last. Default `/var/lib/containerd`.
        pub root: Option<String>,
        /// The image of the instances has containerd and its configuration; kctl installs neither. Default false.
        pub skip_install: Option<bool>,
        /// Folder of data that do not outlive a boot. Default `/run/containerd`.
        pub state: Option<String>,
        /// Version of containerd. Default that for the version of Kubernetes.
        pub version: Option<String>,
        /// Lets pods use the GPUs of NVIDIA. It needs images of Ubuntu.
        #[serde(rename = "nvidiaGPU")]
        pub nvidia_gpu: Option<NvidiaGPUConfig>,
        /// Runs pods with the RuntimeClass `gvisor` in sandboxes. It is set in instance groups.
        pub gvisor: Option<GVisorConfig>,
        /// The program that starts containers.
        pub runc: Option<Runc>,
        /// Labels containers for SELinux. Default false.
        pub selinux_enabled: Option<bool>,
        /// Whether plugins see and change containers as they are made. Default as containerd has it: they may since containerd
        /// 2.
        pub nri: Option<NRIConfig>,
        /// Mirrors get the credentials of ECR, as registries of ECR do. Default false.
        #[serde(rename = "useECRCredentialsForMirrors")]
        pub use_ecr_credentials_for_mirrors: Option<bool>,
        /// Installs crictl. It is always installed: no effect.
        pub install_cri_ctl: Option<bool>,
        /// Installs nerdctl. Default false.
        pub install_nerd_ctl: Option<bool>,
        /// Image of the container that holds a pod's network (pause). Default that of the release.
        pub sandbox_image: Option<String>,
    }

    /// GPUs of NVIDIA: the driver and container runtime on instances with such a GPU, and the device plugin. A group may have
    /// `enabled` and `package` of its own.
    pub struct NvidiaGPUConfig {
        /// Package of the driver. Default `nvidia-driver-535-server`.
        pub package: Option<String>,
        /// Whether pods can use GPUs. Default false.
        pub enabled: Option<bool>,
        /// Image of the device plugin. Default that of the release.
        pub image: Option<String>,
        /// Metrics of each GPU.
        pub dcgm_exporter: Option<DCGMExporterConfig>,
    }

    /// The DCGM exporter, which serves metrics of each GPU on port 9400.
    pub struct DCGMExporterConfig {
        /// Installs the exporter. Default false.
        pub enabled: Option<bool>,
    }

    /// gVisor, which gives each pod that asks for it a kernel of its own. It needs images of Debian or Ubuntu.
    pub struct GVisorConfig {
        /// Installs gVisor. Default false.
        pub enabled: Option<bool>,
        /// How it intercepts system calls: `systrap`, or `kvm` on bare metal instances. Default `systrap`.
        pub platform: Option<String>,
    }

    /// Plugins of the Node Resource Interface, which see and change containers as they are made.
    pub struct NRIConfig {
        /// Whether containerd takes plugins. Default true if the section is there.
        pub enabled: Option<bool>,
        /// How long a plugin may take to register. Default containerd's own.
        pub plugin_registration_timeout: Option<Duration>,
        /// How long a plugin may take to answer. Default containerd's own.
        pub plugin_request_timeout: Option<Duration>,
    }

    /// An archive for each architecture, with its hash.
    pub struct PackagesConfig {
        /// SHA-256 of the archive for amd64, in hex.
        pub hash_amd64: Option<String>,
        /// SHA-256 of the archive for arm64, in hex.
        pub hash_arm64: Option<String>,
        /// URL of the archive for amd64.
        pub url_amd64: Option<String>,
        /// URL of the archive for arm64.
        pub url_arm64: Option<String>,
    }

    /// The program that starts containers.
    pub struct Runc {
        /// Version of runc. Default that for the version of Kubernetes.
        pub version: Option<String>,
        /// Binaries of runc that take the place of those in kctl's list of downloads.
        pub packages: Option<PackagesConfig>,
    }
}
