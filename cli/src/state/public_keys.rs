//! `pki/public.json`: the public halves of all keysets and SSH keys, so that observing a cluster reads one object and no private
//! key. It names the version of each source object; a source that has changed since, for example by kOps, is read itself.

use super::{StoreKeys, load_keyset, store_error};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use aws_client::store::{Entry, Expect, Store, Version};
use node::pki::{Keyset, KeysetItem, keyset_path};
use serde::{Deserialize, Serialize};

/// Version of the file format.
const FORMAT: u32 = 1;

/// Public halves of a cluster's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys {
    /// Existing keysets, without private keys.
    pub keysets: Vec<Keyset>,
    /// SSH public keys, `authorized_keys` lines.
    pub ssh_keys: Vec<String>,
    /// True if the file differs and must be written.
    pub stale: bool,
    /// Keysets in the file that no longer exist in the store.
    lost: Vec<String>,
    file: PublicFile,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicFile {
    format: u32,
    /// The newest kctl that changed this cluster.
    written_by: String,
    keysets: Vec<PublicKeyset>,
    #[serde(default)]
    ssh_keys: Vec<PublicSshKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicKeyset {
    name: String,
    version: String,
    primary: String,
    items: Vec<PublicItem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicItem {
    id: String,
    certificate: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distrusted: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicSshKey {
    key: String,
    version: String,
    public_key: String,
}

impl PublicKeys {
    /// Reads the file, and every source that has changed since it was written.
    pub async fn read(
        store: &Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Self, CommandError> {
        let known = read_file(store, keys, entries).await?;
        let mut now = PublicFile {
            format: FORMAT,
            written_by: known.written_by.clone(),
            ..PublicFile::default()
        };
        for (name, version) in keyset_entries(keys, entries) {
            let same = |set: &&PublicKeyset| set.name == name && set.version == version.0;
            now.keysets.push(match known.keysets.iter().find(same) {
                Some(set) => set.clone(),
                None => PublicKeyset::new(&load_keyset(store, keys, &name).await?, version),
            });
        }
        for entry in entries
            .iter()
            .filter(|entry| entry.key.starts_with(&keys.ssh_key_prefix()))
        {
            let same = |ssh: &&PublicSshKey| ssh.key == entry.key && ssh.version == entry.version.0;
            now.ssh_keys.push(match known.ssh_keys.iter().find(same) {
                Some(ssh) => ssh.clone(),
                None => read_ssh_key(store, entry).await?,
            });
        }
        Ok(Self::from_file(now, &known))
    }

    fn from_file(now: PublicFile, known: &PublicFile) -> Self {
        Self {
            keysets: now.keysets.iter().map(PublicKeyset::to_keyset).collect(),
            ssh_keys: now
                .ssh_keys
                .iter()
                .map(|ssh| ssh.public_key.clone())
                .collect(),
            stale: now != *known,
            lost: lost_keysets(&now, known),
            file: now,
        }
    }

    /// Compares a keyset with its source object, which has the private keys. Write access to this file alone must not decide
    /// whom instances trust.
    pub async fn check_keyset(
        &self,
        store: &Store,
        keys: &StoreKeys,
        name: &str,
    ) -> Result<(), CommandError> {
        let own = load_keyset(store, keys, name).await?;
        let own = PublicKeyset::new(&own, &Version(String::new())).to_keyset();
        if self.keysets.contains(&own) {
            return Ok(());
        }
        let file = keys.public_keys();
        Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("{file} does not say what the keyset {name} says: it was not written by kctl"),
            format!(
                "find out who wrote it, and delete {file}: kctl writes it again from the keysets"
            ),
        ))
    }

    /// Keysets of these names that do not exist yet.
    pub fn missing_keysets<'a>(&self, names: &'a [String]) -> Vec<&'a String> {
        let exists = |name: &&String| !self.keysets.iter().any(|set| set.name == **name);
        names.iter().filter(exists).collect()
    }

    /// Fails if one of these keysets existed and is lost: instances trust it and would not trust a new one.
    pub fn check_none_lost(&self, names: &[String], keys: &StoreKeys) -> Result<(), CommandError> {
        let lost = self.lost.iter().filter(|name| names.contains(name));
        let lost: Vec<String> = lost.map(|name| keys.keyset(name)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "the state store lacks {}, which {} names: nothing was done, and no other keyset is made in its place",
                lost.join(" and "),
                keys.public_keys()
            ),
            "restore it from the bucket's versions",
        ))
    }

    /// Adds a keyset that was just stored.
    pub fn add_keyset(&mut self, set: &Keyset, version: &Version) {
        self.file.keysets.push(PublicKeyset::new(set, version));
        self.file.keysets.sort_by(|a, b| a.name.cmp(&b.name));
        self.keysets = self
            .file
            .keysets
            .iter()
            .map(PublicKeyset::to_keyset)
            .collect();
        self.stale = true;
    }

    /// Writes the file, if it changed.
    pub async fn write(&mut self, store: &Store, keys: &StoreKeys) -> Result<(), CommandError> {
        let ours = env!("CARGO_PKG_VERSION");
        self.stale |= self.file.written_by != ours;
        if !self.stale {
            return Ok(());
        }
        ours.clone_into(&mut self.file.written_by);
        let text = serde_json::to_vec_pretty(&self.file);
        let text = text.or_failed(
            "the public keys have no JSON form",
            "report this: it is a defect of kctl",
        )?;
        // The file is derived data: the last writer wins.
        store
            .put(&keys.public_keys(), text, Expect::Any)
            .await
            .map_err(store_error)?;
        self.stale = false;
        Ok(())
    }
}

/// Names of keysets that are in the file and not in the store.
fn lost_keysets(now: &PublicFile, known: &PublicFile) -> Vec<String> {
    let there = |name: &String| now.keysets.iter().any(|set| set.name == *name);
    let known = known.keysets.iter().map(|set| set.name.clone());
    known.filter(|name| !there(name)).collect()
}

impl PublicKeyset {
    fn new(set: &Keyset, version: &Version) -> Self {
        let item = |item: &KeysetItem| PublicItem {
            id: item.id.clone(),
            certificate: item.certificate.clone(),
            distrusted: item.distrusted.clone(),
        };
        Self {
            name: set.name.clone(),
            version: version.0.clone(),
            primary: set.primary.clone(),
            items: set.items.iter().map(item).collect(),
        }
    }

    fn to_keyset(&self) -> Keyset {
        let item = |item: &PublicItem| KeysetItem {
            id: item.id.clone(),
            certificate: item.certificate.clone(),
            key: None,
            distrusted: item.distrusted.clone(),
        };
        Keyset {
            name: self.name.clone(),
            primary: self.primary.clone(),
            items: self.items.iter().map(item).collect(),
        }
    }
}

async fn read_file(
    store: &Store,
    keys: &StoreKeys,
    entries: &[Entry],
) -> Result<PublicFile, CommandError> {
    if !entries.iter().any(|entry| entry.key == keys.public_keys()) {
        return Ok(PublicFile::default());
    }
    let object = store.get(&keys.public_keys()).await.map_err(store_error)?;
    // The file is derived data: an unreadable one is written again.
    let file: PublicFile = object
        .and_then(|object| serde_json::from_slice(&object.bytes).ok())
        .unwrap_or_default();
    if is_newer_minor(&file.written_by, env!("CARGO_PKG_VERSION")) {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "this cluster was last changed by kctl {}, and this is kctl {}",
                file.written_by,
                env!("CARGO_PKG_VERSION")
            ),
            format!("use kctl {} or newer", file.written_by),
        ));
    }
    Ok(if file.format == FORMAT {
        file
    } else {
        PublicFile::default()
    })
}

/// True if the first version (`1.4.2`) has a newer minor than the second.
fn is_newer_minor(theirs: &str, ours: &str) -> bool {
    let parts = |version: &str| -> Option<(u32, u32)> {
        let mut parts = version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    match (parts(theirs), parts(ours)) {
        (Some(theirs), Some(ours)) => theirs > ours,
        _ => false,
    }
}

/// Names and versions of the keysets in a listing.
fn keyset_entries<'a>(
    keys: &'a StoreKeys,
    entries: &'a [Entry],
) -> impl Iterator<Item = (String, &'a Version)> {
    entries.iter().filter_map(|entry| {
        let name = entry.key.strip_suffix("/keyset.yaml")?.rsplit_once('/')?.1;
        (keys.key_below(&keyset_path(name)) == entry.key).then(|| (name.to_owned(), &entry.version))
    })
}

async fn read_ssh_key(store: &Store, entry: &Entry) -> Result<PublicSshKey, CommandError> {
    let object = store.get(&entry.key).await.map_err(store_error)?;
    let text = object.map(|object| String::from_utf8_lossy(&object.bytes).trim().to_owned());
    Ok(PublicSshKey {
        key: entry.key.clone(),
        version: entry.version.0.clone(),
        public_key: text.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::{PublicKeys, StoreKeys, is_newer_minor};
    use crate::state::mint_and_store;
    use aws_client::Clients;
    use aws_client::store::{Expect, Store};
    use node::pki::KUBERNETES_CA;

    #[tokio::test]
    async fn who_writes_this_file_alone_decides_not_whom_machines_trust() {
        let folder = tempfile::TempDir::new().unwrap();
        let url = format!("file://{}", folder.path().display());
        let store = Store::open(&url, &Clients::load(None, None).await).unwrap();
        let keys = StoreKeys::new("a.example.com");
        let mut public = PublicKeys::read(&store, &keys, &[]).await.unwrap();
        for name in [KUBERNETES_CA, "etcd-clients-ca"] {
            let (set, version) = mint_and_store(&store, &keys, name).await.unwrap();
            public.add_keyset(&set, &version);
        }
        public.write(&store, &keys).await.unwrap();
        let read = async || {
            let entries = store.list(&keys.prefix(), None).await.unwrap();
            PublicKeys::read(&store, &keys, &entries).await.unwrap()
        };
        let good = read().await;
        assert!(!good.stale);
        good.check_keyset(&store, &keys, KUBERNETES_CA)
            .await
            .unwrap();

        // Another authority in the place of the cluster's, under the same version of the keyset.
        let object = store.get(&keys.public_keys()).await.unwrap().unwrap();
        let mut file: serde_json::Value = serde_json::from_slice(&object.bytes).unwrap();
        file["keysets"][1]["items"] = file["keysets"][0]["items"].clone();
        let file = serde_json::to_vec(&file).unwrap();
        store
            .put(&keys.public_keys(), file, Expect::Any)
            .await
            .unwrap();
        let evil = read().await;
        let error = evil
            .check_keyset(&store, &keys, KUBERNETES_CA)
            .await
            .unwrap_err();
        let error = error.cause.unwrap().to_string();
        assert!(error.contains("pki/public.json"), "{error}");
    }

    #[test]
    fn only_a_newer_minor_stops_an_older_kctl() {
        assert!(is_newer_minor("0.2.0", "0.1.9"));
        assert!(is_newer_minor("1.0.0", "0.9.0"));
        assert!(!is_newer_minor("0.1.9", "0.1.0"));
        assert!(!is_newer_minor("", "0.1.0"));
    }
}
