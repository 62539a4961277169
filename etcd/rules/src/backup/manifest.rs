//! The manifest of a snapshot. It is written last, and only of a snapshot that was verified or is one that somebody brought.

use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};

/// Format of [`SnapshotManifest`].
pub const MANIFEST_FORMAT: u32 = 1;

/// Limit of the object, bytes.
pub const MANIFEST_LIMIT: usize = 16 * 1024;

/// No database of etcd is larger, bytes: its quota is 8 GiB at most by recommendation, and never more than this.
pub const MOST_BYTES: u64 = 64 << 30;

/// Begins the reason of a snapshot that somebody brought from a file. When its data was current, nobody knows.
pub const IMPORTED: &str = "imported by ";

/// What lies in the place of a manifest is none that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is no manifest of a snapshot: {why}")]
pub struct ManifestError {
    /// Its address.
    what: String,
    /// What is wrong with it.
    pub why: String,
}

/// What is known of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotManifest {
    /// [`MANIFEST_FORMAT`].
    pub format: u32,
    /// Name of the snapshot, the folder of its objects.
    pub name: String,
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// Why it was taken: `schedule`; `command, asked by USER@HOST`; `imported by USER@HOST from FILE`.
    pub reason: String,
    /// Time by the clock of who took it, RFC 3339.
    pub taken_at: String,
    /// The instance whose member it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Name of that member in etcd: `etcd-a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// etcd's id of the cluster, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Version of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_version: Option<String>,
    /// Version of Kubernetes that the API server beside that member serves; of one that emulates a minor, that of the minor. Missing if an
    /// older release took it, or somebody brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Bytes of the file that etcd wrote: a database and a hash.
    pub bytes: u64,
    /// SHA-256 of that file, hex.
    pub sha256: String,
    /// Bytes of the compressed file.
    pub compressed_bytes: u64,
    /// SHA-256 of the compressed file, hex.
    pub compressed_sha256: String,
    /// What a scratch etcd found in it; missing for a snapshot that somebody brought and nobody has verified yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedSnapshot>,
    /// The sealed spec and private keys of the cluster; missing if the spec names nobody who may read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_state: Option<SealedClusterState>,
    /// Why it is missing, although the spec names somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_state_problem: Option<String>,
    /// Version of kctl or protokube that wrote the manifest.
    pub kctl_version: String,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// The objects of the state store without which a cluster cannot be created again, as a zip that is encrypted with age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedClusterState {
    /// Bytes of the encrypted file.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
    /// How many objects are in it.
    pub objects: usize,
    /// Public keys of those who can decrypt it, `age1...`.
    pub recipients: Vec<String>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What a scratch etcd found in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedSnapshot {
    /// Time by the clock of the instance, RFC 3339.
    pub at: String,
    /// Revision of the data.
    pub revision: u64,
    /// Revision up to which its keys are compacted.
    pub compacted: u64,
    /// etcd's hash of all keys at that revision, as the scratch etcd says.
    pub hash: u64,
    /// How many keys there are.
    pub keys: u64,
    /// How long the verification took.
    pub seconds: u64,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

impl SnapshotManifest {
    /// Parses a manifest; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// Parses what lies in the folder of the snapshot of this name; `what` names it in errors. The error says what it is, if it is not the
    /// manifest of that snapshot.
    pub fn parse_of(name: &str, what: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        let unusable = |why: String| ManifestError {
            what: what.to_owned(),
            why,
        };
        if bytes.is_empty() {
            return Err(unusable("it is empty".to_owned()));
        }
        if bytes.len() >= MANIFEST_LIMIT {
            return Err(unusable(format!("it has {MANIFEST_LIMIT} bytes or more")));
        }
        let manifest = Self::parse(what, bytes).map_err(|error| match error {
            Error::Unreadable { source, .. } => {
                unusable(format!("it is damaged, or of another program: {source}"))
            }
            Error::Format { found, .. } => unusable(format!(
                "it has format {found}, which another release wrote"
            )),
        })?;
        if manifest.name != name {
            return Err(unusable(format!(
                "{name} has the manifest of {}: it is a copy of another folder",
                manifest.name
            )));
        }
        if manifest.bytes > MOST_BYTES || manifest.compressed_bytes > MOST_BYTES {
            return Err(unusable(format!(
                "it says that the snapshot has more than {} GiB, and no database of etcd has",
                MOST_BYTES >> 30
            )));
        }
        Ok(manifest)
    }

    /// True if somebody brought it from a file: its time is that of the import, and its data may be years old.
    pub fn is_imported(&self) -> bool {
        self.reason.starts_with(IMPORTED)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// etcd-manager's description of the snapshot, in the JSON of its protocol buffers (`proto/etcd/etcdapi.proto`, `BackupInfo`), so that
    /// `etcd-manager-ctl restore-backup` accepts it. `members`: how many the etcd cluster has.
    pub fn to_etcd_manager_json(&self, members: usize, taken_at_unix: i64) -> String {
        let version = self.etcd_version.clone().unwrap_or_default();
        let info = serde_json::json!({
            "etcdVersion": version,
            "timestamp": taken_at_unix.to_string(),
            "clusterSpec": { "memberCount": members, "etcdVersion": version },
        });
        format!("{info:#}\n")
    }
}
