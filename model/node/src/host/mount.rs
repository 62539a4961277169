//! File systems on further volumes.

use serde::Serialize;

/// A mounted file system. Its volume is formatted only if it is provably blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Device as the spec names it: the one that AWS attaches a volume as, `/dev/xvdf`; or `/dev/nvme1n1` of an instance store.
    pub device: String,
    /// Where it is mounted.
    pub path: String,
    /// `ext4`, `xfs`, ...
    pub filesystem: String,
    /// Options of mkfs.
    pub format_options: Vec<String>,
    /// Options of mount.
    pub mount_options: Vec<String>,
    /// The unit that mounts it when the machine starts again.
    pub unit: String,
    /// Wanted: that unit finds it by the UUID of its file system. Devices have other names after each boot.
    pub by_uuid: bool,
}
