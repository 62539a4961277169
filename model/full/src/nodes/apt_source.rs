//! Sources of packages that the distribution does not have, for apt: the repository, and the key that signs it. The keys are part of
//! kctl, so that an instance trusts no key that it only downloaded.

use node::config::{Arch, File};

/// A repository of packages for Debian and Ubuntu.
#[derive(Clone, Copy, Debug)]
pub(super) struct AptSource {
    /// Name of its files.
    name: &'static str,
    /// What follows the options in `sources.list`; `ARCH` is the architecture.
    place: &'static str,
    /// Public key, armored.
    key: &'static str,
}

/// gVisor's releases (<https://gvisor.dev/docs/user_guide/install/#install-from-an-apt-repository>). Its key is
/// 6F1DF85E3A71C24918E727D56FC6D554E32BD943.
pub(super) const GVISOR: AptSource = AptSource {
    name: "gvisor",
    place: "https://storage.googleapis.com/gvisor/releases release main",
    key: include_str!("apt_source/gvisor.asc"),
};

/// NVIDIA's container toolkit
/// (<https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html>). Its key is
/// C95B321B61E88C1809C4F759DDCAE044F796ECB0.
pub(super) const NVIDIA: AptSource = AptSource {
    name: "nvidia",
    place: "https://nvidia.github.io/libnvidia-container/stable/deb/ARCH /",
    key: include_str!("apt_source/nvidia.asc"),
};

impl AptSource {
    /// The files that make apt know it.
    pub fn files(self, arch: Arch) -> [File; 2] {
        let arch = arch.as_str();
        let key_path = format!("/etc/apt/keyrings/kctl-{}.asc", self.name);
        let place = self.place.replace("ARCH", arch);
        let line = format!("deb [arch={arch} signed-by={key_path}] {place}\n");
        [
            File::new(
                format!("/etc/apt/sources.list.d/kctl-{}.list", self.name),
                line,
            ),
            File::new(key_path, self.key),
        ]
    }
}
