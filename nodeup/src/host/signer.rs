//! Who signs this machine's certificates: the authorities themselves on control planes, the control plane for workers.

use node::bootstrap;
use node::pki::{Issued, Keyset};
use node::secret::Secret;
use std::collections::BTreeMap;

/// Where certificates come from.
#[derive(Debug, Default)]
pub struct Signer {
    /// Control planes: authorities with their keys, by name.
    pub keysets: BTreeMap<String, Keyset>,
    /// Secrets of the store by name, such as `encryptionconfig`: the text that goes into the file. A worker has them from
    /// joining: one that did not have to join in this run has none, and keeps what it has.
    pub secrets: BTreeMap<String, Secret>,
    /// Workers: what joining gave. Empty if the machine did not have to join.
    pub joined: BTreeMap<bootstrap::Certificate, Issued>,
}
