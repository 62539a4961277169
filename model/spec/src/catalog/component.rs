//! What is downloaded onto machines, where each version of it lies, and which version goes with
//! which Kubernetes.

use crate::validate::versions::Version;
use node::config::Arch;

/// Something downloaded onto machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// CNI plugins.
    CniPlugins,
    /// containerd, ctr and the shims.
    Containerd,
    /// crictl.
    Crictl,
    /// Credentials of ECR for kubelet.
    EcrCredentialProvider,
    /// kubectl.
    Kubectl,
    /// kubelet.
    Kubelet,
    /// runc.
    Runc,
}

impl Component {
    /// All of them, by name.
    pub const ALL: [Self; 7] = [
        Self::CniPlugins,
        Self::Containerd,
        Self::Crictl,
        Self::EcrCredentialProvider,
        Self::Kubectl,
        Self::Kubelet,
        Self::Runc,
    ];

    /// Its name among the assets of a full spec.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Kubectl => "kubectl",
            other => other.section(),
        }
    }

    /// Its section of the catalog.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::CniPlugins => "cni-plugins",
            Self::Containerd => "containerd",
            Self::Crictl => "crictl",
            Self::EcrCredentialProvider => "ecr-credential-provider",
            Self::Kubectl | Self::Kubelet => "kubernetes",
            Self::Runc => "runc",
        }
    }

    /// Where it lies below its base URL.
    pub(super) fn path(self, version: &str, arch: Arch) -> String {
        let arch = arch.as_str();
        match self {
            Self::CniPlugins => format!("v{version}/cni-plugins-linux-{arch}-v{version}.tgz"),
            Self::Containerd => format!("v{version}/containerd-{version}-linux-{arch}.tar.gz"),
            Self::Crictl => format!("v{version}/crictl-v{version}-linux-{arch}.tar.gz"),
            Self::EcrCredentialProvider => {
                format!("v{version}/linux/{arch}/ecr-credential-provider-linux-{arch}")
            }
            Self::Kubectl => format!("v{version}/bin/linux/{arch}/kubectl"),
            Self::Kubelet => format!("v{version}/bin/linux/{arch}/kubelet"),
            Self::Runc => format!("v{version}/runc.{arch}"),
        }
    }

    /// The version that goes with a Kubernetes version, without `v`. As kOps pairs them.
    pub fn version(self, kubernetes: &Version) -> String {
        let fixed = match self {
            Self::Kubectl | Self::Kubelet => return kubernetes.to_string(),
            Self::CniPlugins => match kubernetes.minor {
                ..=33 => "1.6.2",
                34 => "1.7.1",
                35 => "1.8.0",
                36.. => "1.9.1",
            },
            Self::Containerd => "2.3.4",
            Self::Crictl => "1.29.0",
            Self::EcrCredentialProvider => "1.31.7",
            Self::Runc => "1.4.3",
        };
        fixed.to_owned()
    }
}
