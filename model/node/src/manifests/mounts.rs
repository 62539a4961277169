//! Paths of the host in a container: each is one volume and one mount of the same name.

use super::{HostPath, Volume, VolumeMount};
use crate::components::Flags;

/// Where distributions keep certificate authorities. Those that a host does not have are made empty.
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

/// Volumes and mounts as they are collected.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    /// Of the pod.
    pub volumes: Vec<Volume>,
    /// Of its container.
    pub mounts: Vec<VolumeMount>,
}

impl Mounts {
    /// The distributions' certificate authorities, to read.
    pub fn certificates() -> Self {
        let paths = CERTIFICATE_FOLDERS.iter();
        paths.fold(Self::default(), |mounts, path| {
            let name = path.trim_start_matches('/').replace('/', "-");
            mounts.add(&name, path, path, Some("DirectoryOrCreate"), true)
        })
    }

    /// A path to read, which is there under the same name.
    #[must_use]
    pub fn reads(self, name: &str, path: &str) -> Self {
        self.add(name, path, path, None, true)
    }

    /// Every file that flags name and that lies in no folder that is there already: by itself, and it has to exist.
    #[must_use]
    pub fn reads_files(self, flags: &Flags) -> Self {
        flags
            .files()
            .into_iter()
            .fold(self, |mounts, (flag, path)| {
                if mounts.have(path) {
                    return mounts;
                }
                // Several files of one flag need several names.
                let number = mounts.mounts.len();
                let name = format!("{flag}-{number}");
                mounts.add(&name, path, path, Some("File"), true)
            })
    }

    fn have(&self, path: &str) -> bool {
        self.mounts.iter().any(|mount| {
            let rest = path.strip_prefix(mount.mount_path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A path to write, of this type.
    #[must_use]
    pub fn writes(self, name: &str, path: &str, kind: &str) -> Self {
        self.add(name, path, path, Some(kind), false)
    }

    /// A path of the host at a path of the container.
    #[must_use]
    pub fn add(
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
