//! `kctl create -f` and `kctl replace -f`: objects from files into the store.

use super::objects::{Objects, Texts};
use super::session::{Session, named};
use super::spec_log;
use crate::args::{Global, Replace};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::state::{ClusterState, Keys, SpecChange, clusters, store_error, write_object};
use aws_client::store::Expect;
use spec::api::metadata::CLUSTER_LABEL;
use spec::api::{Object, Resource, Spec};
use spec::read::{Document, ReadOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What may happen to an object that is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// It may be new.
    pub create: bool,
    /// It may take the place of a stored one.
    pub replace: bool,
}

/// `kctl create -f`.
pub async fn create(
    files: &[PathBuf],
    options: &Global,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let texts = Texts::read(files)?;
    store(
        &texts,
        Policy {
            create: true,
            replace: false,
        },
        ReadOptions::default(),
        options,
        session,
    )
    .await
}

/// `kctl replace -f`.
pub async fn replace(
    what: &Replace,
    options: &Global,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let read = ReadOptions {
        allow_unsupported: what.allow_unsupported,
    };
    let texts = Texts::read(&what.files)?;
    store(
        &texts,
        Policy {
            create: what.force,
            replace: true,
        },
        read,
        options,
        session,
    )
    .await
}

async fn store(
    texts: &Texts,
    policy: Policy,
    read: ReadOptions,
    options: &Global,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let documents = texts.objects(read)?;
    let existing = clusters(&session.store).await?;
    let by_cluster = by_cluster(documents, named(options, None)?.as_deref())?;
    let mut ready = Vec::new();
    for (name, documents) in by_cluster {
        let state = match existing.contains(&name) {
            true => Some(ClusterState::read(&session.store, &name, read).await?),
            false => None,
        };
        let objects = laid_over(&name, state.as_ref(), &documents)?;
        objects.check(session.shell)?;
        for document in &documents {
            allowed(document, state.as_ref(), policy)?;
        }
        ready.push((name, state, documents));
    }
    for (name, state, documents) in &ready {
        let command = if policy.replace { "replace" } else { "create" };
        let written = write(command, name, state.as_ref(), documents, session).await;
        written.map_err(|error| match error.kind {
            Kind::Precondition => texts.kept(error),
            _ => error,
        })?;
        session.shell.hint(&format!(
            "kctl update {name}    shows what would change in AWS"
        ));
    }
    Ok(Outcome::Fine)
}

/// The documents of each cluster. An object says whose it is in a label; else it is the named cluster's, or that of
/// the only Cluster in the files.
fn by_cluster(
    documents: Vec<Document>,
    named: Option<&str>,
) -> Result<BTreeMap<String, Vec<Document>>, CommandError> {
    let in_files = documents
        .iter()
        .filter(|document| matches!(document.object, Object::Cluster(_)));
    let in_files: Vec<String> = in_files
        .map(|document| document.object.metadata().name.clone())
        .collect();
    let only = match in_files.as_slice() {
        [only] => Some(only.as_str()),
        _ => None,
    };
    let mut by_cluster: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    for document in documents {
        let metadata = document.object.metadata();
        let cluster = match &document.object {
            Object::Cluster(cluster) => cluster.name(),
            _ => metadata.cluster().or(named).or(only).ok_or_else(|| {
                CommandError::usage(
                    format!(
                        "it is not clear which cluster {} {} belongs to",
                        document.object.kind(),
                        metadata.name
                    ),
                    format!("give it the label {CLUSTER_LABEL}, or name the cluster with --name"),
                )
            })?,
        };
        by_cluster
            .entry(cluster.to_owned())
            .or_default()
            .push(document);
    }
    Ok(by_cluster)
}

/// What would be stored: what is, with the files' objects in it.
fn laid_over(
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
) -> Result<Objects, CommandError> {
    let cluster = documents
        .iter()
        .find_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster.clone()),
            _ => None,
        });
    let mut objects = match (state, cluster) {
        (Some(state), _) => Objects::stored(state),
        (None, Some(cluster)) => Objects::new(cluster),
        (None, None) => {
            return Err(CommandError::usage(
                format!("there is no cluster {name}, neither in the store nor in the files"),
                "put its Cluster object into the files, or name another cluster with --name",
            ));
        }
    };
    documents.iter().for_each(|document| objects.put(document));
    Ok(objects)
}

fn allowed(
    document: &Document,
    state: Option<&ClusterState>,
    policy: Policy,
) -> Result<(), CommandError> {
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    let stored = state.is_some_and(|state| match &document.object {
        Object::Cluster(_) => true,
        Object::InstanceGroup(_) => state.groups.iter().any(|group| group.object.name() == name),
        // A key's name in the store is its content: the same key again changes nothing.
        Object::SSHCredential(_) | Object::Keyset(_) => false,
    });
    match &document.object {
        Object::Keyset(_) => Err(CommandError::usage(
            format!(
                "Keyset {name}: keysets are not read from files, because they hold private keys"
            ),
            "leave it out: `kctl update --yes` makes the keysets that are missing",
        )),
        Object::SSHCredential(_) => Ok(()),
        _ if stored && !policy.replace => Err(CommandError::said(
            Kind::Precondition,
            format!("{kind} {name} exists already"),
            "change it with `kctl replace -f` or `kctl edit`",
        )),
        _ if !stored && !policy.create => Err(CommandError::usage(
            format!("{kind} {name} does not exist yet"),
            "create it with `kctl create -f` or `kctl replace --force -f`",
        )),
        _ => Ok(()),
    }
}

/// Writes the objects, and what was written into the log.
async fn write(
    command: &str,
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if state.is_none() {
        nothing_is_left(name, session).await?;
    }
    let mut changes = Vec::new();
    let written = write_all(name, state, documents, session, &mut changes).await;
    spec_log::log(command, &Keys::of(name), changes, session).await;
    written
}

/// Refuses the name of a cluster whose machines wrote records of etcd after it was unregistered: a new cluster would take
/// them for its own, and could never be what they say.
async fn nothing_is_left(name: &str, session: &Session<'_>) -> Result<(), CommandError> {
    let etcd = Keys::of(name).below("etcd/");
    let left = session.store.list(&etcd, None).await.map_err(store_error)?;
    let Some(first) = left.first() else {
        return Ok(());
    };
    let folder = format!("{}/{etcd}", session.url);
    let remove = match folder.strip_prefix("file://") {
        Some(folder) => format!("rm -r {folder}"),
        None => format!("aws s3 rm --recursive {folder}"),
    };
    Err(CommandError::said(
        Kind::Precondition,
        format!(
            "an earlier cluster {name} has left records of its etcd in {}: {} of them, {}",
            session.url,
            left.len(),
            first.key
        ),
        format!("terminate its machines if they still run, since they write these records, then: {remove}"),
    )
    .hint(format!(
        "or take that cluster over: restore its other objects below {}/{name}/ from the bucket's versions",
        session.url
    )))
}

/// Writes the objects. The Cluster goes first: who writes it has the name.
async fn write_all(
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
    session: &Session<'_>,
    changes: &mut Vec<SpecChange>,
) -> Result<(), CommandError> {
    let keys = Keys::of(name);
    let (store, mut documents) = (&session.store, documents.to_vec());
    documents.sort_by_key(|document| !matches!(document.object, Object::Cluster(_)));
    for document in &documents {
        match &document.object {
            Object::Cluster(cluster) => {
                let expect = state.map_or(Expect::Absent, |state| {
                    Expect::Version(state.cluster.version.clone())
                });
                let before = state.map(|state| &state.cluster.object);
                let object = dated(cluster.clone(), before)?;
                let change = SpecChange::of(before, Some(&object));
                if change.is_none() {
                    unchanged(document, session);
                    continue;
                }
                let written = write_object(store, &keys.config(), &object, expect).await;
                written.map_err(|error| raced(error, document))?;
                changes.extend(change);
            }
            Object::InstanceGroup(group) => {
                let stored = state.and_then(|state| {
                    state
                        .groups
                        .iter()
                        .find(|stored| stored.object.name() == group.name())
                });
                let expect = match (stored, state) {
                    (Some(stored), _) => Expect::Version(stored.version.clone()),
                    (None, Some(_)) => Expect::Absent,
                    // Left over from a cluster that was not quite deleted: the name is ours now.
                    (None, None) => Expect::Any,
                };
                let before = stored.map(|stored| &stored.object);
                let mut group = dated(group.clone(), before)?;
                group
                    .metadata
                    .labels
                    .insert(CLUSTER_LABEL.to_owned(), name.to_owned());
                let change = SpecChange::of(before, Some(&group));
                if change.is_none() {
                    unchanged(document, session);
                    continue;
                }
                let written = write_object(store, &keys.group(group.name()), &group, expect).await;
                written.map_err(|error| raced(error, document))?;
                changes.extend(change);
            }
            Object::SSHCredential(key) => {
                write_ssh_key(session, &keys, &key.spec.public_key).await?;
            }
            Object::Keyset(_) => continue,
        }
        let (kind, object) = (document.object.kind(), &document.object.metadata().name);
        session.shell.done(&format!("stored {kind} {object}"));
    }
    Ok(())
}

/// Says that the store has that object already.
fn unchanged(document: &Document, session: &Session<'_>) {
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    session.shell.note(&format!("unchanged {kind} {name}"));
}

/// Says which object somebody else was faster with.
fn raced(error: CommandError, document: &Document) -> CommandError {
    if error.kind != Kind::Precondition {
        return error;
    }
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    CommandError::said(
        Kind::Precondition,
        format!("{kind} {name} was changed by somebody else at the same time: it was not stored"),
        "see what is there now with `kctl get -o yaml`, bring your change into that, and repeat the command",
    )
}

/// Stores a new cluster.
pub async fn write_new(
    name: &str,
    objects: &Objects,
    ssh_key: Option<&str>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if let Some(key) = ssh_key {
        ssh_fingerprint(key)?;
    }
    write("create cluster", name, None, &objects.documents, session).await?;
    match ssh_key {
        Some(key) => write_ssh_key(session, &Keys::of(name), key).await,
        None => Ok(()),
    }
}

/// Stores a public SSH key under its fingerprint.
async fn write_ssh_key(
    session: &Session<'_>,
    keys: &Keys,
    public_key: &str,
) -> Result<(), CommandError> {
    let fingerprint = ssh_fingerprint(public_key)?;
    let text = format!("{}\n", public_key.trim());
    session
        .store
        .put(
            &keys.ssh_key(&fingerprint.replace(':', "")),
            text.into_bytes(),
            Expect::Any,
        )
        .await
        .map_err(store_error)?;
    Ok(())
}

fn ssh_fingerprint(public_key: &str) -> Result<String, CommandError> {
    node::names::ssh_fingerprint(public_key).ok_or_else(|| {
        CommandError::usage(
            "this is not a public SSH key",
            "give a line such as `ssh-ed25519 AAAA... name`, not the private key",
        )
    })
}

/// The object with the time of its creation, unless it has one; `before`: as it is stored.
fn dated<S: Spec>(
    mut object: Resource<S>,
    before: Option<&Resource<S>>,
) -> Result<Resource<S>, CommandError> {
    if let (None, Some(before)) = (&object.metadata.creation_timestamp, before) {
        object
            .metadata
            .creation_timestamp
            .clone_from(&before.metadata.creation_timestamp);
    }
    if object.metadata.creation_timestamp.is_none() {
        let now = OffsetDateTime::now_utc()
            .replace_nanosecond(0)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let now = now.format(&Rfc3339).failed(
            "the clock shows no time that can be written",
            "set the clock",
        )?;
        object.metadata.creation_timestamp = Some(now);
    }
    Ok(object)
}
