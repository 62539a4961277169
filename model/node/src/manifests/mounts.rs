//! Host paths in a container: each is a volume and a mount of the same name.

use super::{HostPath, Volume, VolumeMount};
use crate::components::{Flags, TOOLS};

/// Folders in which distributions keep certificate authorities. kubelet creates missing ones.
const CERTIFICATE_FOLDERS: [&str; 9] = [
    "/etc/openssl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls",
    "/etc/ssl",
    "/usr/lib/ssl",
    "/usr/local/openssl",
    "/usr/share/ssl",
    "/usr/ssl",
    "/var/ssl",
];

/// Volumes and mounts of a pod with one container.
#[derive(Clone, Debug, Default)]
pub struct HostPaths {
    /// Volumes of the pod.
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    pub mounts: Vec<VolumeMount>,
}

impl HostPaths {
    /// The distributions' certificate authorities, read-only.
    pub fn of_certificate_folders() -> Self {
        let paths = CERTIFICATE_FOLDERS.iter();
        paths.fold(Self::default(), |mounts, path| {
            let name = path.trim_start_matches('/').replace('/', "-");
            mounts.with_path(&name, path, path, Some("DirectoryOrCreate"), true)
        })
    }

    /// Adds the tools of the release, which images of components lack: `kubectl exec` finds them there. kubelet waits for the
    /// folder; without a type, containerd would make an empty one in its place.
    #[must_use]
    pub fn with_tools(self) -> Self {
        self.with_path("tools", TOOLS, TOOLS, Some("Directory"), true)
    }

    /// Adds a read-only path with the same path in the container.
    #[must_use]
    pub fn with_read_only(self, name: &str, path: &str) -> Self {
        self.with_path(name, path, path, None, true)
    }

    /// Adds every file that flags name, unless a mounted folder contains it. The files must exist.
    #[must_use]
    pub fn with_flag_files(self, flags: &Flags) -> Self {
        flags
            .files()
            .into_iter()
            .fold(self, |mounts, (flag, path)| {
                if mounts.covers_path(path) {
                    return mounts;
                }
                // A flag may name several files, and volume names must be unique.
                let number = mounts.mounts.len();
                let name = format!("{flag}-{number}");
                mounts.with_path(&name, path, path, Some("File"), true)
            })
    }

    fn covers_path(&self, path: &str) -> bool {
        self.mounts.iter().any(|mount| {
            let rest = path.strip_prefix(mount.mount_path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Adds a writable path of this type with the same path in the container.
    #[must_use]
    pub fn with_writable(self, name: &str, path: &str, kind: &str) -> Self {
        self.with_path(name, path, path, Some(kind), false)
    }

    /// Adds a host path at a path of the container.
    #[must_use]
    pub fn with_path(
        mut self,
        name: &str,
        host: &str,
        container: &str,
        kind: Option<&str>,
        read_only: bool,
    ) -> Self {
        self.volumes.push(Volume {
            host_path: HostPath {
                path: host.to_owned(),
                kind: kind.map(str::to_owned),
            },
            name: name.to_owned(),
        });
        self.mounts.push(VolumeMount {
            mount_path: container.to_owned(),
            name: name.to_owned(),
            read_only,
        });
        self
    }
}
