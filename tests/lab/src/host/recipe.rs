//! What a machine image is made of: the distribution's packages, made once and kept under their hash, and the files of
//! `tests/lab/image`, part of this program, which each lab lays over them.

use sha2::{Digest, Sha256};

pub(crate) const SUITE: &str = "bookworm";
const PACKAGES: &str = include_str!("../../image/packages");
const MASKED: &str = include_str!("../../image/masked");

/// A file of the image: path below its root, mode, content.
pub(crate) struct RecipeFile {
    pub path: &'static str,
    pub mode: u32,
    pub content: &'static str,
}

/// Owner's name of the machine image that cannot boot, as the simulator has it; `spec.image` is `136693071363/` and this.
pub const PANICS: &str = "kctl-lab-panics-amd64-20260713-1";

/// The first process of a host of that image.
pub(crate) fn init(image: &str) -> &'static str {
    // The simulator makes ids of names.
    let digest = format!("ami-{:x}", Sha256::digest(PANICS));
    if image.len() == 21 && digest.starts_with(image) {
        "/usr/lib/kctl-lab/panic"
    } else {
        "/usr/lib/kctl-lab/init"
    }
}

pub(crate) const FILES: [RecipeFile; 12] = [
    RecipeFile {
        path: "usr/lib/kctl-lab/panic",
        mode: 0o755,
        content: include_str!("../../image/panic"),
    },
    RecipeFile {
        path: "usr/lib/kctl-lab/init",
        mode: 0o755,
        content: include_str!("../../image/init"),
    },
    RecipeFile {
        path: "usr/local/sbin/systemd-detect-virt",
        mode: 0o755,
        content: include_str!("../../image/systemd-detect-virt"),
    },
    RecipeFile {
        path: "usr/local/sbin/dmidecode",
        mode: 0o755,
        content: include_str!("../../image/dmidecode"),
    },
    RecipeFile {
        path: "etc/cloud/cloud.cfg.d/90-ec2.cfg",
        mode: 0o644,
        content: include_str!("../../image/cloud.cfg"),
    },
    RecipeFile {
        path: "etc/systemd/resolved.conf.d/90-ec2.conf",
        mode: 0o644,
        content: include_str!("../../image/resolved.conf"),
    },
    RecipeFile {
        path: "etc/systemd/journald.conf.d/90-ec2.conf",
        mode: 0o644,
        content: include_str!("../../image/journald.conf"),
    },
    RecipeFile {
        path: "etc/sysctl.d/10-ec2.conf",
        mode: 0o644,
        content: include_str!("../../image/sysctl.conf"),
    },
    RecipeFile {
        path: "etc/hosts",
        mode: 0o644,
        content: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    },
    RecipeFile {
        path: "etc/hostname",
        mode: 0o644,
        content: "localhost\n",
    },
    // Empty: systemd gives each host its own at its first boot.
    RecipeFile {
        path: "etc/machine-id",
        mode: 0o444,
        content: "",
    },
    // The root file system is there already.
    RecipeFile {
        path: "etc/fstab",
        mode: 0o644,
        content: "",
    },
];

/// Units that begin with the machine though the distribution leaves that to the image's maker.
pub(crate) const ENABLED: [&str; 2] = ["systemd-networkd.service", "systemd-resolved.service"];

/// Paths that no machine of this image reads.
pub(crate) const LEFT_OUT: [&str; 3] = [
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
];

/// The distribution's packages that are asked for; what they depend on comes with them.
pub fn packages() -> Vec<&'static str> {
    entries(PACKAGES)
}

pub(crate) fn masked() -> Vec<&'static str> {
    entries(MASKED)
}

fn entries(text: &'static str) -> Vec<&'static str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Changes with anything that the distribution's part is made of: 16 hexadecimal digits.
pub(crate) fn key() -> String {
    let mut hash = Sha256::new();
    for list in [vec![SUITE], packages(), ENABLED.to_vec(), LEFT_OUT.to_vec()] {
        hash.update(list.join("\n"));
        hash.update("\n\n");
    }
    let mut text = format!("{:x}", hash.finalize());
    text.truncate(16);
    text
}
