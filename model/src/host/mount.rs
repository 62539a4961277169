//! File systems on further volumes.

use serde::Serialize;

/// A mounted file system. Its volume is formatted only if it is provably blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Device: `/dev/nvme1n1`, or a name that AWS gave, `/dev/xvdf`.
    pub device: String,
    /// Where it is mounted.
    pub path: String,
    /// `ext4`, `xfs`, ...
    pub filesystem: String,
    /// Options of mkfs.
    pub format_options: Vec<String>,
    /// Options of mount.
    pub mount_options: Vec<String>,
}
