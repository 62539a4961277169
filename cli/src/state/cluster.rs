//! Cluster, instance groups and SSH keys as they are stored.

use super::{Keys, clusters, no_cluster, store_error};
use crate::error::{CommandError, Context, Kind};
use aws_client::store::{Entry, Expect, Object as Bytes, Store, Version};
use futures::future::try_join_all;
use node::yaml;
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::{InstanceGroup, Object, Resource, Spec};
use spec::read::{Document, ReadOptions, nearest, read_documents_with};

/// An object of the spec and the version it was read at.
#[derive(Clone, Debug)]
pub struct Stored<S> {
    /// The object.
    pub object: Resource<S>,
    /// Its text, as stored.
    pub text: String,
    /// The version that a change replaces.
    pub version: Version,
}

/// Everything that one listing shows of a cluster, and its spec.
#[derive(Clone, Debug)]
pub struct ClusterState {
    /// Its keys.
    pub keys: Keys,
    /// The Cluster object.
    pub cluster: Stored<ClusterSpec>,
    /// The InstanceGroup objects, by name.
    pub groups: Vec<Stored<InstanceGroupSpec>>,
    /// What is stored, without addons, assets and backups.
    pub entries: Vec<Entry>,
    /// Where the fields of all objects stand, for messages.
    pub documents: Vec<Document>,
}

impl ClusterState {
    /// Reads a cluster's spec: one listing, one read per object.
    pub async fn read(
        store: &Store,
        name: &str,
        options: ReadOptions,
    ) -> Result<Self, CommandError> {
        let keys = Keys::of(name);
        let (all, after) = (keys.all(), keys.before_listed());
        let entries = store.list(&all, Some(&after)).await.map_err(store_error)?;
        let group = |entry: &&Entry| entry.key.starts_with(&keys.groups());
        let mut wanted = vec![keys.config()];
        wanted.extend(entries.iter().filter(group).map(|entry| entry.key.clone()));
        if !entries.iter().any(|entry| entry.key == keys.config()) {
            let all = clusters(store).await?;
            return Err(no_cluster(name, store.url(), &all));
        }
        let read = wanted.iter().map(|key| object(store, key, options));
        let mut cluster: Option<Stored<_>> = None;
        let (mut groups, mut documents) = (Vec::new(), Vec::new());
        for (document, text, version) in try_join_all(read).await? {
            documents.push(document.clone());
            match document.object {
                Object::Cluster(object) => {
                    cluster = Some(Stored {
                        object,
                        text,
                        version,
                    });
                }
                Object::InstanceGroup(object) => groups.push(Stored {
                    object,
                    text,
                    version,
                }),
                other => return Err(misplaced(other.kind(), name)),
            }
        }
        groups.sort_by(|a: &Stored<_>, b| a.object.name().cmp(b.object.name()));
        let cluster = cluster.ok_or_else(|| gone(&keys.config()))?;
        Ok(Self {
            keys,
            cluster,
            groups,
            entries,
            documents,
        })
    }

    /// True if the store lists what it listed when this was read, but for the lock and the log of operations.
    pub async fn is_current(&self, store: &Store) -> Result<bool, CommandError> {
        let (all, after) = (self.keys.all(), self.keys.before_listed());
        let now = store.list(&all, Some(&after)).await.map_err(store_error)?;
        let (lock, log) = (self.keys.lock(), self.keys.operation_log());
        let counts = |entry: &&Entry| entry.key != lock && !entry.key.starts_with(&log);
        Ok(now
            .iter()
            .filter(counts)
            .eq(self.entries.iter().filter(counts)))
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.cluster.object.name()
    }

    /// The instance groups, without what the store knows about them.
    pub fn group_objects(&self) -> Vec<InstanceGroup> {
        self.groups
            .iter()
            .map(|group| group.object.clone())
            .collect()
    }

    /// The instance group with that name.
    pub fn group(&self, name: &str) -> Result<&Stored<InstanceGroupSpec>, CommandError> {
        self.groups
            .iter()
            .find(|group| group.object.name() == name)
            .ok_or_else(|| {
                let known: Vec<&str> = self
                    .groups
                    .iter()
                    .map(|group| group.object.name())
                    .collect();
                let sentence = format!("{} has no instance group {name}", self.name());
                CommandError::usage(sentence, nearest::hint(name, &known))
            })
    }

    /// The entry with that key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// Reads one object of the spec.
async fn object(
    store: &Store,
    key: &str,
    options: ReadOptions,
) -> Result<(Document, String, Version), CommandError> {
    let Bytes { bytes, version, .. } = store
        .get(key)
        .await
        .map_err(store_error)?
        .ok_or_else(|| gone(key))?;
    let text = String::from_utf8(bytes).usage(
        format!("{key} in the store is not text"),
        "restore it from the bucket's versions",
    )?;
    let mut documents = read_documents_with(key, &text, options)?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok((document, text, version)),
        _ => Err(CommandError::usage(
            format!("{key} in the store does not hold exactly one object"),
            "restore it from the bucket's versions",
        )),
    }
}

/// Writes an object of the spec, if the store has what is expected.
pub async fn write_object<S: Spec>(
    store: &Store,
    key: &str,
    object: &Resource<S>,
    expect: Expect,
) -> Result<Version, CommandError> {
    let text = yaml::to_yaml(object).failed(
        "the spec has no YAML form",
        "report this: it is a defect of kctl",
    )?;
    store
        .put(key, text.into_bytes(), expect)
        .await
        .map_err(store_error)
}

fn gone(key: &str) -> CommandError {
    CommandError::said(
        Kind::Precondition,
        format!("{key} was deleted from the state store a moment ago"),
        "somebody else is changing this cluster: repeat the command",
    )
}

fn misplaced(kind: &str, cluster: &str) -> CommandError {
    CommandError::usage(
        format!(
            "the state store has a {kind} where a Cluster or an InstanceGroup of {cluster} belongs"
        ),
        "restore it from the bucket's versions",
    )
}
