//! Content and layout of a member's volume.

use super::log::LogIdentity;
use super::log_position::LogPosition;
use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};

/// Path of the marker on a volume.
pub const MARKER: &str = "k8s.io/etcd-member.json";

/// The marker of a volume: names the member that it belongs to, so that data is never taken for another cluster's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: String,
    /// Short name of the member: `a`.
    pub member: String,
    /// Volume id. On a copy of the volume it differs from the volume's own id.
    pub volume: String,
    /// `initial-cluster-token` with which the member started.
    pub token: String,
    /// etcd's id of the cluster, hex; set once the cluster is formed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// etcd's id of the member, hex; set once its log was seen. From then on no other log is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
    /// Set if the member joins a cluster that exists, so that it never founds one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<JoiningMember>,
    /// The version of etcd that last ran with the data: `3.6.12`. Another minor is written before its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_version: Option<String>,
    /// Token of the recovery for which the member was stopped. From then on its log is never started, also while nobody can read the
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// How far the member's log reached when it was last seen. A shorter one is not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<LastSeen>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// How a member was started to join its cluster; empty before its first start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JoiningMember {
    /// Id that it was given, hex. It begins one log under this id.
    pub member_id: String,
    /// `ETCD_INITIAL_CLUSTER`.
    pub initial_cluster: String,
}

/// How far a log reached that was on the disk: no power cut takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastSeen {
    /// etcd's id of the member that wrote the log, hex. A log of another member, such as a restored one, begins anew.
    pub member_id: String,
    #[serde(flatten)]
    pub position: LogPosition,
}

impl Marker {
    /// Parses a marker; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// The text that is written to the volume.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// The position that a log must have reached, if one of this member was seen before.
    pub fn least_position(&self, log: &LogIdentity) -> Option<LogPosition> {
        let seen = self.last_seen.as_ref();
        let seen = seen.filter(|seen| seen.member_id == log.member_id);
        seen.map(|seen| seen.position)
    }

    /// True once the member has run or its cluster was formed. It must not found a cluster again.
    pub(super) fn has_run(&self) -> bool {
        self.member_id.is_some() || self.cluster_id.is_some()
    }
}

/// Content of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a look")]
pub enum VolumeContent {
    /// Blank: no known signature, and the first MiB is zero.
    Blank,
    /// No known signature, but the first MiB is not zero.
    Unrecognized,
    /// Something other than an ext4 file system; the text describes it.
    Other(String),
    /// An ext4 file system with errors; the text describes them and the repair.
    Damaged(String),
    /// A usable ext4 file system.
    FileSystem(FileSystemContent),
}

impl VolumeContent {
    /// Marker and log of a member's data.
    pub(super) fn marked(&self) -> Option<(&Marker, &EtcdLog)> {
        match self {
            Self::FileSystem(FileSystemContent::Marked { marker, log }) => Some((marker, log)),
            _ => None,
        }
    }
}

/// Content of the file system on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a look")]
pub enum FileSystemContent {
    Nothing,
    /// Data of a member, with its marker.
    Marked {
        marker: Marker,
        /// State of etcd's log.
        log: EtcdLog,
    },
    /// Files without a marker; some of their names.
    Unmarked(Vec<String>),
}

/// State of etcd's write-ahead log on a volume. When etcd starts, it looks only at the log: without one it starts anew, under an
/// id that it computes from its list of peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdLog {
    /// There are no log files.
    Missing,
    /// The newest file is not a valid log; the text describes why.
    Unreadable(String),
    /// A log that lost its end: it reached further when it was last seen.
    Shorter {
        log: LogIdentity,
        /// How far it reached.
        seen: LogPosition,
        /// How far it reaches now.
        found: LogPosition,
    },
    /// The log of this member.
    Of(LogIdentity),
}

/// Path of etcd's data on a volume. `prefix` is `etcd` or `etcd-events`.
pub fn data_folder(prefix: &str) -> String {
    format!("var/{prefix}/data")
}

/// Path of etcd's log in its data folder.
pub const LOG_FOLDER: &str = "member/wal";

/// Path of a static pod's manifest on a volume, as in kOps.
pub fn manifest_on_volume(pod: &str) -> String {
    format!("k8s.io/manifests/{pod}.manifest")
}
