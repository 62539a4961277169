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
    Yaml(#[from] crate::api::write::Error),
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
}
