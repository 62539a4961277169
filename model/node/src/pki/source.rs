//! Where new keys and the time come from. The only place of the model that draws on randomness.

use super::Error;
use rcgen::KeyPair;
use time::OffsetDateTime;

/// What kind of key a keyset gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256: small and fast; ours.
    #[default]
    EcdsaP256,
    /// RSA with 2048 bits: kOps'.
    Rsa2048,
}

/// New keys, and the time at which they are made.
pub trait KeySource {
    /// The time of the certificates.
    fn now(&self) -> OffsetDateTime;
    /// A new key pair.
    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<KeyPair, Error>;
}

/// Keys from the system's random numbers: the one documented exception to "no randomness in the model",
/// because keys are generated inside the cryptography library. The time is still the caller's.
#[derive(Clone, Copy, Debug)]
pub struct SystemKeys {
    now: OffsetDateTime,
}

impl SystemKeys {
    /// Keys made at that time.
    pub fn at(now: OffsetDateTime) -> Self {
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
