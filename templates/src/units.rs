//! systemd units, environment files and logrotate's configuration.

use crate::Template;
use serde::Serialize;

/// `nodeup.service`: runs at every boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeupService {
    /// Where nodeup and its configuration lie.
    pub directory: String,
}

/// `nodeup-certificates.service`: renews certificates while a machine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificatesService {
    /// Where nodeup and its configuration lie.
    pub directory: String,
}

/// `nodeup-certificates.timer`, which starts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificatesTimer {}

/// `protokube.service`, on control planes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProtokubeService {
    /// Where protokube and its configuration lie.
    pub directory: String,
}

/// `containerd.service`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerdService {
    /// Path of containerd.
    pub binary: String,
    /// Path of its configuration.
    pub config: String,
}

/// `kubelet.service`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeletService {
    /// Path of kubelet.
    pub binary: String,
}

/// A hook of the user's as a unit: lines for its `[Service]` section, or a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookService {
    /// Its name.
    pub name: String,
    /// Units it requires.
    pub requires: Vec<String>,
    /// Units that start after it.
    pub before: Vec<String>,
    /// It runs a container; else `service` is what it does.
    pub in_container: bool,
    /// The container's image.
    pub image: String,
    /// The container's name.
    pub container: String,
    /// `NAME=value`, quoted for systemd.
    pub environment: Vec<String>,
    /// Words of the command, quoted for systemd.
    pub command: Vec<String>,
    /// Lines of the `[Service]` section as the user wrote them.
    pub service: String,
}

/// `cni-iptables-setup.service`, with kubenet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MasqueradeService {
    /// What keeps the pods' own addresses.
    pub non_masquerade_cidr: String,
}

/// A unit that mounts a volume when the machine starts again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeMount {
    /// The volume's device, with `%` doubled.
    pub device: String,
    /// Where it is mounted, with `%` doubled.
    pub path: String,
    /// Type of its file system.
    pub filesystem: String,
    /// Options, separated by commas, with `%` doubled; `defaults` where there are none.
    pub options: String,
}

/// A file of `NAME="value"` lines that units read as `EnvironmentFile=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Its lines.
    pub variables: Vec<Variable>,
}

/// A line of an environment file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// How one log file is rotated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logrotate {
    /// The log's path.
    pub path: String,
}

impl Template for NodeupService {
    const NAME: &'static str = "units/nodeup.service.hbs";
    const SOURCE: &'static str = include_str!("../units/nodeup.service.hbs");
}

impl Template for CertificatesService {
    const NAME: &'static str = "units/certificates.service.hbs";
    const SOURCE: &'static str = include_str!("../units/certificates.service.hbs");
}

impl Template for CertificatesTimer {
    const NAME: &'static str = "units/certificates.timer.hbs";
    const SOURCE: &'static str = include_str!("../units/certificates.timer.hbs");
}

impl Template for ProtokubeService {
    const NAME: &'static str = "units/protokube.service.hbs";
    const SOURCE: &'static str = include_str!("../units/protokube.service.hbs");
}

impl Template for ContainerdService {
    const NAME: &'static str = "units/containerd.service.hbs";
    const SOURCE: &'static str = include_str!("../units/containerd.service.hbs");
}

impl Template for KubeletService {
    const NAME: &'static str = "units/kubelet.service.hbs";
    const SOURCE: &'static str = include_str!("../units/kubelet.service.hbs");
}

impl Template for HookService {
    const NAME: &'static str = "units/hook.service.hbs";
    const SOURCE: &'static str = include_str!("../units/hook.service.hbs");
}

impl Template for MasqueradeService {
    const NAME: &'static str = "units/masquerade.service.hbs";
    const SOURCE: &'static str = include_str!("../units/masquerade.service.hbs");
}

impl Template for VolumeMount {
    const NAME: &'static str = "units/volume.mount.hbs";
    const SOURCE: &'static str = include_str!("../units/volume.mount.hbs");
}

impl Template for Environment {
    const NAME: &'static str = "units/environment.hbs";
    const SOURCE: &'static str = include_str!("../units/environment.hbs");
}

impl Template for Logrotate {
    const NAME: &'static str = "units/logrotate.hbs";
    const SOURCE: &'static str = include_str!("../units/logrotate.hbs");
}
