//! What a machine image is made of: the distribution's packages, made once and kept under their hash, and the files of
//! `tests/lab/image`, part of this program, which each lab lays over them, and which images of virtual machines contain.

use sha2::{Digest, Sha256};

/// Releases of Debian that hosts boot. Of what EC2 offers, these are the images that the lab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    Bookworm,
    Trixie,
}

impl Release {
    pub const ALL: [Self; 2] = [Self::Bookworm, Self::Trixie];

    pub(crate) fn suite(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    /// Its machine image as `spec.image` names it: Debian's account and the image's name.
    pub fn spec_image(self) -> String {
        format!("136693071363/{}", self.image_name())
    }

    /// Name of its machine image, as the simulator has it.
    fn image_name(self) -> &'static str {
        match self {
            Self::Bookworm => "debian-12-amd64-20260713-2537",
            Self::Trixie => "debian-13-amd64-20260713-2537",
        }
    }

    /// What a machine image holds, by its id; `None`: a system that the lab does not have.
    pub(crate) fn find_release(image: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|release| is_image(image, release.image_name()))
    }
}

/// Whether an image id is that of this name: the simulator makes ids of names.
fn is_image(image: &str, name: &str) -> bool {
    image.len() == 21 && format!("ami-{:x}", Sha256::digest(name)).starts_with(image)
}

const PACKAGES: &str = include_str!("../../image/packages");
const MACHINE_PACKAGES: &str = include_str!("../../image/machine-packages");
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
pub(crate) fn init_program(image: &str) -> &'static str {
    match Release::find_release(image) {
        _ if is_image(image, PANICS) => "/usr/lib/kctl-lab/panic",
        None => "/usr/lib/kctl-lab/absent",
        Some(_) => "/usr/lib/kctl-lab/init",
    }
}

const fn recipe_file(path: &'static str, mode: u32, content: &'static str) -> RecipeFile {
    RecipeFile {
        path,
        mode,
        content,
    }
}

/// Of every image.
pub(crate) const FILES: [RecipeFile; 5] = [
    recipe_file(
        "etc/cloud/cloud.cfg.d/90-ec2.cfg",
        0o644,
        include_str!("../../image/cloud.cfg"),
    ),
    recipe_file(
        "etc/systemd/resolved.conf.d/90-ec2.conf",
        0o644,
        include_str!("../../image/resolved.conf"),
    ),
    recipe_file(
        "etc/hosts",
        0o644,
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    ),
    recipe_file("etc/hostname", 0o644, "localhost\n"),
    // Empty: systemd gives each host its own at its first boot.
    recipe_file("etc/machine-id", 0o444, ""),
];

/// Of hosts, which have no kernel of their own.
pub(crate) const HOST_FILES: [RecipeFile; 9] = [
    recipe_file(
        "usr/lib/kctl-lab/panic",
        0o755,
        include_str!("../../image/panic"),
    ),
    recipe_file(
        "usr/lib/kctl-lab/absent",
        0o755,
        include_str!("../../image/absent"),
    ),
    recipe_file(
        "usr/lib/kctl-lab/init",
        0o755,
        include_str!("../../image/init"),
    ),
    recipe_file(
        "usr/local/sbin/systemd-detect-virt",
        0o755,
        include_str!("../../image/systemd-detect-virt"),
    ),
    recipe_file(
        "usr/local/sbin/dmidecode",
        0o755,
        include_str!("../../image/dmidecode"),
    ),
    recipe_file(
        "etc/cloud/cloud.cfg.d/91-no-udev.cfg",
        0o644,
        include_str!("../../image/cloud-no-udev.cfg"),
    ),
    recipe_file(
        "etc/systemd/journald.conf.d/90-ec2.conf",
        0o644,
        include_str!("../../image/journald.conf"),
    ),
    recipe_file(
        "etc/sysctl.d/10-ec2.conf",
        0o644,
        include_str!("../../image/sysctl.conf"),
    ),
    // The root file system is there already.
    recipe_file("etc/fstab", 0o644, ""),
];

/// Label of the file system on a virtual machine's root disk.
pub(crate) const ROOT_LABEL: &str = "kctl-root";

/// How that file system is made, by mkfs.ext4. A sparse file is zeroed already.
pub(crate) const ROOT_OPTIONS: [&str; 5] = [
    "-q",
    "-L",
    ROOT_LABEL,
    "-E",
    "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
];

/// Of virtual machines.
pub(crate) const MACHINE_FILES: [RecipeFile; 1] = [
    // Else the kernel zeroes the file system's tables, and a sparse file grows by a gigabyte.
    recipe_file(
        "etc/fstab",
        0o644,
        "LABEL=kctl-root / ext4 noinit_itable,errors=remount-ro 0 1\n",
    ),
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
pub fn requested_packages() -> Vec<&'static str> {
    list_entries(PACKAGES)
}

/// The packages of a virtual machine: those of every host, a kernel, and the agent by which the lab runs programs in it.
pub(crate) fn machine_packages() -> Vec<&'static str> {
    [requested_packages(), list_entries(MACHINE_PACKAGES)].concat()
}

pub(crate) fn masked_units() -> Vec<&'static str> {
    list_entries(MASKED)
}

fn list_entries(text: &'static str) -> Vec<&'static str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Changes with anything that the distribution's part is made of: 16 hexadecimal digits.
pub(crate) fn recipe_key(release: Release) -> String {
    hash_lists(&distribution_lists(release, requested_packages()))
}

/// The same for a virtual machine's image: packages, contents of files, options and authority.
pub(crate) fn machine_key(release: Release, authority: &str) -> String {
    let mut lists = distribution_lists(release, machine_packages());
    for file in FILES.iter().chain(&MACHINE_FILES) {
        lists.push(vec![file.path, file.content]);
    }
    lists.push(ROOT_OPTIONS.to_vec());
    lists.push(vec![authority]);
    hash_lists(&lists)
}

fn distribution_lists(release: Release, packages: Vec<&str>) -> Vec<Vec<&str>> {
    let suite = vec![release.suite()];
    vec![suite, packages, ENABLED.to_vec(), LEFT_OUT.to_vec()]
}

fn hash_lists(lists: &[Vec<&str>]) -> String {
    let mut hash = Sha256::new();
    for list in lists {
        hash.update(list.join("\n"));
        hash.update("\n\n");
    }
    let mut text = format!("{:x}", hash.finalize());
    text.truncate(16);
    text
}
