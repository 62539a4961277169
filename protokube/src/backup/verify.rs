//! Verifies a snapshot: a scratch etcd restores it, and its keys are compared with the member's. The containers have no network, little
//! memory and one processor, and work on the root disk, not on etcd's.

use super::source::KeyHash;
use super::stored_secret::describe_readable;
use super::take::LocalFolder;
use crate::etcd::{Containers, WORK};
use anyhow::{Context, bail};
use std::collections::BTreeMap;

/// Name of the file with the snapshot in the folder.
pub(super) const FILE: &str = "snapshot.db";

/// Memory of a scratch etcd besides its database, bytes.
const MEMORY: u64 = 512 << 20;

/// What a scratch etcd found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub revision: u64,
    pub keys: u64,
    pub hash: KeyHash,
    /// Keys by the first two parts of their names: `/registry/pods`.
    pub prefixes: BTreeMap<String, u64>,
    /// How its Secrets can be read, or why they cannot.
    pub secret: Result<String, String>,
}

const SECRETS: &str = "/registry/secrets/";

/// Prefixes that are counted: what a cluster cannot be without.
const PREFIXES: [&str; 6] = [
    "/registry/namespaces/",
    SECRETS,
    "/registry/configmaps/",
    "/registry/deployments/",
    "/registry/pods/",
    "/registry/minions/",
];

/// The revision of the snapshot in the folder. Needs etcd's image.
pub(super) fn read_revision(folder: &LocalFolder) -> anyhow::Result<u64> {
    let containers = folder.containers(MEMORY);
    containers.provide_image()?;
    let found = containers.read_revision(&format!("{WORK}/{FILE}"));
    found.inspect_err(|_| containers.remove_all())
}

/// Restores the snapshot in the folder, and asks a scratch etcd what it holds. `expected`: what the member said of its keys at the
/// revision of the snapshot.
pub(super) fn inspect_snapshot(
    folder: &LocalFolder,
    expected: Option<KeyHash>,
) -> anyhow::Result<Found> {
    let bytes = folder.file(FILE).metadata()?.len();
    let containers = folder.containers(MEMORY + bytes);
    containers.provide_image()?;
    let found = containers
        .unpack_snapshot(&format!("{WORK}/{FILE}"))
        .and_then(|()| {
            containers.inspect(|content| {
                let own = containers.hash_data(content.revision, None)?;
                // The member has compacted more since: its hash is of less.
                let further = expected.map(|expected| expected.compacted);
                let further = further.filter(|compacted| *compacted > own.compact_revision);
                let own = match further {
                    Some(further) => {
                        containers.hash_data(content.revision, u64::try_from(further).ok())?
                    }
                    None => own,
                };
                let counted = PREFIXES.into_iter().map(|prefix| {
                    let count = containers.count_keys(prefix)?;
                    anyhow::Ok((prefix.trim_end_matches('/').to_owned(), count))
                });
                Ok(Found {
                    revision: content.revision,
                    keys: content.keys,
                    hash: KeyHash {
                        hash: own.hash,
                        compacted: own.compact_revision,
                    },
                    prefixes: counted.collect::<anyhow::Result<_>>()?,
                    secret: read_secret(&containers, folder)?,
                })
            })
        });
    let found = found.inspect_err(|_| containers.remove_all());
    found.context("the snapshot cannot be verified")
}

/// How the first Secret can be read, or why it cannot.
fn read_secret(
    containers: &Containers<'_>,
    folder: &LocalFolder,
) -> anyhow::Result<Result<String, String>> {
    let Some((key, value)) = containers.first_value(SECRETS)? else {
        return Ok(Ok("it has no Secrets".to_owned()));
    };
    let configuration = folder.read_encryption_config()?;
    let described = describe_readable(&key, &value, configuration.as_deref());
    Ok(described.map_err(|error| format!("{error:#}")))
}

/// Compares what was found with what the member said.
pub(super) fn compare(found: &Found, hash: KeyHash, keys: u64) -> anyhow::Result<()> {
    if found.hash != hash {
        bail!(
            "the snapshot is not what the member has: at revision {} it has the hash {:08x} (compacted up to {}), the member {:08x} \
             (compacted up to {})",
            found.revision,
            found.hash.hash,
            found.hash.compacted,
            hash.hash,
            hash.compacted
        );
    }
    if found.keys != keys {
        bail!(
            "the snapshot has {} keys at revision {}, the member {keys}",
            found.keys,
            found.revision
        );
    }
    Ok(())
}
