//! The default image of instance groups.

use node::config::Arch;

/// Canonical's AWS account.
pub const DEFAULT_IMAGE_OWNER: &str = "099720109477";

/// The default image as `OWNER/NAME`: Ubuntu 24.04, which kOps' stable channel of August 2026 has for
/// every Kubernetes version that kctl supports.
pub fn default_image(arch: Arch) -> String {
    format!(
        "{DEFAULT_IMAGE_OWNER}/ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{}-server-20260714",
        arch.as_str()
    )
}
