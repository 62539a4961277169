//! File systems on additional volumes.

use serde::Serialize;

/// A mounted file system. Its volume is formatted only if it is blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Device in the spec: the name under which AWS attaches a volume (`/dev/xvdf`), or `/dev/nvme1n1` for an instance store.
    pub device: String,
    pub path: String,
    /// File system type: `ext4`, `xfs`, ...
    pub filesystem: String,
    pub format_options: Vec<String>,
    /// Options for mount(8).
    pub mount_options: Vec<String>,
    /// Name of the unit that mounts it at later boots.
    pub unit: String,
    /// True if the unit refers to the file system by UUID, because devices may have other names after a boot; always true in the
    /// desired state.
    pub by_uuid: bool,
}
