//! Sources of the instance's certificates and secrets: keysets on control planes, the join reply on workers.

use node::bootstrap;
use node::pki::{IssuedCertificate, Keyset};
use node::secret::Secret;
use std::collections::BTreeMap;

/// Sources of certificates and secrets.
#[derive(Debug, Default)]
pub struct Signer {
    /// Control planes only: keysets with private keys, by name.
    pub keysets: BTreeMap<String, Keyset>,
    /// Secrets of the state store by name, such as `encryptionconfig`. A worker gets them by joining; if it did not join in this run,
    /// this is empty and its files stay unchanged.
    pub secrets: BTreeMap<String, Secret>,
    /// Workers only: certificates from joining; empty if the instance did not join in this run.
    pub joined: BTreeMap<bootstrap::CertificateKind, IssuedCertificate>,
}
