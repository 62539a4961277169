//! The SSH key pair, unless the spec names an existing one.

use crate::{FullSpec, SshKey, cluster_tags};
use cloud::{Cloud, KeyPair};

pub(super) fn build_key_pair(full: &FullSpec) -> Vec<Cloud> {
    match &full.ssh_key {
        Some(SshKey::Ours { name, public_key }) => vec![
            KeyPair {
                key_name: name.clone(),
                public_key: public_key.clone(),
                tags: cluster_tags(full, &full.name),
            }
            .into(),
        ],
        Some(SshKey::Existing(_)) | None => Vec::new(),
    }
}
