//! Errors of keysets and certificates.

/// Why a keyset could not be created, parsed or used. Never contains key material.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The keyset's file is not a Keyset object.
    #[error("keyset {name} is not a Keyset object")]
    NotAKeyset {
        /// Name of the keyset.
        name: String,
        /// Error of the YAML parser, without snippets, which would show key material.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item's certificate or key is not base64 of PEM text.
    #[error("keyset {name}, key {id}: {what} is not base64 of PEM text")]
    NotPem {
        /// Name of the keyset.
        name: String,
        /// Id of the item.
        id: String,
        /// `publicMaterial` or `privateMaterial`.
        what: &'static str,
    },
    /// The keyset's primary key does not exist, or no key can sign.
    #[error("keyset {0} has no primary key")]
    NoPrimary(String),
    /// The keyset has no private half of its primary key.
    #[error("keyset {0} has no private key to sign with")]
    NoPrivateKey(String),
    /// The cryptography library could not parse the certificate or the private key.
    #[error("keyset {name} has a primary key that cannot sign")]
    Unusable {
        /// Name of the keyset.
        name: String,
        /// Error of the library.
        #[source]
        source: rcgen::Error,
    },
    /// kube-apiserver does not sign tokens with such a key.
    #[error(
        "keyset {name}, key {id}: the certificate has neither an RSA key nor one of the curves P-256, P-384 and P-521"
    )]
    NotForTokens {
        /// Name of the keyset.
        name: String,
        /// Id of the item.
        id: String,
    },
    /// A request names another subject.
    #[error("the request is not for a certificate of {wanted}")]
    OtherSubject { wanted: String },
    /// A name is not valid in a certificate.
    #[error("{0:?} is not a valid name in a certificate")]
    BadName(String),
    /// A key could not be generated, or a certificate could not be signed.
    #[error("could not create a key or certificate")]
    Crypto(#[from] rcgen::Error),
    /// The time cannot be represented in a certificate.
    #[error("the time is out of range for a certificate")]
    Time,
    /// A file could not be written as YAML.
    #[error("could not write YAML")]
    Write(#[from] crate::yaml::Error),
}
