//! `kctl create -f` and `kctl replace -f`: stores spec objects from files.

use super::own_objects;
use super::session::{Session, named_cluster};
use super::spec_log;
use super::spec_objects::{InputFiles, SpecObjects};
use super::ssh_keys;
use super::store_place::check_names_are_free;
use crate::args::{CreateObjects, GlobalOptions, Replace};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{
    ClusterState, OwnFiles, SpecChange, StoreKeys, cluster_names, store_error, write_object,
};
use aws_client::store::Expect;
use node::addons::{ObjectKey, OwnObject};
use spec::api::metadata::CLUSTER_LABEL;
use spec::api::{Object, Resource, Spec};
use spec::read::{Document, ReadOptions};
use spec::validate::find_strays;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Whether objects in files may be new, or replace stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorePolicy {
    /// It may be new.
    pub create: bool,
    /// It may take the place of a stored one.
    pub replace: bool,
}

/// Stores new objects: `kctl create -f`.
pub async fn create_from_files(
    args: &CreateObjects,
    options: &GlobalOptions,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let read = ReadOptions {
        allow_unsupported: args.allow_unsupported,
    };
    let texts = InputFiles::read(&args.files)?;
    store_files(
        &texts,
        StorePolicy {
            create: true,
            replace: false,
        },
        read,
        options,
        session,
    )
    .await
}

/// Replaces stored objects: `kctl replace -f`.
pub async fn replace_from_files(
    args: &Replace,
    options: &GlobalOptions,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let read = ReadOptions {
        allow_unsupported: args.allow_unsupported,
    };
    let texts = InputFiles::read(&args.files)?;
    store_files(
        &texts,
        StorePolicy {
            create: args.force,
            replace: true,
        },
        read,
        options,
        session,
    )
    .await
}

async fn store_files(
    texts: &InputFiles,
    policy: StorePolicy,
    read: ReadOptions,
    options: &GlobalOptions,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let (documents, own) = texts.read_objects(read)?;
    let existing = cluster_names(&session.store).await?;
    check_cluster_labels(&documents, &existing)?;
    let by_cluster = by_cluster(documents, own, named_cluster(options, None)?.as_deref())?;
    let mut ready = Vec::new();
    for (name, OfCluster { documents, own }) in by_cluster {
        let state = match existing.contains(&name) {
            true => Some(ClusterState::read(&session.store, &name, read).await?),
            false => None,
        };
        let objects = merge_documents(&name, state.as_ref(), &documents)?;
        let stored = state.as_ref().map(|state| &state.cluster.object);
        if state.is_none() {
            check_names_are_free(&name, &existing, session)?;
        }
        objects.check_new(stored, &session.url, session.shell)?;
        for document in &documents {
            check_policy(document, state.as_ref(), policy)?;
        }
        let keys = StoreKeys::new(&name);
        let files = match &state {
            Some(state) if !own.is_empty() => {
                OwnFiles::read(&session.store, &keys, &state.entries).await?
            }
            _ => OwnFiles::default(),
        };
        own_objects::check_policy(&own, &files, &keys, policy)?;
        ready.push((name, state, documents, (keys, own, files)));
    }
    for (name, state, documents, (keys, own, files)) in &ready {
        let command = if policy.replace { "replace" } else { "create" };
        let stored = async {
            write_and_log(command, name, state.as_ref(), documents, session).await?;
            if let (true, Some(state)) = (policy.replace, state) {
                ssh_keys::delete_replaced(state, documents, session).await?;
            }
            own_objects::store_objects(command, keys, own, files, session).await
        };
        let written = stored.await;
        written.map_err(|error| match error.kind {
            ErrorKind::Precondition => texts.with_location_hint(error),
            _ => error,
        })?;
        session.shell.hint(&format!(
            "kctl update {name}    shows what would change in AWS"
        ));
    }
    Ok(Outcome::Fine)
}

/// Fails if a label names a cluster that is neither in the files nor in the store.
fn check_cluster_labels(documents: &[Document], existing: &[String]) -> Result<(), CommandError> {
    let in_files = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster.name()),
            _ => None,
        });
    let known: Vec<&str> = existing
        .iter()
        .map(String::as_str)
        .chain(in_files)
        .collect();
    let strays = find_strays(documents, &known);
    match strays.is_empty() {
        true => Ok(()),
        false => Err(strays.into()),
    }
}

/// What files have for one cluster.
#[derive(Debug, Default)]
struct OfCluster {
    documents: Vec<Document>,
    own: Vec<OwnObject>,
}

/// Groups objects by cluster: by their label, else the named cluster, else the only Cluster in the files.
fn by_cluster(
    documents: Vec<Document>,
    own: Vec<OwnObject>,
    named: Option<&str>,
) -> Result<BTreeMap<String, OfCluster>, CommandError> {
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
    let mut by_cluster: BTreeMap<String, OfCluster> = BTreeMap::new();
    for document in documents {
        let metadata = document.object.metadata();
        let cluster = match &document.object {
            Object::Cluster(cluster) => cluster.name(),
            _ => metadata.cluster().or(named).or(only).ok_or_else(|| {
                CommandError::usage_error(
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
            .documents
            .push(document);
    }
    // Objects of users have no label of kOps: those of a file with instance groups of one cluster are that cluster's.
    let of_groups: Vec<String> = by_cluster.keys().cloned().collect();
    let only = only.or(match of_groups.as_slice() {
        [only] => Some(only.as_str()),
        _ => None,
    });
    for one in own {
        let cluster = only.or(named).ok_or_else(|| {
            let key = ObjectKey::of(&one.object);
            CommandError::usage_error(
                format!("it is not clear which cluster {key} belongs to"),
                "name the cluster with --name",
            )
        })?;
        let of = by_cluster.entry(cluster.to_owned()).or_default();
        of.own.push(one);
    }
    Ok(by_cluster)
}

/// The stored objects with those of the files merged in.
fn merge_documents(
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
) -> Result<SpecObjects, CommandError> {
    let cluster = documents
        .iter()
        .find_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster.clone()),
            _ => None,
        });
    let mut objects = match (state, cluster) {
        (Some(state), _) => SpecObjects::from_state(state),
        (None, Some(cluster)) => SpecObjects::new(cluster),
        (None, None) => {
            return Err(CommandError::usage_error(
                format!("there is no cluster {name}, neither in the store nor in the files"),
                "put its Cluster object into the files, or name another cluster with --name",
            ));
        }
    };
    documents
        .iter()
        .for_each(|document| objects.put_document(document));
    Ok(objects)
}

pub(super) fn check_policy(
    document: &Document,
    state: Option<&ClusterState>,
    policy: StorePolicy,
) -> Result<(), CommandError> {
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    let stored = state.is_some_and(|state| match &document.object {
        Object::Cluster(_) => true,
        Object::InstanceGroup(_) => state.groups.iter().any(|group| group.object.name() == name),
        // A key's name in the store is its content: the same key again changes nothing.
        Object::SSHCredential(_) | Object::Keyset(_) => false,
    });
    match &document.object {
        Object::Keyset(_) => Err(CommandError::usage_error(
            format!(
                "Keyset {name}: keysets are not read from files, because they hold private keys"
            ),
            "leave it out: `kctl update --yes` makes the keysets that are missing",
        )),
        Object::SSHCredential(_) if policy.replace => Ok(()),
        Object::SSHCredential(key) => ssh_keys::check_is_first(key, state),
        _ if stored && !policy.replace => Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("{kind} {name} exists already"),
            "change it with `kctl replace -f` or `kctl edit`",
        )),
        _ if !stored && !policy.create => Err(CommandError::usage_error(
            format!("{kind} {name} does not exist yet"),
            "create it with `kctl create -f` or `kctl replace --force -f`",
        )),
        _ => Ok(()),
    }
}

/// Writes the objects, and logs the changes.
pub(super) async fn write_and_log(
    command: &str,
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if state.is_none() {
        check_nothing_left(name, session).await?;
    }
    let mut changes = Vec::new();
    let written = write_all(name, state, documents, session, &mut changes).await;
    spec_log::log_spec_changes(command, &StoreKeys::new(name), changes, session).await;
    written
}

/// Refuses a name under which the store has etcd records, written by instances of an unregistered cluster. A new cluster
/// would take these records for its own and could not form etcd.
async fn check_nothing_left(name: &str, session: &Session<'_>) -> Result<(), CommandError> {
    let etcd = StoreKeys::new(name).key_below("etcd/");
    let left = session.store.list(&etcd, None).await.map_err(store_error)?;
    let Some(first) = left.first() else {
        return Ok(());
    };
    let folder = format!("{}/{etcd}", session.url);
    let remove = match folder.strip_prefix("file://") {
        Some(folder) => format!("rm -r {folder}"),
        None => format!("aws s3 rm --recursive {folder}"),
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "an earlier cluster {name} has left records of its etcd in {}: {} of them, {}",
            session.url,
            left.len(),
            first.key
        ),
        format!("terminate its instances if they still run, since they write these records, then: {remove}"),
    )
    .with_hint(format!(
        "or take that cluster over: restore its other objects below {}/{name}/ from the bucket's versions",
        session.url
    )))
}

/// Writes the objects. The Cluster goes first: its creation reserves the name.
async fn write_all(
    name: &str,
    state: Option<&ClusterState>,
    documents: &[Document],
    session: &Session<'_>,
    changes: &mut Vec<SpecChange>,
) -> Result<(), CommandError> {
    let keys = StoreKeys::new(name);
    let (store, mut documents) = (&session.store, documents.to_vec());
    documents.sort_by_key(|document| !matches!(document.object, Object::Cluster(_)));
    for document in &documents {
        match &document.object {
            Object::Cluster(cluster) => {
                let expect = state.map_or(Expect::Absent, |state| {
                    Expect::Version(state.cluster.version.clone())
                });
                let before = state.map(|state| &state.cluster.object);
                let object = with_creation_time(cluster.clone(), before)?;
                let change = SpecChange::from_objects(before, Some(&object));
                if change.is_none() {
                    note_unchanged(document, session);
                    continue;
                }
                let written = write_object(store, &keys.config(), &object, expect).await;
                written.map_err(|error| conflict_error(error, document))?;
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
                    // Left over from an incompletely deleted cluster: the new one owns the name now.
                    (None, None) => Expect::Any,
                };
                let before = stored.map(|stored| &stored.object);
                let mut group = with_creation_time(group.clone(), before)?;
                group
                    .metadata
                    .labels
                    .insert(CLUSTER_LABEL.to_owned(), name.to_owned());
                let change = SpecChange::from_objects(before, Some(&group));
                if change.is_none() {
                    note_unchanged(document, session);
                    continue;
                }
                let written = write_object(store, &keys.group(group.name()), &group, expect).await;
                written.map_err(|error| conflict_error(error, document))?;
                changes.extend(change);
            }
            Object::SSHCredential(key) => {
                write_ssh_key(session, &keys, &key.spec.public_key).await?;
            }
            Object::Keyset(_) => continue,
        }
        let (kind, object) = (document.object.kind(), &document.object.metadata().name);
        session.shell.print_done(&format!("stored {kind} {object}"));
    }
    Ok(())
}

/// Prints that the object is stored already.
fn note_unchanged(document: &Document, session: &Session<'_>) {
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    session.shell.note(&format!("unchanged {kind} {name}"));
}

/// Names the object in the error of a lost race.
fn conflict_error(error: CommandError, document: &Document) -> CommandError {
    if error.kind != ErrorKind::Precondition {
        return error;
    }
    let (kind, name) = (document.object.kind(), &document.object.metadata().name);
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("{kind} {name} was changed by somebody else at the same time: it was not stored"),
        "see what is there now with `kctl get -o yaml`, bring your change into that, and repeat the command",
    )
}

/// Stores a new cluster.
pub async fn write_new(
    name: &str,
    objects: &SpecObjects,
    ssh_key: Option<&str>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if let Some(key) = ssh_key {
        ssh_fingerprint(key)?;
    }
    write_and_log("create cluster", name, None, &objects.documents, session).await?;
    match ssh_key {
        Some(key) => write_ssh_key(session, &StoreKeys::new(name), key).await,
        None => Ok(()),
    }
}

/// Stores a public SSH key under its fingerprint.
async fn write_ssh_key(
    session: &Session<'_>,
    keys: &StoreKeys,
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
        CommandError::usage_error(
            "this is not a public SSH key",
            "give a line such as `ssh-ed25519 AAAA... name`, not the private key",
        )
    })
}

/// Sets the creation time if the object has none, from `before` (the stored object) or the clock.
fn with_creation_time<S: Spec>(
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
        let now = now.format(&Rfc3339).or_failed(
            "the clock shows no time that can be written",
            "set the clock",
        )?;
        object.metadata.creation_timestamp = Some(now);
    }
    Ok(object)
}
