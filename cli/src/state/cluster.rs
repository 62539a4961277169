//! Reads and writes Cluster and InstanceGroup objects in the state store.

use super::group_texts::GroupTexts;
use super::{StoreKeys, cluster_names, no_cluster_error, store_error};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use aws_client::store::{Entry, Expect, Object as Bytes, Store, Version};
use futures::stream::{self, StreamExt, TryStreamExt};
use node::yaml;
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::{InstanceGroup, Object, Resource, Spec};
use spec::read::{Document, ReadOptions, nearest, read_documents_with};

/// Objects that are read at once.
const PARALLEL_READS: usize = 50;

/// An object of the spec and the version it was read at.
#[derive(Clone, Debug)]
pub struct StoredObject<S> {
    pub object: Resource<S>,
    pub text: String,
    /// The version to expect when the object is replaced.
    pub version: Version,
}

/// The listing of a cluster's objects, and its spec.
#[derive(Clone, Debug)]
pub struct ClusterState {
    pub keys: StoreKeys,
    pub cluster: StoredObject<ClusterSpec>,
    /// The InstanceGroup objects, by name.
    pub groups: Vec<StoredObject<InstanceGroupSpec>>,
    /// The listing, without addons, assets and backups.
    pub entries: Vec<Entry>,
    /// The source texts, for line numbers in messages.
    pub documents: Vec<Document>,
    /// True if a group changed since the texts of all were written together.
    has_stale_texts: bool,
}

impl ClusterState {
    /// Reads a cluster's spec: one listing, and one read each of the cluster, of the texts of its groups, and of groups that changed since
    /// those were written together.
    pub async fn read(
        store: &Store,
        name: &str,
        options: ReadOptions,
    ) -> Result<Self, CommandError> {
        let keys = StoreKeys::new(name);
        let (all, after) = (keys.prefix(), keys.before_listed());
        let entries = store.list(&all, Some(&after)).await.map_err(store_error)?;
        if !entries.iter().any(|entry| entry.key == keys.config()) {
            let all = cluster_names(store).await?;
            return Err(no_cluster_error(name, store.url(), &all));
        }
        let (config, (texts, is_stale)) = tokio::try_join!(
            read_text(store, keys.config()),
            read_group_texts(store, &keys, &entries)
        )?;
        let mut cluster: Option<StoredObject<_>> = None;
        let (mut groups, mut documents) = (Vec::new(), Vec::new());
        for (key, text, version) in std::iter::once(config).chain(texts) {
            let document = parse_object(&key, &text, options)?;
            documents.push(document.clone());
            match document.object {
                Object::Cluster(object) => {
                    cluster = Some(StoredObject {
                        object,
                        text,
                        version,
                    });
                }
                Object::InstanceGroup(object) => groups.push(StoredObject {
                    object,
                    text,
                    version,
                }),
                other => return Err(misplaced_error(other.kind(), name)),
            }
        }
        groups.sort_by(|a: &StoredObject<_>, b| a.object.name().cmp(b.object.name()));
        let cluster = cluster.ok_or_else(|| deleted_error(&keys.config()))?;
        Ok(Self {
            keys,
            cluster,
            groups,
            entries,
            documents,
            has_stale_texts: is_stale,
        })
    }

    /// Writes the texts of the groups together, if that was not done since one of them changed. Needs the lock.
    pub async fn write_group_texts(&mut self, store: &Store) -> Result<(), CommandError> {
        if !self.has_stale_texts {
            return Ok(());
        }
        let texts = self.groups.iter().map(|group| {
            let key = self.keys.group(group.object.name());
            (key, &group.version, group.text.as_str())
        });
        GroupTexts::from_texts(texts)
            .write(store, &self.keys)
            .await?;
        self.has_stale_texts = false;
        Ok(())
    }

    /// True if the listing is still the same, apart from locks, records of operations and reports of instances.
    pub async fn is_current(&self, store: &Store) -> Result<bool, CommandError> {
        let (all, after) = (self.keys.prefix(), self.keys.before_listed());
        let now = store.list(&all, Some(&after)).await.map_err(store_error)?;
        let counts = |entry: &&Entry| {
            !self.keys.is_process_state(&entry.key)
                && !self.keys.is_report(&entry.key)
                && !self.keys.is_derived(&entry.key)
        };
        Ok(now
            .iter()
            .filter(counts)
            .eq(self.entries.iter().filter(counts)))
    }

    pub fn name(&self) -> &str {
        self.cluster.object.name()
    }

    /// The InstanceGroup objects without texts and versions.
    pub fn group_objects(&self) -> Vec<InstanceGroup> {
        self.groups
            .iter()
            .map(|group| group.object.clone())
            .collect()
    }

    /// The instance group with that name.
    pub fn group(&self, name: &str) -> Result<&StoredObject<InstanceGroupSpec>, CommandError> {
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
                CommandError::usage_error(sentence, nearest::hint(name, &known))
            })
    }

    /// The entry with that key.
    pub fn find_entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// An object's key, text and version.
type KeyedText = (String, String, Version);

/// Reads the texts of all groups; and whether they should be written together again.
async fn read_group_texts(
    store: &Store,
    keys: &StoreKeys,
    entries: &[Entry],
) -> Result<(Vec<KeyedText>, bool), CommandError> {
    let mut together = GroupTexts::read(store, keys, entries).await?;
    let prefix = keys.group_prefix();
    let groups = entries.iter();
    let groups = groups.filter(|entry| entry.key.starts_with(&prefix));
    let (mut texts, mut changed) = (Vec::new(), Vec::new());
    for entry in groups {
        match together.take(entry) {
            Some(text) => texts.push((entry.key.clone(), text, entry.version.clone())),
            None => changed.push(entry.key.clone()),
        }
    }
    // What is left was deleted since.
    let is_stale = !changed.is_empty() || !together.is_empty();
    let reads = stream::iter(changed).map(|key| read_text(store, key));
    let read: Vec<KeyedText> = reads.buffered(PARALLEL_READS).try_collect().await?;
    texts.extend(read);
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    Ok((texts, is_stale))
}

/// Reads the text of one object of the spec.
async fn read_text(store: &Store, key: String) -> Result<KeyedText, CommandError> {
    let Bytes { bytes, version, .. } = store
        .get(&key)
        .await
        .map_err(store_error)?
        .ok_or_else(|| deleted_error(&key))?;
    let text = String::from_utf8(bytes).or_usage_error(
        format!("{key} in the store is not text"),
        "restore it from the bucket's versions",
    )?;
    Ok((key, text, version))
}

/// Parses one object of the spec.
fn parse_object(key: &str, text: &str, options: ReadOptions) -> Result<Document, CommandError> {
    let mut documents = read_documents_with(key, text, options)?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document),
        _ => Err(CommandError::usage_error(
            format!("{key} in the store does not hold exactly one object"),
            "restore it from the bucket's versions",
        )),
    }
}

/// Writes an object of the spec if the store has the expected version.
pub async fn write_object<S: Spec>(
    store: &Store,
    key: &str,
    object: &Resource<S>,
    expect: Expect,
) -> Result<Version, CommandError> {
    let text = yaml::to_yaml(object).or_failed(
        "the spec has no YAML form",
        "report this: it is a defect of kctl",
    )?;
    store
        .put(key, text.into_bytes(), expect)
        .await
        .map_err(store_error)
}

fn deleted_error(key: &str) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("{key} was deleted from the state store a moment ago"),
        "another process is changing this cluster: repeat the command",
    )
}

fn misplaced_error(kind: &str, cluster: &str) -> CommandError {
    CommandError::usage_error(
        format!(
            "the state store has a {kind} where a Cluster or an InstanceGroup of {cluster} belongs"
        ),
        "restore it from the bucket's versions",
    )
}

#[cfg(test)]
#[path = "cluster_test.rs"]
mod tests;
