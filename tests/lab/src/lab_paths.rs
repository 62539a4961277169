//! Where a lab keeps its things: every path, namespace and cgroup name of a lab follows from its name.

use std::path::{Path, PathBuf};

/// Cgroups of all labs lie under this one, in every hierarchy.
const CGROUP: &str = "kctl-lab";

/// One lab's names. Two labs of different names share nothing but the caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabPaths {
    name: String,
    run: PathBuf,
    data: PathBuf,
}

/// A name that would not do as a file, namespace and cgroup name.
#[derive(Debug, thiserror::Error)]
#[error("a lab's name is 1 to 12 of a-z, 0-9 and -, beginning with a letter, not {0:?}")]
pub struct BadName(String);

impl LabPaths {
    /// The lab called `name`: volatile state in `/run/kctl-lab/NAME`, disks in `/var/lib/kctl-lab/NAME`.
    pub fn from_name(name: &str) -> Result<Self, BadName> {
        let letter = |c: char| c.is_ascii_lowercase();
        let plain = |c: char| letter(c) || c.is_ascii_digit() || c == '-';
        if name.len() > 12 || !name.starts_with(letter) || !name.chars().all(plain) {
            return Err(BadName(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            run: Path::new("/run/kctl-lab").join(name),
            data: Path::new("/var/lib/kctl-lab").join(name),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Volatile: ledger, sockets, pids, roots, logs.
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// Disks of hosts and volumes; on a file system that can be an overlay's upper layer.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }

    /// The network namespace that is the VPCs' router and holds the lab's services.
    pub fn router_netns(&self) -> String {
        format!("kctl-{}", self.name)
    }

    /// The network namespace of an instance, `i-0123...`.
    pub fn host_netns(&self, instance: &str) -> String {
        format!("kctl-{}-{instance}", self.name)
    }

    /// The lab's cgroup below a hierarchy's root.
    pub fn cgroup_path(&self) -> PathBuf {
        Path::new(CGROUP).join(&self.name)
    }

    /// The cgroup of one instance, below the lab's.
    pub fn host_cgroup(&self, instance: &str) -> PathBuf {
        self.cgroup_path().join(instance)
    }

    pub fn ledger_file(&self) -> PathBuf {
        self.run.join("ledger")
    }
}
