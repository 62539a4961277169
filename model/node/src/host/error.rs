//! What can go wrong when the desired state of a machine is made.

/// Why there is no desired state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Files could not be made.
    #[error("could not make the machine's files")]
    Node(#[from] crate::config::Error),
    /// A keyset lacks what is asked of it.
    #[error("could not use a keyset")]
    Pki(#[from] crate::pki::Error),
    /// A download without a hash is of an offline render: it can be shown, and not be installed.
    #[error("the sha256 of {0} is not known: this NodeConfig was rendered offline")]
    NoHash(String),
    /// NodeConfig names a download that this release knows no place for.
    #[error("NodeConfig has an asset {0}, and this release does not know where it goes")]
    UnknownAsset(String),
    /// NodeConfig names no protokube for this architecture.
    #[error("NodeConfig names no protokube")]
    NoProtokube,
    /// What is asked for is a secret of the store's, which no keyset has.
    #[error("secret {0} is not part of a keyset")]
    NotInKeyset(String),
    /// The desired state could not be written down.
    #[error("could not write the desired state as JSON")]
    Json(#[from] serde_json::Error),
}
