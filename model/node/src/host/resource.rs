//! The kinds of objects that make an instance a node.

use super::{
    Certificate, Directory, Download, HostsBlock, Image, KernelModule, KeysetFile, Link, Mount,
    Packages, Propagation, Sysctl, Tools, Unit,
};
use crate::config::File;
use engine::{Id, Resource};
use serde::Serialize;

/// An object on an instance and its dependencies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostResource {
    #[serde(flatten)]
    pub thing: HostObject,
    /// Ids of the objects that must exist before it, sorted.
    pub needs: Vec<Id>,
}

/// An object on an instance. It contains no secret: keys are identified by path and owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostObject {
    /// A certificate and its key; see [`Certificate`].
    Certificate(Certificate),
    /// A folder; see [`Directory`].
    Directory(Directory),
    /// An installed download; see [`Download`].
    Download(Download),
    /// A file; see [`File`].
    File(File),
    /// Lines in `/etc/hosts`.
    HostsBlock(HostsBlock),
    /// A container image; see [`Image`].
    Image(Image),
    KernelModule(KernelModule),
    /// A file with a part of a keyset.
    KeysetFile(KeysetFile),
    Link(Link),
    /// A file system on a volume.
    Mount(Mount),
    /// Packages of the distribution.
    Packages(Packages),
    /// A folder with shared mount propagation.
    Propagation(Propagation),
    /// A parameter of the running kernel.
    Sysctl(Sysctl),
    /// A folder of tools.
    Tools(Tools),
    Unit(Unit),
}

impl HostResource {
    /// An object without dependencies.
    pub fn new(thing: HostObject) -> Self {
        Self {
            thing,
            needs: Vec::new(),
        }
    }
}

impl HostObject {
    /// Id of the object: `file//etc/crictl.yaml`, `unit/kubelet.service`.
    pub fn id(&self) -> Id {
        let (kind, name) = match self {
            Self::Certificate(certificate) => ("certificate", certificate.path()),
            Self::Directory(directory) => ("directory", directory.path.as_str()),
            Self::Download(download) => ("download", download.name.as_str()),
            Self::File(file) => ("file", file.path.as_str()),
            Self::HostsBlock(block) => ("hosts_block", block.path.as_str()),
            Self::Image(image) => ("image", image.name.as_str()),
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

    /// True if a unit that depends on the object must be restarted when it changes. Kernel parameters apply to running processes, units
    /// follow each other by their own rules, and containers keep the image that they were started from.
    pub fn is_read_at_start(&self) -> bool {
        !matches!(
            self,
            Self::Image(_) | Self::KernelModule(_) | Self::Sysctl(_) | Self::Unit(_)
        )
    }

    /// Path of a unit's file.
    pub fn unit_path(name: &str) -> String {
        format!("/etc/systemd/system/{name}")
    }

    /// Path of the object, if it has one; of several paths the one that identifies it.
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
            | Self::Image(_)
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

    /// Objects on an instance can always be changed in place.
    fn refuses(&self, _have: &Self) -> Option<String> {
        None
    }

    /// Nothing has to be resolved during the apply.
    fn resolved(&self, _attr: &dyn Fn(&Id, &str) -> Option<String>) -> Self {
        self.clone()
    }

    /// Paths and names are unique on an instance.
    fn needs_journal(&self) -> bool {
        false
    }
}
