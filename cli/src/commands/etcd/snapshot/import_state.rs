//! `kctl etcd snapshot import-state`: writes the spec and the keys of a cluster, which lie sealed beside its snapshots, back into a
//! state store that was lost.

use crate::args::SnapshotImportState;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{StoreKeys, store_error};
use anyhow::{Context, bail, ensure};
use aws_client::fips;
use aws_client::store::{Expect, StoreError};
use etcd_rules::backup::CLUSTER_STATE_KEYS;
use spec::api::Object;
use spec::read::{ReadOptions, read_documents_with};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

/// Key of the spec. It is written last: a store with it has the cluster, and one without can be written to again.
const CONFIG: &str = "config";

/// Objects with the address of the cluster's folder.
const WITH_BASE: [&str; 2] = [CONFIG, "cluster-completed.spec"];

/// Limit of all objects together, bytes, as at their sealing.
const LIMIT: u64 = 32 << 20;

/// First bytes of a zip.
const ZIP: &[u8] = b"PK";

/// The objects by key below the cluster's folder.
type Objects = BTreeMap<String, Vec<u8>>;

/// Writes the objects in the file into the store.
pub async fn run(
    args: &SnapshotImportState,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    const HINT: &str = "name the cluster-state.zip.age of a snapshot, and with --identity the private key of one it is sealed for";
    let unreadable = || format!("{} is no state of a cluster", args.file.display());
    let objects = read_objects(&args.file, args.identity.as_deref());
    let mut objects = objects.or_failed(unreadable(), HINT)?;
    let found = read_config(&objects).or_failed(unreadable(), HINT)?;
    let name = session
        .named_cluster(None)?
        .unwrap_or_else(|| found.name.clone());
    if name != found.name {
        return Err(CommandError::usage_error(
            format!(
                "{} is the state of {}, not of {name}",
                args.file.display(),
                found.name
            ),
            format!("kctl etcd snapshot import-state FILE --name {}", found.name),
        ));
    }
    let base = format!("{}/{name}", session.url.trim_end_matches('/'));
    if let Some(old) = found.base.filter(|old| *old != base) {
        move_base(&mut objects, &old, &base);
        session.shell.warning(&format!(
            "spec.configBase is {base} from now on; it was {old}"
        ));
    }
    let count = objects.len();
    write_objects(&name, objects, session).await?;
    session
        .shell
        .print_done(&format!("wrote {count} objects of {name} to {base}"));
    for next in [
        format!("kctl update {name} --yes    creates what AWS lacks; etcd begins empty"),
        format!(
            "kctl etcd snapshot import    brings a snapshot of etcd, once kctl etcd status {name} shows etcd as founded"
        ),
    ] {
        session.shell.hint(&next);
    }
    Ok(Outcome::Fine)
}

/// The objects in a zip, sealed with age or not.
fn read_objects(file: &Path, identity: Option<&Path>) -> anyhow::Result<Objects> {
    let bytes = fs::read(file)?;
    let zip = match identity {
        Some(identity) => unseal(&bytes, identity)?,
        None => bytes,
    };
    ensure!(
        zip.starts_with(ZIP),
        "it is no zip: if it is sealed, --identity is missing"
    );
    let mut archive = zip::ZipArchive::new(Cursor::new(zip))?;
    let mut objects = Objects::new();
    let mut left = LIMIT;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        if entry.is_dir() {
            continue;
        }
        let key = entry.name()?.into_owned();
        ensure!(
            is_state_key(&key),
            "it has {key:?}, which is no object of a cluster's state"
        );
        let mut content = Vec::new();
        entry.take(left + 1).read_to_end(&mut content)?;
        left = left
            .checked_sub(content.len() as u64)
            .with_context(|| format!("it has more than {LIMIT} bytes"))?;
        objects.insert(key, content);
    }
    Ok(objects)
}

/// Decrypts with the private keys in a file of `age-keygen`. No error quotes a key.
fn unseal(sealed: &[u8], identity: &Path) -> anyhow::Result<Vec<u8>> {
    ensure!(
        !fips::is_running(),
        "it is sealed with age, which is not of the FIPS module that this kctl runs with: decrypt it with `age --decrypt`, and leave --identity out"
    );
    let opened =
        File::open(identity).with_context(|| format!("{} cannot be read", identity.display()))?;
    let keys = age::IdentityFile::from_buffer(BufReader::new(opened))
        .and_then(|file| file.into_identities().map_err(std::io::Error::other));
    let keys =
        keys.with_context(|| format!("{} is no file of private keys of age", identity.display()))?;
    let keys = keys.iter().map(|key| &**key as &dyn age::Identity);
    let opened = age::Decryptor::new(sealed)?.decrypt(keys);
    let opened = opened.context("it cannot be decrypted with these keys")?;
    let mut zip = Vec::new();
    opened.take(LIMIT * 2).read_to_end(&mut zip)?;
    Ok(zip)
}

/// True for the keys that are sealed, and for nothing outside the cluster's folder.
fn is_state_key(key: &str) -> bool {
    let plain = key.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let listed = CLUSTER_STATE_KEYS.iter().any(|of| {
        if of.ends_with('/') {
            key.starts_with(of)
        } else {
            key == *of
        }
    });
    plain && listed
}

/// What the spec in the state says of itself.
struct StoredConfig {
    name: String,
    base: Option<String>,
}

fn read_config(objects: &Objects) -> anyhow::Result<StoredConfig> {
    let bytes = objects.get(CONFIG).context("it has no spec of a cluster")?;
    let text = String::from_utf8_lossy(bytes);
    let read = ReadOptions::AS_STORED;
    let documents = read_documents_with(CONFIG, &text, read).unwrap_or_default();
    for document in documents {
        if let Object::Cluster(cluster) = document.object {
            return Ok(StoredConfig {
                name: cluster.metadata.name,
                base: cluster.spec.config_base,
            });
        }
    }
    bail!("its spec cannot be read")
}

/// The cluster's folder has another address.
fn move_base(objects: &mut Objects, old: &str, new: &str) {
    let (old, new) = (
        format!("configBase: {old}\n"),
        format!("configBase: {new}\n"),
    );
    for key in WITH_BASE {
        if let Some(content) = objects.get_mut(key) {
            *content = String::from_utf8_lossy(content)
                .replace(&old, &new)
                .into_bytes();
        }
    }
}

/// Writes each object that the store lacks, the spec last. One that it has already must be the same, as after an interrupted
/// import.
async fn write_objects(
    name: &str,
    objects: Objects,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let keys = StoreKeys::new(name);
    let there = session.store.get(&keys.config()).await;
    if there.map_err(store_error)?.is_some() {
        return Err(refuse(name, "the spec"));
    }
    let (last, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(key, _)| key == CONFIG);
    for (key, content) in others.into_iter().chain(last) {
        let whole = keys.key_below(&key);
        let put = session
            .store
            .put(&whole, content.clone(), Expect::Absent)
            .await;
        match put {
            Ok(_) => {}
            Err(StoreError::Conflict { .. }) => {
                let stored = session.store.get(&whole).await.map_err(store_error)?;
                if stored.is_none_or(|stored| stored.bytes != content) {
                    return Err(refuse(name, &key));
                }
            }
            Err(error) => return Err(store_error(error)),
        }
    }
    Ok(())
}

fn refuse(name: &str, what: &str) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("the state store has {what} of {name} already"),
        "nothing that is there is replaced: name an empty store with --state, or use the cluster as it is",
    )
}
