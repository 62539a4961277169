//! The default images of instance groups.

use node::config::Arch;

/// Canonical's AWS account.
pub const DEFAULT_IMAGE_OWNER: &str = "099720109477";

/// Debian's AWS account (https://wiki.debian.org/Cloud/AmazonEC2Image).
const DEBIAN_IMAGE_OWNER: &str = "136693071363";

/// Which images instances of kctl have become nodes with, for those who choose one: what the lab boots (docs/lab.md).
pub const BOOTED_IMAGES: &str = "kctl is tested with images of Debian 13 (the default) and Debian 12 on amd64; Ubuntu 22.04 and 24.04, \
                                 Amazon Linux 2023 and arm64 have not run yet";

/// The image of new clusters and groups as `OWNER/NAME`: the newest system that instances of kctl have become nodes with.
pub fn new_group_image(arch: Arch) -> String {
    format!(
        "{DEBIAN_IMAGE_OWNER}/debian-13-{}-20260713-2537",
        arch.as_str()
    )
}

/// The image of a group of a spec that names none, as `OWNER/NAME`: Ubuntu 24.04, which kOps' stable channel of August 2026 has for
/// every Kubernetes version that kctl supports.
pub fn default_image(arch: Arch) -> String {
    format!(
        "{DEFAULT_IMAGE_OWNER}/ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{}-server-20260714",
        arch.as_str()
    )
}
