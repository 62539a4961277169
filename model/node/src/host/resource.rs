//! The closed set of things that make a machine a node.

use super::{
    Certificate, Directory, Download, HostsBlock, KernelModule, KeysetFile, Link, Mount, Packages,
    Propagation, Sysctl, Tools, Unit,
};
use crate::config::File;
use engine::{Id, Resource};
use serde::Serialize;

/// One thing on a machine, and what must be there before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostResource {
    /// What it is.
    #[serde(flatten)]
    pub thing: Thing,
    /// Ids of what it needs, sorted.
    pub needs: Vec<Id>,
}

/// What can be on a machine. Nothing in here is a secret: keys are known by where they lie and whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Thing {
    /// A certificate and its key.
    Certificate(Certificate),
    /// A folder.
    Directory(Directory),
    /// A download in its places.
    Download(Download),
    /// A file.
    File(File),
    /// Lines in `/etc/hosts`.
    HostsBlock(HostsBlock),
    /// A module of the kernel.
    KernelModule(KernelModule),
    /// A part of an authority.
    KeysetFile(KeysetFile),
    /// A symbolic link.
    Link(Link),
    /// A file system on a volume.
    Mount(Mount),
    /// Packages of the distribution.
    Packages(Packages),
    /// A folder whose mounts pods see.
    Propagation(Propagation),
    /// A parameter of the running kernel.
    Sysctl(Sysctl),
    /// A folder of tools.
    Tools(Tools),
    /// A unit of systemd.
    Unit(Unit),
}

impl HostResource {
    /// A thing that needs nothing.
    pub fn new(thing: Thing) -> Self {
        Self {
            thing,
            needs: Vec::new(),
        }
    }
}

impl Thing {
    /// Its id: `file//etc/crictl.yaml`, `unit/kubelet.service`.
    pub fn id(&self) -> Id {
        let (kind, name) = match self {
            Self::Certificate(certificate) => ("certificate", certificate.path()),
            Self::Directory(directory) => ("directory", directory.path.as_str()),
            Self::Download(download) => ("download", download.name.as_str()),
            Self::File(file) => ("file", file.path.as_str()),
            Self::HostsBlock(block) => ("hosts_block", block.path.as_str()),
            Self::KernelModule(module) => ("kernel_module", module.name.as_str()),
            Self::KeysetFile(file) => ("keyset_file", file.path.as_str()),
            Self::Link(link) => ("link", link.path.as_str()),
            Self::Mount(mount) => ("mount", mount.path.as_str()),
            Self::Packages(packages) => ("packages", packages.name.as_str()),
            Self::Propagation(propagation) => ("propagation", propagation.path.as_str()),
            Self::Sysctl(sysctl) => ("sysctl", sysctl.key.as_str()),
            Self::Tools(tools) => ("tools", tools.path.as_str()),
            Self::Unit(unit) => ("unit", unit.name.as_str()),
        };
        Id::new(kind, name)
    }

    /// Whether a unit that needs it has to be started again when it changes. The kernel's parameters hold for whatever
    /// runs already, and units follow each other by their own rules.
    pub fn is_read_at_start(&self) -> bool {
        !matches!(
            self,
            Self::KernelModule(_) | Self::Sysctl(_) | Self::Unit(_)
        )
    }

    /// The place in `/etc` of a unit's file.
    pub fn unit_path(name: &str) -> String {
        format!("/etc/systemd/system/{name}")
    }

    /// Where it lies, for things that lie somewhere; who has several places is asked for the one that names it.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Certificate(certificate) => Some(certificate.path()),
            Self::Directory(directory) => Some(&directory.path),
            Self::File(file) => Some(&file.path),
            Self::KeysetFile(file) => Some(&file.path),
            Self::Link(link) => Some(&link.path),
            Self::Mount(mount) => Some(&mount.path),
            Self::Propagation(propagation) => Some(&propagation.path),
            Self::Tools(tools) => Some(&tools.path),
            Self::Download(_)
            | Self::HostsBlock(_)
            | Self::KernelModule(_)
            | Self::Packages(_)
            | Self::Sysctl(_)
            | Self::Unit(_) => None,
        }
    }
}

impl Resource for HostResource {
    fn id(&self) -> Id {
        self.thing.id()
    }

    fn needs(&self) -> Vec<Id> {
        self.needs.clone()
    }

    /// A host can always be changed in place.
    fn refuses(&self, _have: &Self) -> Option<String> {
        None
    }

    /// Everything is known before planning.
    fn resolved(&self, _attr: &dyn Fn(&Id, &str) -> Option<String>) -> Self {
        self.clone()
    }

    /// Paths and names are unique on a machine.
    fn needs_journal(&self) -> bool {
        false
    }
}
