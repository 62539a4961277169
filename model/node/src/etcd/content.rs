//! What a member's volume holds, and where on it things lie.

use super::log::LogIdentity;
use super::record::{Error, Unknown, pretty, read};
use serde::{Deserialize, Serialize};

/// The marker's place on a volume.
pub const MARKER: &str = "k8s.io/etcd-member.json";

/// Says on the volume itself whose it is, so that data is never taken for another cluster's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The Kubernetes cluster's name.
    pub cluster: String,
    /// `main`, `events`.
    pub etcd: String,
    /// `a`.
    pub member: String,
    /// `vol-...`: a copy of the volume has another id than its marker.
    pub volume: String,
    /// The token under which the member started.
    pub token: String,
    /// etcd's id of the cluster, hex, once it is formed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// etcd's id of the member, hex, once its log was seen: from then on no other log is started under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
    /// Of a newer release.
    #[serde(flatten)]
    pub unknown: Unknown,
}

impl Marker {
    /// Reads a marker; `what` is what errors call it.
    pub fn read(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        read(what, bytes)
    }

    /// As it lies on the volume.
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// True once the member has run, or its cluster was formed: it founds nothing any more.
    pub(super) fn has_run(&self) -> bool {
        self.member_id.is_some() || self.cluster_id.is_some()
    }
}

/// What a volume holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a look")]
pub enum Content {
    /// Nothing: no signature that any tool knows, and its first MiB is zero.
    Blank,
    /// No signature that any tool knows, but not nothing.
    Unrecognized,
    /// Something else than an ext4 file system: what it is.
    Other(String),
    /// An ext4 file system that is not to be used as it is: what is wrong with it, and what mends it.
    Damaged(String),
    /// An ext4 file system.
    FileSystem(Inside),
}

/// What the file system of a volume holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a look")]
pub enum Inside {
    /// Nothing.
    Nothing,
    /// What protokube put there.
    Marked {
        /// Whose it is.
        marker: Marker,
        /// etcd's log.
        log: Log,
    },
    /// Files without a marker: some of their names.
    Unmarked(Vec<String>),
}

/// What a volume holds of etcd's log, which is all that etcd goes by when it starts: without one it starts anew, under an id that
/// it works out from its peers' list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// Nothing.
    Missing,
    /// Files that do not begin as etcd's do: what is wrong with them.
    Unreadable(String),
    /// The log of that member.
    Of(LogIdentity),
}

/// Where etcd's data is on a volume, by the member's prefix `etcd` or `etcd-events`.
pub fn data_folder(prefix: &str) -> String {
    format!("var/{prefix}/data")
}

/// Where etcd's log is on a volume, by the member's prefix.
pub fn log_folder(prefix: &str) -> String {
    format!("{}/member/wal", data_folder(prefix))
}

/// Where a static pod's manifest is on a volume. kOps' place.
pub fn manifest_on_volume(pod: &str) -> String {
    format!("k8s.io/manifests/{pod}.manifest")
}
