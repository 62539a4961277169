//! Verifies a snapshot: a scratch etcd restores it, and its keys are compared with the member's. The containers have no network, little
//! memory and one processor, and work on the root disk, not on etcd's.

use super::encrypted_secret::SecretKinds;
use super::source::{KeyHash, KeysAt};
use super::work_folder::{FILE, WorkFolder};
use crate::changes::{ReplayInput, Replayed, replay_parts};
use crate::{Content, EtcdContainers, PAGE, ScratchGateway, ScratchHash, WORK};
use anyhow::{Context, bail};
use etcd_rules::backup::VerifiedSnapshot;
use node::formatted::UnknownFields;
use std::collections::BTreeMap;

/// Memory of a scratch etcd besides its database, bytes.
const MEMORY: u64 = 512 << 20;

/// What a scratch etcd found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// That of the snapshot, at which the changes after it begin. In a running scratch etcd leases end, and that is a revision each.
    pub revision: u64,
    /// How many there are at that revision.
    pub keys: u64,
    /// Of its keys at that revision.
    pub hash: KeyHash,
    /// What it says of the revision at which the member was asked.
    pub at: Option<KeysAt>,
    /// Keys by the first two parts of their names: `/registry/pods`.
    pub prefixes: BTreeMap<String, u64>,
    /// The changes that were replayed, if any were given.
    pub replayed: Option<Replayed>,
}

impl Found {
    /// What the manifest says of it.
    pub(super) fn describe(&self, at: String, seconds: u64) -> VerifiedSnapshot {
        VerifiedSnapshot {
            at,
            revision: self.revision,
            compacted: u64::try_from(self.hash.compacted).unwrap_or_default(),
            hash: self.hash.hash,
            keys: self.keys,
            seconds,
            unknown: UnknownFields::new(),
        }
    }
}

const SECRETS: &str = "/registry/secrets/";

/// The first key after all that begin with [`SECRETS`].
const SECRETS_END: &str = "/registry/secrets0";

/// Prefixes that are counted: what a cluster cannot be without.
const PREFIXES: [&str; 6] = [
    "/registry/namespaces/",
    SECRETS,
    "/registry/configmaps/",
    "/registry/deployments/",
    "/registry/pods/",
    "/registry/minions/",
];

/// How a snapshot compares with what the member said before it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Equal,
    /// The member has compacted its keys in between: its hash was of other ones.
    Compacted,
}

/// Restores the snapshot in the folder, and asks a scratch etcd what it holds. `expected`: what the member said of its keys before; `changes`
/// are replayed first. `more` asks the scratch etcd what else is wanted.
pub(super) fn inspect_snapshot<T>(
    folder: &WorkFolder,
    (expected, changes): (Option<&KeysAt>, Option<ReplayInput>),
    more: impl FnOnce(&EtcdContainers<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<(Found, T)> {
    let bytes = folder.file(FILE).metadata()?.len();
    let memory = changes.as_ref().map_or(0, |changes| changes.memory);
    let memory = memory.saturating_add(MEMORY).saturating_add(bytes);
    let containers = folder.containers(memory);
    containers.provide_image()?;
    let file = format!("{WORK}/{FILE}");
    let inspect = || {
        containers.unpack_snapshot(&file)?;
        let highest = containers.read_revision(&file)?;
        let mut replayed = None;
        let ask = |content: Content| {
            let found = find_content(&containers, &content, (highest, expected))?;
            anyhow::Ok((found, more(&containers)?))
        };
        let (found, more) = match changes {
            None => containers.inspect(ask)?,
            Some(changes) => {
                let check_room = |bytes: u64| folder.check_room(bytes);
                let replay = |gateway: &ScratchGateway<'_>| {
                    replayed = Some(replay_parts(gateway, changes, &check_room)?);
                    anyhow::Ok(())
                };
                containers.inspect_changed(replay, ask)?
            }
        };
        anyhow::Ok((Found { replayed, ..found }, more))
    };
    let found = inspect().inspect_err(|_| containers.remove_all());
    found.context("the snapshot cannot be verified")
}

/// What a running scratch etcd says of a snapshot. `highest`: the highest revision of a key in its file.
fn find_content(
    containers: &EtcdContainers<'_>,
    content: &Content,
    (highest, expected): (u64, Option<&KeysAt>),
) -> anyhow::Result<Found> {
    let at = expected.map(|expected| describe_at(containers, content, expected));
    let own = containers.hash_data(content.revision)?;
    // The key that was deleted last is not in the file if that was compacted.
    let compacted = u64::try_from(own.compact_revision).unwrap_or_default();
    let revision = highest.max(compacted);
    let (own, keys) = match revision == content.revision {
        true => (own, content.keys),
        false => (
            containers.hash_data(revision)?,
            containers.count_keys_at(revision)?,
        ),
    };
    let counted = PREFIXES.into_iter().map(|prefix| {
        let count = containers.count_keys(prefix)?;
        anyhow::Ok((prefix.trim_end_matches('/').to_owned(), count))
    });
    Ok(Found {
        revision,
        keys,
        hash: own.into(),
        at: at.transpose()?,
        prefixes: counted.collect::<anyhow::Result<_>>()?,
        replayed: None,
    })
}

/// What the scratch etcd says of the revision at which the member was asked.
fn describe_at(
    containers: &EtcdContainers<'_>,
    content: &Content,
    expected: &KeysAt,
) -> anyhow::Result<KeysAt> {
    let revision = expected.revision;
    if content.revision < revision {
        bail!(
            "the snapshot is at revision {}, but the member was at {revision} before: it is older than its data",
            content.revision
        );
    }
    let hash = expected.hash.map(|_| containers.hash_data(revision));
    Ok(KeysAt {
        revision,
        count: containers.count_keys_at(revision)?,
        hash: hash.transpose()?.map(KeyHash::from),
    })
}

/// How all Secrets can be read with this EncryptionConfiguration, or why some cannot. After a rotation that did not end, each may be
/// encrypted with another key, so each is decrypted.
pub(crate) fn read_secrets(
    containers: &EtcdContainers<'_>,
    configuration: Option<&str>,
) -> anyhow::Result<Result<String, String>> {
    let mut kinds = SecretKinds::new(configuration);
    let mut from = SECRETS.to_owned();
    for page in 1.. {
        let id = format!("secrets-{page}");
        let found = containers.values_between(&id, (&from, SECRETS_END))?;
        let is_last = found.len() < PAGE;
        for (key, value) in &found {
            kinds.add(key, value);
        }
        // The next page begins with the last key of this one: an argument cannot name what comes right after it.
        match found.into_iter().next_back() {
            Some((last, _)) if !is_last && last != from => from = last,
            _ => break,
        }
    }
    Ok(kinds.describe())
}

/// Compares what was found with what the member said before the snapshot was taken.
pub(super) fn compare(found: &Found, expected: &KeysAt) -> anyhow::Result<Compared> {
    let Some(at) = &found.at else {
        bail!("the snapshot was not compared with the member");
    };
    let revision = expected.revision;
    if let (Some(own), Some(hash)) = (expected.hash, at.hash)
        && own != hash
    {
        if hash.compacted != own.compacted {
            return Ok(Compared::Compacted);
        }
        bail!(
            "the snapshot is not what the member has: at revision {revision}, compacted up to {}, it has the hash {:08x}, the member {:08x}",
            own.compacted,
            hash.hash,
            own.hash
        );
    }
    if at.count != expected.count {
        bail!(
            "the snapshot has {} keys at revision {revision}, the member {}",
            at.count,
            expected.count
        );
    }
    Ok(Compared::Equal)
}

impl From<ScratchHash> for KeyHash {
    fn from(scratch: ScratchHash) -> Self {
        Self {
            hash: scratch.hash,
            compacted: scratch.compact_revision,
        }
    }
}
