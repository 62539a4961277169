//! Errors of building the desired state of an instance.

/// Why the desired state could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files of the instance could not be made.
    #[error("could not make the files of the instance")]
    Node(#[from] crate::config::Error),
    /// A keyset lacks a part.
    #[error("could not use a keyset")]
    Pki(#[from] crate::pki::Error),
    /// A download has no hash, because the NodeConfig was rendered offline. It can be shown but not installed.
    #[error("the sha256 of {0} is unknown, because this NodeConfig was rendered offline")]
    NoHash(String),
    /// NodeConfig names a download for which this release has no target path.
    #[error("NodeConfig has an asset {0} for which this release has no target path")]
    UnknownAsset(String),
    /// NodeConfig has no protokube for this architecture.
    #[error("NodeConfig has no protokube for this architecture")]
    NoProtokube,
    /// A secret of the state store was requested from a keyset.
    #[error("secret {0} is not part of a keyset")]
    NotInKeyset(String),
    /// An object could not be written as JSON for its digest.
    #[error("could not write the desired state as JSON")]
    Json(#[from] serde_json::Error),
}
