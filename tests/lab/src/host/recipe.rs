//! What a machine image is made of: the files of `tests/lab/image`, part of this program. Their content is the image's
//! name, so that a changed recipe is another image.

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

/// The host's first process.
pub(crate) const INIT: &str = "/usr/lib/kctl-lab/init";

pub(crate) const FILES: [RecipeFile; 6] = [
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
        path: "etc/hosts",
        mode: 0o644,
        content: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    },
    RecipeFile {
        path: "etc/hostname",
        mode: 0o644,
        content: "localhost\n",
    },
];

/// Units that begin with the machine though the distribution leaves that to the image's maker.
pub(crate) const ENABLED: [&str; 2] = ["systemd-networkd.service", "systemd-resolved.service"];

/// Paths that no machine of this image reads.
pub(crate) const LEFT_OUT: [&str; 3] = ["/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*"];

pub(crate) fn packages() -> Vec<&'static str> {
    entries(PACKAGES)
}

pub(crate) fn masked() -> Vec<&'static str> {
    entries(MASKED)
}

fn entries(text: &'static str) -> Vec<&'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Changes with anything above: 16 hexadecimal digits.
pub(crate) fn key() -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    };
    add(SUITE);
    for list in [packages(), masked(), ENABLED.to_vec(), LEFT_OUT.to_vec()] {
        add(&list.join("\n"));
    }
    for file in &FILES {
        add(file.path);
        add(&format!("{:o}", file.mode));
        add(file.content);
    }
    let digest = hash.finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
