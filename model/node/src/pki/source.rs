//! Sources of keys and time. The only module of the model that uses randomness.

use super::Error;
use rcgen::KeyPair;
use time::OffsetDateTime;

/// Algorithm of a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256: small and fast, kctl's default.
    #[default]
    EcdsaP256,
    /// RSA with 2048 bits, as in kOps.
    Rsa2048,
}

/// Creates keys and provides the time of certificates.
pub trait KeySource {
    fn now(&self) -> OffsetDateTime;
    /// Creates a key pair.
    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<KeyPair, Error>;
}

/// Creates keys with the system's random numbers. This is the only exception to "no randomness in the model", because the
/// cryptography library generates keys itself. The caller provides the time.
#[derive(Clone, Copy, Debug)]
pub struct SystemKeys {
    now: OffsetDateTime,
}

impl SystemKeys {
    /// A source whose certificates are issued at `now`.
    pub fn issuing_at(now: OffsetDateTime) -> Self {
        Self { now }
    }
}

impl KeySource for SystemKeys {
    fn now(&self) -> OffsetDateTime {
        self.now
    }

    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<KeyPair, Error> {
        let algorithm = match algorithm {
            KeyAlgorithm::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyAlgorithm::Rsa2048 => &rcgen::PKCS_RSA_SHA256,
        };
        Ok(KeyPair::generate_for(algorithm)?)
    }
}
