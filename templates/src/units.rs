//! systemd units, environment files and logrotate's configuration.

use crate::Template;
use serde::Serialize;

/// `nodeup.service`: runs at every boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeupService {
    /// Folder of nodeup and its configuration.
    pub directory: String,
}

/// `nodeup-certificates.service`: renews certificates while the instance runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificatesService {
    /// Folder of nodeup and its configuration.
    pub directory: String,
}

/// `nodeup-certificates.timer`: starts `nodeup-certificates.service`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificatesTimer {}

/// `protokube.service`: runs on control planes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProtokubeService {
    /// Folder of protokube and its configuration.
    pub directory: String,
}

/// `kctl-api-proxy.service`: the proxy of the API on loopback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiProxyService {
    /// Folder of nodeup and its configuration.
    pub directory: String,
}

/// `containerd.service`: the container runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerdService {
    /// Path of the program containerd.
    pub binary: String,
    /// Path of the configuration file.
    pub config: String,
}

/// `kubelet.service`: the node agent of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeletService {
    /// Path of the program kubelet.
    pub binary: String,
}

/// A unit for a user's hook: either lines of a `[Service]` section or a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookService {
    /// Name of the hook.
    pub name: String,
    /// Units in `Requires=`.
    pub requires: Vec<String>,
    /// Units in `Before=`.
    pub before: Vec<String>,
    /// True if the hook runs a container; otherwise `service` is used.
    pub in_container: bool,
    /// Image of the container.
    pub image: String,
    /// Name of the container.
    pub container: String,
    /// `NAME=value`, quoted for systemd.
    pub environment: Vec<String>,
    /// Command line, each word quoted for systemd.
    pub command: Vec<String>,
    /// Lines of the `[Service]` section, as in the spec.
    pub service: String,
}

/// `kctl-images.service`: pulls the images that pods need first, while kubelet and protokube start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImagePulls {
    /// Images, each quoted for systemd, in the order in which they are pulled.
    pub images: Vec<String>,
}

/// `cni-iptables-setup.service`: masquerades traffic of pods, with kubenet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MasqueradeService {
    /// Destinations for which pods keep their own source addresses.
    pub non_masquerade_cidr: String,
}

/// `kctl-vpc-interfaces.service`: keeps the host's network services away from interfaces that the network plugin attaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VpcInterfacesService {}

/// A mount unit for a volume of `volumeMounts`, for boots after the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MountUnit {
    /// Device, with `%` doubled.
    pub device: String,
    /// Mount point, with `%` doubled.
    pub path: String,
    pub filesystem: String,
    /// Mount options, separated by commas, with `%` doubled; `defaults` if there are none.
    pub options: String,
}

/// A file of `NAME="value"` lines that units read as `EnvironmentFile=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Variables, one per line.
    pub variables: Vec<Variable>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Value, not quoted.
    pub value: String,
}

/// A logrotate configuration for one log file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logrotate {
    /// Path of the log file.
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

impl Template for ApiProxyService {
    const NAME: &'static str = "units/api_proxy.service.hbs";
    const SOURCE: &'static str = include_str!("../units/api_proxy.service.hbs");
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

impl Template for ImagePulls {
    const NAME: &'static str = "units/image_pulls.service.hbs";
    const SOURCE: &'static str = include_str!("../units/image_pulls.service.hbs");
}

impl Template for MasqueradeService {
    const NAME: &'static str = "units/masquerade.service.hbs";
    const SOURCE: &'static str = include_str!("../units/masquerade.service.hbs");
}

impl Template for VpcInterfacesService {
    const NAME: &'static str = "units/vpc_interfaces.service.hbs";
    const SOURCE: &'static str = include_str!("../units/vpc_interfaces.service.hbs");
}

impl Template for MountUnit {
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
