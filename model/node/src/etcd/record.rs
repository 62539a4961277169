//! The formation record: one object per etcd cluster in the state store, moved only under the condition that it is as it was
//! read. Nothing founds an etcd cluster but under it. During an upgrade two releases share it: each reads the other's, and what the
//! newer one put into it stays when the older one writes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of records and markers. A reader takes this one and the one before, and leaves the number as it was. New fields need
/// no new format; a new [`State`] does.
pub const FORMAT: u32 = 1;

/// Fields of a newer release, kept as they are.
pub type Unknown = Map<String, Value>;

/// How an etcd cluster was formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// How far it came.
    pub state: State,
    /// Members by their name in the spec: `a`.
    pub members: BTreeMap<String, RecordedMember>,
    /// Of a newer release.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// How far an etcd cluster came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// Its members are new, and start under this token once each of them was seen blank.
    Forming {
        /// `initial-cluster-token`.
        token: String,
        /// Of a newer release.
        #[serde(flatten)]
        unknown: Unknown,
    },
    /// It exists: no blank volume founds it again.
    Formed {
        /// etcd's own id of it, hex.
        cluster_id: String,
        /// The token under which it was formed.
        token: String,
        /// Of a newer release.
        #[serde(flatten)]
        unknown: Unknown,
    },
}

/// A member and its volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedMember {
    /// `vol-...`.
    pub volume: String,
    /// A machine that held the volume saw that it held nothing, before anything was written to it. From then on whatever is on
    /// it was put there under this record: a file system half made is made again.
    #[serde(default)]
    pub blank: bool,
    /// etcd's own id of it, hex, once it has run: a log lives once under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
    /// Of a newer release.
    #[serde(flatten)]
    pub unknown: Unknown,
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
    /// A release wrote it that is no neighbour of this one.
    #[error(
        "{what} has format {found}, and this release knows {FORMAT} and the one before: run the release that wrote it"
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

/// Keys of an etcd cluster's backups begin so. kOps' place.
pub fn backups_prefix(etcd: &str) -> String {
    format!("backups/etcd/{etcd}/")
}

/// Keys begin so of what says, beside the record, that an etcd cluster was formed once: a record that is lost is not taken for one
/// that never was.
pub fn formed_prefix(etcd: &str) -> String {
    format!("etcd/formed/{etcd}/")
}

/// Key of what says so of the cluster with that id.
pub fn formed_key(etcd: &str, cluster_id: &str) -> String {
    format!("{}{cluster_id}", formed_prefix(etcd))
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
            State::Forming { token, .. } | State::Formed { token, .. } => token,
        }
    }

    /// True once the cluster exists.
    pub fn is_formed(&self) -> bool {
        matches!(self.state, State::Formed { .. })
    }
}

impl State {
    /// Of members that start under that token.
    pub fn forming(token: &str) -> Self {
        Self::Forming {
            token: token.to_owned(),
            unknown: Unknown::new(),
        }
    }

    /// Of the cluster with that id, formed under that token.
    pub fn formed(cluster_id: &str, token: &str) -> Self {
        Self::Formed {
            cluster_id: cluster_id.to_owned(),
            token: token.to_owned(),
            unknown: Unknown::new(),
        }
    }
}

impl RecordedMember {
    /// On that volume, which was seen blank or not.
    pub fn on(volume: &str, blank: bool) -> Self {
        Self {
            volume: volume.to_owned(),
            blank,
            member_id: None,
            unknown: Unknown::new(),
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
    if format > FORMAT || format + 1 < FORMAT {
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
    use super::super::Marker;
    use super::*;

    /// What a newer release could have written: a field that nobody here knows in every object.
    const RECORD: &str = r#"{"format":1,"later":[1],"members":{"a":{"volume":"vol-1","blank":true,"memberId":"8e9e","later":{}}},
        "state":{"formed":{"clusterId":"cdf8","token":"t","later":"x"}}}"#;
    const MARKER: &str = r#"{"format":1,"cluster":"x","etcd":"main","member":"a","volume":"vol-1","token":"t","later":{"deep":1}}"#;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn of_format(text: &str, format: u32) -> String {
        text.replace("\"format\":1", &format!("\"format\":{format}"))
    }

    #[test]
    fn what_a_newer_release_wrote_is_there_after_this_one_has_written() {
        let record = Record::read("r", RECORD.as_bytes()).unwrap();
        assert_eq!(value(&record.to_json()), value(RECORD));
        let forming = r#"{"format":1,"members":{},"state":{"forming":{"token":"t","later":1}}}"#;
        let record = Record::read("r", forming.as_bytes()).unwrap();
        assert_eq!(value(&record.to_json()), value(forming));
        let marker = Marker::read("m", MARKER.as_bytes()).unwrap();
        assert_eq!(value(&marker.to_json()), value(MARKER));
    }

    #[test]
    fn this_format_and_the_one_before_are_read_and_no_other_and_none_is_renumbered() {
        for format in 0..=FORMAT + 2 {
            let near = format == FORMAT || format + 1 == FORMAT;
            let text = of_format(RECORD, format);
            match Record::read("etcd/main.json", text.as_bytes()) {
                Ok(record) => {
                    assert!(near, "{format}");
                    assert_eq!(value(&record.to_json()), value(&text));
                }
                Err(error) => {
                    assert!(!near, "{error}");
                    assert!(matches!(error, Error::Format { found, .. } if found == format));
                }
            }
            let marker = of_format(MARKER, format);
            assert_eq!(
                Marker::read("m", marker.as_bytes()).is_ok(),
                near,
                "{format}"
            );
        }
    }
}
