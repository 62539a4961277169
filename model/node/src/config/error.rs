//! What can go wrong when a machine's configuration is made.

/// Why user data or NodeConfig could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A template could not be rendered.
    #[error("instance group {group}")]
    Template {
        /// Of which group.
        group: String,
        /// Why.
        #[source]
        source: templates::Error,
    },
    /// A value could not be written as YAML.
    #[error("could not write YAML")]
    Yaml(#[from] crate::yaml::Error),
    /// A kubeconfig could not be made.
    #[error("could not make a kubeconfig")]
    Pki(#[from] crate::pki::Error),
    /// No binary of ours for the group's architecture.
    #[error("instance group {group} needs {name} for {arch}, and there is none")]
    NoAgent {
        /// Of which group.
        group: String,
        /// `nodeup` or `protokube`.
        name: &'static str,
        /// `amd64`, `arm64`.
        arch: &'static str,
    },
    /// Neither DNS nor a load balancer says where workers find the control plane.
    #[error(
        "workers cannot find the control plane: the cluster has neither DNS nor a load balancer"
    )]
    NoBootstrapAddress,
    /// User data is larger than EC2 takes.
    #[error(
        "user data of instance group {group} has {size} bytes, EC2 takes 16384: shorten additionalUserData"
    )]
    TooLarge {
        /// Of which group.
        group: String,
        /// Bytes.
        size: usize,
    },
    /// The completed spec has no such group.
    #[error("the spec has no instance group {0}")]
    NoGroup(String),
    /// A configuration has another sha256 than it should.
    #[error("NodeConfig has sha256 {found}, user data names {expected}")]
    WrongHash {
        /// What user data names.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A configuration is of a release that is too new or too old.
    #[error("{what} has format {found}, this release knows {known} and the one before")]
    Format {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// What it has.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// A configuration is longer than any that was written.
    #[error("{what} has {bytes} bytes, more than any that kctl writes: is it the right file?")]
    TooLong {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// How many it has.
        bytes: usize,
    },
    /// A configuration could not be read.
    #[error("could not read {what}")]
    Unreadable {
        /// `BootConfig`, `NodeConfig`.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
