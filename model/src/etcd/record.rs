//! The formation record: one object per etcd cluster in the state store, moved only under the condition that it is as it was
//! read. Nothing founds an etcd cluster but under it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of records and markers.
pub const FORMAT: u32 = 1;

/// How an etcd cluster was formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// How far it came.
    pub state: State,
    /// Members by their name in the spec: `a`.
    pub members: BTreeMap<String, RecordedMember>,
}

/// How far an etcd cluster came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum State {
    /// Its members are new, and start under this token once each of them was seen blank.
    Forming {
        /// `initial-cluster-token`.
        token: String,
    },
    /// It exists: no blank volume founds it again.
    Formed {
        /// etcd's own id of it, hex.
        cluster_id: String,
        /// The token under which it was formed.
        token: String,
    },
    /// It is being made again from a snapshot.
    Restoring {
        /// Which.
        snapshot: String,
        /// The token of the new members.
        token: String,
    },
}

/// A member and its volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedMember {
    /// `vol-...`.
    pub volume: String,
    /// A machine that held the volume saw that it held nothing, before anything was written to it. From then on whatever is on
    /// it was put there under this record: a file system half made is made again.
    #[serde(default)]
    pub blank: bool,
}

/// Why a record or a marker could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no such object.
    #[error("{what} cannot be read")]
    Unreadable {
        /// Which.
        what: String,
        /// What the reader said.
        #[source]
        source: serde_json::Error,
    },
    /// A later release wrote it.
    #[error(
        "{what} has format {found}, and this release knows {FORMAT}: run the release that wrote it"
    )]
    Format {
        /// Which.
        what: String,
        /// What it says.
        found: u32,
    },
}

/// Key of an etcd cluster's record, relative to the cluster's base in the state store.
pub fn record_key(etcd: &str) -> String {
    format!("etcd/{etcd}.json")
}

impl Record {
    /// Reads a record; `what` is what errors call it.
    pub fn read(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        read(what, bytes)
    }

    /// As it is stored.
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// The token under which members start or started.
    pub fn token(&self) -> &str {
        match &self.state {
            State::Forming { token }
            | State::Formed { token, .. }
            | State::Restoring { token, .. } => token,
        }
    }
}

/// Reads JSON with a `format`, looking at that first.
pub(super) fn read<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Formatted {
        format: u32,
    }
    let unreadable = |source| Error::Unreadable {
        what: what.to_owned(),
        source,
    };
    let Formatted { format } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if format != FORMAT {
        return Err(Error::Format {
            what: what.to_owned(),
            found: format,
        });
    }
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// JSON for people to read as well. These types always have it: their keys are text.
pub(super) fn pretty<T: Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written_and_a_later_one_is_refused() {
        let record = Record {
            format: FORMAT,
            state: State::Formed {
                cluster_id: "cdf818194e3a8c32".into(),
                token: "t".into(),
            },
            members: [(
                "a".to_owned(),
                RecordedMember {
                    volume: "vol-1".into(),
                    blank: true,
                },
            )]
            .into(),
        };
        let text = record.to_json();
        assert_eq!(Record::read("r", text.as_bytes()).unwrap(), record);
        let later = text.replace("\"format\": 1", "\"format\": 2");
        let error = Record::read("etcd/main.json", later.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Format { found: 2, .. }), "{error}");
    }
}
