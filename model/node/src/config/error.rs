//! Errors of making and reading configurations of instances.

/// Why BootConfig, NodeConfig, user data or files could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A template could not be rendered.
    #[error("could not render a file for instance group {group}")]
    Template {
        /// Name of the group.
        group: String,
        /// Error of the template.
        #[source]
        source: templates::Error,
    },
    /// containerd's settings contradict each other.
    #[error("could not make containerd's configuration for instance group {group}")]
    Containerd {
        /// Name of the group.
        group: String,
        /// What is wrong.
        #[source]
        source: crate::values::Refusal,
    },
    /// `sysctlParameters` cannot be read.
    #[error("could not read the kernel parameters of instance group {group}")]
    Parameters {
        /// Name of the group.
        group: String,
        /// What is wrong.
        #[source]
        source: crate::values::Refusal,
    },
    /// Two objects of an instance have one path.
    #[error("two objects of instances of group {group} have one path")]
    Paths {
        /// Name of the group.
        group: String,
        /// Which, and where.
        #[source]
        source: crate::values::Refusal,
    },
    /// The instance has the Amazon VPC CNI, which must not share the primary network interface with it.
    #[error(
        "the primary network interface was not found: no interface with a device has the address that the metadata service names"
    )]
    PrimaryInterface,
    /// The addons could not be built whose images instances of a warm pool pull.
    #[error("could not find the images of instance group {group}'s warm pool")]
    Images {
        /// Name of the group.
        group: String,
        /// Error of the addon.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value could not be written as YAML.
    #[error("could not write YAML")]
    Yaml(#[from] crate::yaml::Error),
    /// A kubeconfig could not be made.
    #[error("could not make a kubeconfig")]
    Pki(#[from] crate::pki::Error),
    /// kctl has no agent for the group's architecture.
    #[error("instance group {group} needs {name} for {arch}, which this kctl does not have")]
    NoAgent {
        /// Name of the group.
        group: String,
        /// `nodeup` or `protokube`.
        name: &'static str,
        /// `amd64`, `arm64`.
        arch: &'static str,
    },
    /// The cluster has neither DNS nor a load balancer by which workers could find the control plane.
    #[error(
        "workers cannot find the control plane: the cluster has neither DNS nor a load balancer"
    )]
    NoBootstrapAddress,
    /// User data exceeds EC2's limit.
    #[error(
        "user data of instance group {group} has {size} bytes, EC2 accepts 16384: shorten additionalUserData"
    )]
    TooLarge {
        /// Name of the group.
        group: String,
        /// Size in bytes.
        size: usize,
    },
    /// The completed spec has no such group.
    #[error("the spec has no instance group {0}")]
    NoGroup(String),
    /// The text of a NodeConfig does not have the expected hash.
    #[error("NodeConfig has sha256 {found}, but user data names {expected}")]
    WrongHash {
        /// Hash in user data.
        expected: String,
        /// Hash of the text.
        found: String,
    },
    /// A configuration was written by a release that is too new or too old.
    #[error("{what} has format {found}, but this release reads only {known} and the one before")]
    Format {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// Format of the text.
        found: u32,
        /// Newest known format.
        known: u32,
    },
    /// A text is longer than any configuration that kctl writes.
    #[error("{what} has {bytes} bytes, more than kctl ever writes: is it the right file?")]
    TooLong {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// Length of the text.
        bytes: usize,
    },
    /// A configuration could not be read.
    #[error("could not read {what}")]
    Unreadable {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// Error of the YAML parser.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
