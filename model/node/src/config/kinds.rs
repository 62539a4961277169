//! What instances differ by: role, architecture, network plugin; and the downloads that each needs.

use serde::{Deserialize, Serialize};

/// The role of an instance group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// kOps' `Master`.
    ControlPlane,
    /// A worker.
    Node,
    /// An SSH bastion.
    Bastion,
}

/// A processor architecture.
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

/// The CNI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Networking {
    /// flannel with that backend: `vxlan` or `udp`.
    Flannel(String),
    /// kubenet: routes by the cloud controller manager.
    Kubenet,
    /// The user installs a CNI; the plugins are there.
    Cni,
    /// As `Cni`, with nothing of ours.
    External,
}

/// A download that machines need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// `kubelet`, `kubectl`, `containerd`, `runc`, `cni-plugins`, `crictl`, `ecr-credential-provider`, ...
    pub name: String,
    /// For which architecture.
    pub arch: Arch,
    /// Where from, first choice first (mirrors after it).
    pub urls: Vec<String>,
    /// Hex; `None` only in an offline render: not yet known.
    pub sha256: Option<String>,
}
