//! Properties by which instances differ: role, architecture and network plugin; and the downloads that they need.

use serde::{Deserialize, Serialize};

/// The role of an instance group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs etcd and the API server; `Master` in kOps.
    ControlPlane,
    /// Runs workloads only.
    Node,
    /// SSH jump host outside the cluster.
    Bastion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

impl Arch {
    /// As in download paths: `amd64`, `arm64`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// The network plugin (CNI).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Networking {
    /// flannel with this backend: `vxlan` or `udp`.
    Flannel(String),
    /// calico, whose agents take over another version and other settings on running instances.
    Calico,
    /// cilium.
    Cilium {
        /// Of its version and settings, which an agent takes over when its instance is replaced.
        digest: String,
        /// Pods have addresses of the VPC, of network interfaces that its operator attaches.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_vpc: bool,
    },
    /// The Amazon VPC CNI.
    AmazonVpc,
    /// kube-router.
    KubeRouter,
    /// kindnet.
    Kindnet,
    /// kubenet, with routes set by the cloud controller manager.
    Kubenet,
    /// The user installs a CNI; kctl installs the standard plugins.
    Cni,
    /// The same, by kOps' other name.
    External,
}

impl Networking {
    /// Pods have addresses of network interfaces that the plugin attaches to instances.
    pub fn attaches_interfaces(&self) -> bool {
        matches!(self, Self::AmazonVpc | Self::Cilium { in_vpc: true, .. })
    }
}

/// A download that instances need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// `kubelet`, `kubectl`, `containerd`, `runc`, `cni-plugins`, `crictl`, `ecr-credential-provider`, `nerdctl`, ...
    pub name: String,
    pub arch: Arch,
    /// Sources in the order in which they are tried.
    pub urls: Vec<String>,
    /// sha256, hex; `None` only in an offline render, where it is unknown.
    pub sha256: Option<String>,
}

/// Limit of a file that instances download, bytes. Nothing that they need is larger; a longer response would fill the disk.
pub const LARGEST_DOWNLOAD: u64 = 2 << 30;

/// A container image in an archive that instances import before kubelet starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageArchive {
    /// Its full name, as [`parse_image`](crate::values::parse_image) writes it.
    pub image: String,
    pub arch: Arch,
    /// Digest of its index or manifest: `sha256:...`.
    pub digest: String,
    /// sha256 (hex) of the archive, an OCI image layout.
    pub sha256: String,
    /// Sources of the archive in the order in which they are tried.
    pub urls: Vec<String>,
}

impl ImageArchive {
    /// The archive as a download.
    pub fn download(&self) -> Asset {
        Asset {
            name: self.image.clone(),
            arch: self.arch,
            urls: self.urls.clone(),
            sha256: Some(self.sha256.clone()),
        }
    }
}
