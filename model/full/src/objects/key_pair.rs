//! The SSH key pair, if the key is ours.

use crate::{FullSpec, SshKey, tags};
use cloud::{Cloud, KeyPair};

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    match &full.ssh_key {
        Some(SshKey::Ours { name, public_key }) => vec![
            KeyPair {
                key_name: name.clone(),
                public_key: public_key.clone(),
                tags: tags(full, &full.name),
            }
            .into(),
        ],
        Some(SshKey::Existing(_)) | None => Vec::new(),
    }
}
