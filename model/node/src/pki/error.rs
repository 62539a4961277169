//! What can go wrong with keysets and certificates.

/// Why a keyset could not be made, read or used. Never contains key material.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The keyset's file is not a Keyset object.
    #[error("keyset {name} is not a Keyset object")]
    NotAKeyset {
        /// Of which keyset.
        name: String,
        /// What the YAML reader said. Snippets are off: they would show key material.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item's certificate or key is not base64 of PEM text.
    #[error("keyset {name}, key {id}: {what} is not base64 of PEM text")]
    NotPem {
        /// Of which keyset.
        name: String,
        /// Id of the item.
        id: String,
        /// `publicMaterial` or `privateMaterial`.
        what: &'static str,
    },
    /// The keyset names a primary key that it does not have, or has no usable key at all.
    #[error("keyset {0} has no primary key")]
    NoPrimary(String),
    /// The primary key's private half is not there.
    #[error("keyset {0} has no private key to sign with")]
    NoPrivateKey(String),
    /// The certificate or private key could not be understood by the cryptography library.
    #[error("keyset {name} has a primary key that cannot sign")]
    Unusable {
        /// Of which keyset.
        name: String,
        /// What the library said.
        #[source]
        source: rcgen::Error,
    },
    /// A request asks for a certificate of somebody else.
    #[error("the request does not ask for a certificate of {wanted}")]
    OtherSubject {
        /// Who may ask.
        wanted: String,
    },
    /// A name cannot stand in a certificate.
    #[error("{0:?} cannot stand in a certificate as a name")]
    BadName(String),
    /// A key could not be generated or a certificate not be signed.
    #[error("could not make a key or certificate")]
    Crypto(#[from] rcgen::Error),
    /// The time is outside what a certificate can say.
    #[error("the time is out of range for a certificate")]
    Time,
    /// A file could not be written as YAML.
    #[error("could not write YAML")]
    Write(#[from] crate::yaml::Error),
}
