//! What the lab needs of the machine it runs on, installed when missing.

use crate::tool;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program, and the package of Debian and Ubuntu that has it.
const NEEDED: [(&str, &str); 9] = [
    ("mmdebstrap", "mmdebstrap"),
    ("systemd-nspawn", "systemd-container"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("losetup", "mount"),
    ("setsid", "util-linux"),
    ("nsenter", "util-linux"),
    ("python3", "python3"),
];

/// Makes sure that every program the lab runs is there; installs with apt-get as root, else says what to install.
pub fn ready() -> Result<()> {
    let mut missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !installed(program))
        .map(|(_, package)| *package)
        .collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted = format!("apt-get install {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() || !installed("apt-get") {
        bail!("the lab needs programs that are not installed: {wanted}");
    }
    apt(&["update", "-q"]).with_context(|| format!("before {wanted}"))?;
    let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
    arguments.extend(missing);
    apt(&arguments)
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    tool::run(&mut command).map(drop)
}

fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(Path::new).map(Path::to_owned);
    env::split_paths(&path)
        .chain(usual)
        .any(|folder| folder.join(program).is_file())
}
