//! Verifies a snapshot: a scratch etcd restores it, and its keys are compared with the member's. The containers have no network, little
//! memory and one processor, and work on the root disk, not on etcd's.

use super::encrypted_secret::SecretKinds;
use super::source::{KeyHash, KeysAt};
use super::work_folder::{FILE, WorkFolder};
use crate::changes::{ReplayInput, Replayed, replay_parts};
use crate::{ALL_KEYS, ScratchGateway, WORK};
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

const SECRETS: &str = "/registry/secrets";

/// Prefixes that are counted, each with a slash: what a cluster cannot be without.
const PREFIXES: [&str; 6] = [
    "/registry/namespaces",
    SECRETS,
    "/registry/configmaps",
    "/registry/deployments",
    "/registry/pods",
    "/registry/minions",
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
    more: impl FnOnce(&ScratchGateway<'_>) -> anyhow::Result<T>,
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
        containers.inspect(changes.is_some(), |gateway| {
            let check_room = |bytes: u64| folder.check_room(bytes);
            let replay = |changes| replay_parts(gateway, changes, &check_room);
            let replayed = changes.map(replay).transpose()?;
            let found = find_content(gateway, (highest, expected))?;
            Ok((Found { replayed, ..found }, more(gateway)?))
        })
    };
    let found = inspect().inspect_err(|_| containers.remove_all());
    found.context("the snapshot cannot be verified")
}

/// What a running scratch etcd says of a snapshot. `highest`: the highest revision of a key in its file.
fn find_content(
    gateway: &ScratchGateway<'_>,
    (highest, expected): (u64, Option<&KeysAt>),
) -> anyhow::Result<Found> {
    let content = gateway.count_keys(ALL_KEYS, None)?;
    let at = expected.map(|expected| describe_at(gateway, content.revision, expected));
    let own = gateway.hash_keys(content.revision)?;
    // The key that was deleted last is not in the file if that was compacted.
    let compacted = u64::try_from(own.compacted).unwrap_or_default();
    let revision = highest.max(compacted);
    let (hash, keys) = match revision == content.revision {
        true => (own, content.keys),
        false => (
            gateway.hash_keys(revision)?,
            gateway.count_keys(ALL_KEYS, Some(revision))?.keys,
        ),
    };
    let counted = PREFIXES.into_iter().map(|prefix| {
        let (from, end) = range_below(prefix);
        let counted = gateway.count_keys((&from, &end), None)?;
        anyhow::Ok((prefix.to_owned(), counted.keys))
    });
    Ok(Found {
        revision,
        keys,
        hash,
        at: at.transpose()?,
        prefixes: counted.collect::<anyhow::Result<_>>()?,
        replayed: None,
    })
}

/// The keys that begin with this and a slash: `0` comes right after it.
fn range_below(prefix: &str) -> (String, String) {
    (format!("{prefix}/"), format!("{prefix}0"))
}

/// What the scratch etcd, which is at the revision `newest`, says of the one at which the member was asked.
fn describe_at(
    gateway: &ScratchGateway<'_>,
    newest: u64,
    expected: &KeysAt,
) -> anyhow::Result<KeysAt> {
    let revision = expected.revision;
    if newest < revision {
        bail!(
            "the snapshot is at revision {newest}, but the member was at {revision} before: it is older than its data"
        );
    }
    let hash = expected.hash.map(|_| gateway.hash_keys(revision));
    Ok(KeysAt {
        revision,
        count: gateway.count_keys(ALL_KEYS, Some(revision))?.keys,
        hash: hash.transpose()?,
    })
}

/// How all Secrets can be read with this EncryptionConfiguration, or why some cannot. After a rotation that did not end, each may be
/// encrypted with another key, so each is decrypted.
pub(crate) fn read_secrets(
    gateway: &ScratchGateway<'_>,
    configuration: Option<&str>,
) -> anyhow::Result<Result<String, String>> {
    let mut kinds = SecretKinds::new(configuration);
    let (from, end) = range_below(SECRETS);
    gateway.for_each_value((&from, &end), |key, value| kinds.add(key, value))?;
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
