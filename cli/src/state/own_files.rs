//! Objects of users in the state store: the files of the folder `clusteraddons/`. `kctl create -f` writes the file `default`, as kOps does; people
//! may put others beside it.

use super::{StoreKeys, store_error};
use crate::error::{CommandError, ErrorKind};
use aws_client::store::{Entry, Expect, Store, Version};
use futures::stream::{self, StreamExt, TryStreamExt};
use node::addons::{OwnObject, Unreadable, read_own_objects};
use node::yaml::to_yaml_documents;
use serde_json::Value;

/// Files that are read at once.
const PARALLEL_READS: usize = 20;

/// How files are named that hold objects, besides `default`.
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// A file of the folder.
#[derive(Clone, Debug)]
pub struct OwnFile {
    pub key: String,
    pub text: String,
    /// The version to expect when it is written again.
    pub version: Version,
    pub objects: Vec<OwnObject>,
}

/// The files of a cluster.
#[derive(Clone, Debug, Default)]
pub struct OwnFiles {
    /// In the order of their names.
    pub files: Vec<OwnFile>,
    /// Keys in the folder that are not named as files of objects are.
    pub others: Vec<String>,
}

impl OwnFiles {
    /// Reads the files that the listing of a cluster has.
    pub async fn read(
        store: &Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Self, CommandError> {
        let (folder, default) = (keys.own_folder(), keys.own_objects());
        let found = entries
            .iter()
            .filter(|entry| entry.key.starts_with(&folder) && !entry.key.ends_with('/'));
        let (files, others): (Vec<&Entry>, Vec<&Entry>) = found.partition(|entry| {
            entry.key == default || ENDINGS.iter().any(|ending| entry.key.ends_with(ending))
        });
        let reads = stream::iter(files).map(|entry| read_file(store, entry));
        let files = reads.buffered(PARALLEL_READS).try_collect::<Vec<_>>();
        Ok(Self {
            files: files.await?.into_iter().flatten().collect(),
            others: others.iter().map(|entry| entry.key.clone()).collect(),
        })
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = &OwnObject> {
        self.files.iter().flat_map(|file| &file.objects)
    }

    /// The file with that key.
    pub fn find_file(&self, key: &str) -> Option<&OwnFile> {
        self.files.iter().find(|file| file.key == key)
    }
}

/// Reads a file; `None` if it was deleted meanwhile.
async fn read_file(store: &Store, entry: &Entry) -> Result<Option<OwnFile>, CommandError> {
    if entry.size == 0 {
        return Ok(Some(OwnFile {
            key: entry.key.clone(),
            text: String::new(),
            version: entry.version.clone(),
            objects: Vec::new(),
        }));
    }
    let Some(object) = store.get(&entry.key).await.map_err(store_error)? else {
        return Ok(None);
    };
    let text = String::from_utf8(object.bytes).map_err(|_| {
        CommandError::usage_error(
            format!("{} in the store is not text", entry.key),
            "replace it, or remove it from the store",
        )
    })?;
    let objects = read_own_objects(&entry.key, &text).map_err(unreadable_error)?;
    Ok(Some(OwnFile {
        key: entry.key.clone(),
        text,
        version: object.version,
        objects,
    }))
}

/// The command error of a text that holds no objects that can be applied.
pub fn unreadable_error(error: Unreadable) -> CommandError {
    let next_step = error.next_step.clone();
    CommandError::new(ErrorKind::Usage, error, next_step)
}

/// Writes the objects of `default`, if it still has that version; `None`: if it does not exist.
pub async fn write_own_objects(
    store: &Store,
    keys: &StoreKeys,
    objects: &[Value],
    version: Option<&Version>,
) -> Result<(), CommandError> {
    let text = if objects.is_empty() {
        // As kOps has it.
        String::new()
    } else {
        to_yaml_documents(objects).map_err(|error| {
            const DEFECT: &str = "report this: it is a defect of kctl";
            CommandError::new(ErrorKind::Failed, error, DEFECT)
        })?
    };
    let expect = version.map_or(Expect::Absent, |version| Expect::Version(version.clone()));
    let key = keys.own_objects();
    let put = store.put(&key, text.into_bytes(), expect);
    put.await.map_err(store_error)?;
    Ok(())
}
