//! The SSH key pair that instances are launched with.

use super::listing::{ListingPosition, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// A key pair. Its name carries the key's fingerprint, so another key is another key pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPair {
    /// `kubernetes.NAME-aa:bb:...` (MD5 of the public key, as kOps computes it).
    pub key_name: String,
    /// OpenSSH public key, type and base64 only: AWS does not give the comment back reliably.
    pub public_key: String,
    pub tags: Tags,
}

impl Kind for KeyPair {
    const TYPE: &'static str = "key_pair";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Instances, 0);

    fn name(&self) -> String {
        self.key_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}
