//! Container images that are imported into containerd.

use crate::config::Arch;
use serde::Serialize;

/// An image in containerd, under the name by which kubelet looks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Name in containerd: `registry.k8s.io/pause:3.10.1`.
    pub name: String,
    pub arch: Arch,
    /// Digest of its index or manifest.
    pub digest: String,
    /// sha256 (hex) of the archive that it is imported from; also the file name in nodeup's cache.
    pub archive: String,
    /// kubelet never removes it to make room.
    pub pinned: bool,
    /// File with the digest of what was imported. It lies in containerd's folder, so it goes when the images go.
    pub record: String,
}
