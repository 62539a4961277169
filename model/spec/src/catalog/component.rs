//! The components that are downloaded onto instances: their download paths, and the version that goes
//! with each Kubernetes version.

use crate::validate::versions::Version;
use node::config::Arch;

/// A component that is downloaded onto instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    CniPlugins,
    /// containerd, ctr and the shims.
    Containerd,
    Crictl,
    /// kubelet's plugin that gets credentials for ECR.
    EcrCredentialProvider,
    Kubectl,
    Kubelet,
    /// A command line for containerd in the manner of docker's. Only where the spec asks for it.
    Nerdctl,
    Runc,
}

impl Component {
    /// All of them, by name.
    pub const ALL: [Self; 8] = [
        Self::CniPlugins,
        Self::Containerd,
        Self::Crictl,
        Self::EcrCredentialProvider,
        Self::Kubectl,
        Self::Kubelet,
        Self::Nerdctl,
        Self::Runc,
    ];

    /// Its name among the assets of a full spec.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Kubectl => "kubectl",
            other => other.catalog_section(),
        }
    }

    /// Its section of the catalog.
    pub(super) fn catalog_section(self) -> &'static str {
        match self {
            Self::CniPlugins => "cni-plugins",
            Self::Containerd => "containerd",
            Self::Crictl => "crictl",
            Self::EcrCredentialProvider => "ecr-credential-provider",
            Self::Kubectl | Self::Kubelet => "kubernetes",
            Self::Nerdctl => "nerdctl",
            Self::Runc => "runc",
        }
    }

    /// The path of the download below the base URL.
    pub(super) fn download_path(self, version: &str, arch: Arch) -> String {
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
            Self::Nerdctl => format!("v{version}/nerdctl-{version}-linux-{arch}.tar.gz"),
            Self::Runc => format!("v{version}/runc.{arch}"),
        }
    }

    /// The version that goes with a Kubernetes version, without `v`, as in kOps.
    pub fn version_for(self, kubernetes: &Version) -> String {
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
            Self::Nerdctl => "1.7.4",
            Self::Runc => "1.4.3",
        };
        fixed.to_owned()
    }
}
