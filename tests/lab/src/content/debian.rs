//! What comes from Debian rather than from Go modules: runc, busybox, iptables and ext4's programs with their libraries, what cilium's
//! agent runs, clang among it, and the tools of conformance tests. mmdebstrap downloads and unpacks the packages without installing them,
//! so it changes nothing on this machine.

use super::build::create_empty_folder;
use super::key::{CacheKey, list_files};
use crate::tool;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The older of the machine images' releases: hosts of both and pods agree on iptables' form.
const SUITE: &str = "bookworm";

/// A set of packages; their dependencies come with them. Each has busybox, which lists what it can do.
pub const PACKAGES: &[&str] = &[
    "busybox-static",
    "conntrack",
    "e2fsprogs",
    "iptables",
    "nftables",
    "runc",
];

/// What cilium's agent and its init containers run. The agent compiles its datapath; it asks for clang 18.1 or newer.
pub const CILIUM_PACKAGES: &[&str] = &[
    "bash",
    "busybox-static",
    "clang-19",
    "findutils",
    "ipset",
    "iptables",
    "kmod",
    "mount",
    "util-linux",
];

/// What the images of conformance tests have. busybox is not the static one: only with the C library beside it, it resolves names.
pub const CONFORMANCE_PACKAGES: &[&str] = &[
    "bash",
    "bind9-dnsutils",
    "busybox",
    "curl",
    "hostname",
    "iproute2",
    "libc-bin",
    "netcat-openbsd",
    "nginx",
    "util-linux",
];

const APPLETS: &str = "applets";
const CONTENT: &str = "content";

/// Debian packages unpacked in the cache.
#[derive(Debug, Clone)]
pub struct Debian {
    pub root: PathBuf,
    /// Names under which busybox does something.
    pub applets: Vec<String>,
    /// Of all files: another package version is another content.
    pub key: String,
}

/// Where they are, or would be, in the cache.
#[derive(Debug, Clone)]
pub struct DebianSlot {
    packages: &'static [&'static str],
    folder: PathBuf,
}

impl DebianSlot {
    pub fn new(packages: &'static [&'static str], cache: &Path) -> Self {
        let mut key = CacheKey::default();
        key.add_part(SUITE);
        for package in packages {
            key.add_part(package);
        }
        Self {
            packages,
            folder: cache.join(format!("debian-{}", key.to_hex())),
        }
    }

    pub fn folder_name(&self) -> String {
        self.folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    pub fn find_packages(&self) -> Result<Option<Debian>> {
        if !self.folder.exists() {
            return Ok(None);
        }
        let read = |name: &str| {
            let path = self.folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        Ok(Some(Debian {
            root: self.folder.join("root"),
            applets: read(APPLETS)?.lines().map(str::to_owned).collect(),
            key: read(CONTENT)?,
        }))
    }

    /// Downloads and unpacks. The caller holds the cache's lock.
    pub fn fetch_packages(&self, lock: &fs::File) -> Result<Debian> {
        let part = self.folder.with_extension("part");
        create_empty_folder(&part)?;
        let root = part.join("root");
        tool::run(
            Command::new("mmdebstrap")
                .args([
                    "--variant=extract",
                    "--format=directory",
                    "--components=main",
                    "--architectures=amd64",
                ])
                .args(["--aptopt=APT::Install-Recommends \"false\"", "--quiet"])
                .arg(format!("--include={}", self.packages.join(",")))
                .args([SUITE.as_ref(), root.as_os_str()])
                // Shares the lock for the case that this program is killed and leaves it running.
                .stdin(Stdio::from(lock.try_clone()?)),
        )?;
        let listed = tool::run(Command::new(root.join("bin/busybox")).arg("--list"))?;
        let applets: Vec<_> = listed.lines().filter(|name| *name != "busybox").collect();
        fs::write(part.join(APPLETS), applets.join("\n")).context("writing busybox' applets")?;
        let mut key = CacheKey::default();
        for file in list_files(&root)? {
            let name = file.strip_prefix(&root).unwrap_or(&file);
            if is_served(&name.to_string_lossy()) && file.is_file() && !file.is_symlink() {
                key.add_part(name.as_os_str().as_encoded_bytes())
                    .add_part(fs::read(&file)?);
            }
        }
        fs::write(part.join(CONTENT), key.to_hex()).context("writing the packages' hash")?;
        fs::rename(&part, &self.folder)
            .with_context(|| format!("naming {}", self.folder.display()))?;
        self.find_packages()?
            .context("Debian's packages are gone again")
    }
}

/// Files that programs need to run: no manuals, no package system, no devices.
pub fn is_served(path: &str) -> bool {
    let needed = [
        "bin/",
        "sbin/",
        "lib/",
        "lib64/",
        "usr/bin/",
        "usr/sbin/",
        "usr/lib/",
    ];
    let settings = ["etc/protocols", "etc/services", "etc/ethertypes"];
    let unused = ["/gconv/", "usr/lib/ssl", "lib/systemd/", "dpkg-", "debconf"];
    (needed.iter().any(|start| path.starts_with(start)) || settings.contains(&path))
        && !unused.iter().any(|part| path.contains(part))
}
